package main

import (
	"context"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestTheExampleAnswers(t *testing.T) {
	server := testkit.Miniredis(t)
	client := server.Client(t)
	t.Setenv("REDIS_URL", server.URL)
	t.Setenv("REFRESHD_QUEUE", "thumbnails")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	for _, command := range [][]any{
		{"HSET", "thumbnails:model:banner", "attempt_uid", "a1"},
		{"RPUSH", "thumbnails-input", `{"big_table_uid":"banner","refresh_attempt_uid":"a1","input_url":"http://x/banner.png"}`},
	} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // started, status, success
		if err := client.BLPop(t.Context(), 0, "thumbnails-output").Err(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
