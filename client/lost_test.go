package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func TestACommandThatIsLostWithTheConnectionIsPushedAgain(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	clients, lost := fixture.Connect(t, s.URL), false
	queue := check.Got(store.Open(t.Context(), clients, store.Config{}))(t)
	control := queue.Parts[0].Keys.Control
	clients.Block.AddHook(testkit.Hook(func(ctx context.Context, _ []goredis.Cmder, next func() error) error {
		if lost {
			return next()
		}
		lost = true
		must(t, fixture.Connect(t, s.URL).Write.Del(ctx, control).Err())
		return io.ErrUnexpectedEOF
	}))
	shop := newClient(t, queue, client.Config{Timeout: check.Limit})
	done := make(chan error, 1)
	go func() {
		reply, err := shop.Put(t.Context(), client.Definition{UID: "tbl_1"})
		if reply.Outcome != client.Applied && err == nil {
			err = fmt.Errorf("expected it applied, found %+v", reply)
		}
		done <- err
	}()
	serve(t, fixture.Open(t, s.URL, store.Config{}))
	must(t, <-done)
}

func TestManyModelsArePushedByTheMebibyteAndNoReplyLosesTheRepliesBefore(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	queue := fixture.Open(t, s.URL, store.Config{})
	var definitions []client.Definition
	for i := range 40 {
		definitions = append(definitions, client.Definition{UID: fmt.Sprint("m", i), Payload: map[string]string{"text": strings.Repeat("x", 60_000)}})
	}
	shop := newClient(t, queue, client.Config{Timeout: time.Second})
	replies, err := shop.PutMany(t.Context(), definitions)
	pushed := queue.Parts[0].Clients.Read.LLen(t.Context(), queue.Parts[0].Keys.Control).Val()
	failIf(t, pushed != 17 || len(replies) != 17 || !errors.Is(err, client.ErrNoReply) || !strings.Contains(err.Error(), "about m0, m1, m2 and 14 others"),
		"expected 17 to be pushed, found %d, %d replies, %v", pushed, len(replies), err)

	serve(t, queue)
	patient := newClient(t, queue, client.Config{Timeout: time.Minute})
	must(t, check.Only(patient.Put(t.Context(), client.Definition{UID: "last"}))) // those before it are answered
	shop = newClient(t, queue, client.Config{Timeout: 3 * time.Second})
	large := client.Definition{UID: "big", Payload: strings.Repeat("x", 1<<20)}
	replies, err = shop.PutMany(t.Context(), []client.Definition{{UID: "a"}, large, {UID: "c"}})
	failIf(t, len(replies) != 2 || replies[0].Outcome != client.Applied || replies[1] != client.Reply{} || !errors.Is(err, client.ErrNoReply) ||
		!strings.Contains(err.Error(), "about big "), "expected the first reply, found %+v, %v", replies, err)
}

func TestWhatIsNoJSONIsRefusedWithItsFieldBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	shop := newClient(t, queue, client.Config{Timeout: time.Second})
	for field, unfit := range map[string]client.Definition{
		"payload": {UID: "big", Payload: map[string]any{"rows": math.NaN()}},
		"policy":  {UID: "big", Policy: map[string]any{"timeout": func() {}}},
	} {
		_, err := shop.Put(t.Context(), unfit)
		_, all := shop.PutMany(t.Context(), append(slices.Repeat([]client.Definition{{UID: "a"}}, 300), unfit))
		for _, err := range []error{err, all} {
			refused, is := errors.AsType[*document.Error](err)
			failIf(t, !is || refused.Field != field || !strings.Contains(err.Error(), "big: "), "%s: expected the model and its field, found %v", field, err)
		}
	}
	sent := queue.Parts[0].Clients.Read.LLen(t.Context(), queue.Parts[0].Keys.Control).Val()
	failIf(t, sent > 0, "expected nothing to be sent, found %d commands", sent)
}

func TestWithoutAReplyTheNextCommandAsksForThePartsOfTheQueueAnew(t *testing.T) {
	t.Parallel()
	s := testkit.Miniredis(t)
	shop := newClient(t, fixture.Open(t, s.URL, store.Config{Queue: "q"}), client.Config{Timeout: time.Second})
	_, err := shop.Run(t.Context(), "a", false)
	failIf(t, !errors.Is(err, client.ErrNoReply), "expected no reply, found %v", err)
	must(t, fixture.Connect(t, s.URL).Write.HSet(t.Context(), "{q}:settings", "parts", 3).Err())
	_, before := shop.Run(t.Context(), "a", false)
	_, then := shop.Run(t.Context(), "a", false)
	failIf(t, !strings.Contains(before.Error(), " queue q ") || !strings.Contains(then.Error(), " queue {q:"), "expected a part to be asked, found %v, then %v", before, then)
}

func TestAListOfLateModelsHasNoneThatNeverHadASuccess(t *testing.T) {
	t.Parallel()
	queue := fixture.Open(t, testkit.Miniredis(t).URL, store.Config{})
	part, shop := queue.Parts[0], newClient(t, queue, client.Config{})
	members := []goredis.Z{{Score: 1, Member: "late"}, {Score: float64(model.Never.UnixMilli()), Member: "never"}}
	must(t, part.Clients.Write.ZAdd(t.Context(), part.Keys.Late, members...).Err())
	must(t, part.Clients.Write.SAdd(t.Context(), part.Keys.Label("kind=feed"), "late", "never").Err())
	for _, selector := range []string{"status=late", "kind=feed, status=late"} {
		uids, err := shop.List(t.Context(), selector, "", 0)
		failIf(t, fmt.Sprint(uids) != "[late]" || err != nil, "%s: expected the late one, found %v, %v", selector, uids, err)
	}
	for selector, field := range map[string]string{"key=host=example.com": "selector", "kind=feed": "limit"} {
		_, err := shop.List(t.Context(), selector, "", -1)
		refused, is := errors.AsType[*document.Error](err)
		failIf(t, !is || refused.Field != field, "%s: expected %s refused, found %v", selector, field, err)
	}
}
