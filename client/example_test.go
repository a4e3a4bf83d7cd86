package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/poller"
)

// An application saves a model, and a customer who has not paid asks in vain for a refresh.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	address := "redis://" + server.Addr()
	defer runPoller(ctx, address)()
	defer stop()

	shop, err := client.Open(ctx, address, "feeds", client.Config{By: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = shop.Close() }()
	reply, err := shop.Put(ctx, client.Definition{
		UID: "tbl_1", Payload: map[string]string{"input_url": "https://example.com/feed.csv"}, Rule: "every day at 6 AM", Timezone: "Europe/Berlin",
	})
	fmt.Println(reply.Outcome, err)
	reply, err = shop.Disable(ctx, "tbl_1", "Please pay your invoice.")
	fmt.Println(reply.Outcome, err)
	_, err = shop.Run(ctx, "tbl_1", false)
	fmt.Println(errors.Is(err, client.ErrStopped))
	// Output:
	// applied <nil>
	// applied <nil>
	// true
}

// runPoller acts like `refreshd poller`; the returned function waits for its end.
func runPoller(ctx context.Context, address string) (wait func()) {
	p, closeAll, err := poller.Open(ctx, address, "feeds", poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() {
		if err := errors.Join(<-ended, closeAll()); err != nil {
			log.Fatal(err)
		}
	}
}
