package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model/policy"
)

func TestTenExamplesOfAFailureAreReadAlsoFromAQueueOfSeveralParts(t *testing.T) {
	f, ctx := open(t, testkit.Miniredis(t)), t.Context()
	const id = "0123456789ab"
	failed := make(map[string]int64)
	for i := range 40 {
		uid := fmt.Sprint("x", i)
		keys := f.Of(uid).Keys
		failed[keys.Queue]++
		f.client.HSet(ctx, keys.Model(uid), "rev", "1", "error", id, "failing_since", "2026-11-21T06:00:00.000Z")
		f.client.ZAdd(ctx, keys.Failing, redis.Z{Score: float64(i), Member: uid})
		f.client.ZIncrBy(ctx, keys.Errors, 1, id)
		f.client.HSet(ctx, keys.Error(id), "signature", "HTTP 500", "failures", "1")
	}
	stopIf(t, len(failed) != 2, "want failures in both parts, got %v", failed)
	found, err := Operator{Queue: f.Queue}.Failure(ctx, id)
	failIf(t, err != nil || len(found.Examples) != maxExamples || found.Models != 40,
		"want ten examples of 40 models, got %d of %d, %v", len(found.Examples), found.Models, err)
}

func TestAPolicyThatCannotBeCompletedIsNoPolicy(t *testing.T) {
	text := `{"name":"feeds","fresh_within":"1h","warn_within":"2h"}`
	in := Inputs{Open: func(string) (string, io.ReadCloser, error) { return "-", io.NopCloser(strings.NewReader(text)), nil }}
	if found, err := in.Policies(t.Context(), "-"); err == nil || found != nil {
		t.Errorf("want a refusal of warn_within alone, got %v, %v", found, err)
	}
	text = strings.Replace(text, "2h", "30m", 1)
	found, err := in.Policies(t.Context(), "-")
	failIf(t, err != nil || len(found) != 1 || found[0].Policy.Timeout != policy.Default().Timeout,
		"want one completed by the default, got %v, %v", found, err)
}

func TestWhoAwaitsABulkIsToldThatItCannotBeRead(t *testing.T) {
	f := open(t, testkit.Miniredis(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	f.client.ZAdd(ctx, f.Parts[0].Keys.Bulks, redis.Z{Score: 1, Member: "b1"})
	f.client.HSet(ctx, f.Parts[0].Keys.Bulk("b1"), "since", "1", "action", "dance")
	_, err := Operator{Queue: f.Queue}.AwaitBulk(ctx, "b1", func(Bulk) {}, func(string) {})
	failIf(t, err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded), "want the problem told at once, got %v", err)
}
