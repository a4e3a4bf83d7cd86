package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/worker"
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
	for said := ""; !strings.Contains(said, `"success"`); { // started, then one status or two, then success
		reply, err := client.BLPop(t.Context(), 0, "thumbnails-output").Result()
		if err != nil {
			t.Fatal(err)
		}
		said = reply[1]
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheExampleStopsWhenItsAttemptNoLongerCounts(t *testing.T) {
	ctx, lose := context.WithCancelCause(t.Context())
	lose(worker.ErrFenceLost)
	attempt := &worker.Attempt{Payload: []byte(`{"input_url":"http://x/banner.png"}`)}
	if err := refresh(ctx, attempt); !errors.Is(err, worker.ErrFenceLost) {
		t.Errorf("want the work stopped, got %v", err)
	}
}
