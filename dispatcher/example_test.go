package dispatcher_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/poller"
)

// A model is put by an application, and started when it is due. A daemon calls Run instead of RunOnce, which is for tests; New
// needs no NewUID, and a store no Clock.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	clients, err := store.Connect("redis://"+server.Addr(), store.ConnectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = clients.Close() }()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	store, err := store.New(clients, store.Config{Queue: "feeds", Clock: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	messages, err := poller.New(store, poller.Config{})
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(store, dispatcher.Config{NewUID: func() string { return "a1" }})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	_, _ = server.Push("feeds-control", `{"type":"put","uid":"tbl_1","payload":{"input_url":"https://example.com/feed.csv"},
		"rrule":"FREQ=DAILY;BYHOUR=8","timezone":"UTC","policy":{"timeout":"10m","retries":["1m"]}}`)
	if _, err := messages.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		round, err := d.RunOnce(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: started %d\n", now.Format(time.TimeOnly), round.Started)
		now = now.Add(time.Hour)
	}
	attempt, _ := server.Lpop("feeds-input")
	fmt.Println(attempt)

	// Output:
	// 07:00:00: started 0
	// 08:00:00: started 1
	// {"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","input_url":"https://example.com/feed.csv","attempt_no":1,"deadline_at":"2026-11-21T08:10:00.000Z","planned_at":"2026-11-22T08:00:00.000Z"}
}
