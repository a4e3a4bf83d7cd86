package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

// A web service does the work; its status is the result.
func ExampleHTTP() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		fmt.Printf("%s %s %s\n", r.Method, r.Header.Get("Refreshd-Uid"), payload)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer service.Close()
	handler, err := handlers.HTTP(service.URL+"/refresh", handlers.HTTPOptions{Client: service.Client()})
	if err != nil {
		log.Fatal(err)
	}
	told, err := worker.Try(context.Background(), handler,
		&worker.Attempt{UID: "tbl_1", AttemptUID: "a1", Payload: []byte(`{"input_url":"https://example.com/feed.csv"}`)})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range told {
		fmt.Printf("%s: %s (%s)\n", message.Type, message.Reason, message.ErrorType)
	}

	// Output:
	// POST tbl_1 {"input_url":"https://example.com/feed.csv"}
	// failure: 429 Too Many Requests (http_429)
}

// A feed is downloaded into a directory, here without a pool.
func ExampleFetch() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "id,name\n1,lamp\n2,chair\n")
	}))
	defer shop.Close()
	dir, err := os.MkdirTemp("", "feeds")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// Without a client of its own Fetch connects to public addresses only: input_url comes from users.
	fetch, err := handlers.Fetch(dir, handlers.FetchOptions{Client: shop.Client(), MaxBytes: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	payload, _ := json.Marshal(map[string]string{"input_url": shop.URL + "/feed.csv"})
	told, err := worker.Try(context.Background(), fetch, &worker.Attempt{UID: "tbl_1", AttemptUID: "a1", Payload: payload})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range told {
		fmt.Printf("%s %q\n", message.Type, message.Status)
	}
	feed, _ := os.ReadFile(filepath.Join(dir, "tbl_1"))
	fmt.Print(string(feed))

	// Output:
	// user_friendly_status "Downloading: 23 B of 23 B"
	// user_friendly_status "Downloaded 2 rows, 23 B"
	// success ""
	// id,name
	// 1,lamp
	// 2,chair
}
