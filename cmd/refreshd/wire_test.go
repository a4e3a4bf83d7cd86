package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/worker"
)

// named is a queue with names of its own, and the daemons that opened it.
type named struct {
	*console
	part       *store.Store
	queue      *fixture.Queue
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

// openNamed sets the names of the queue bigtables, and opens it as daemons do. The clock shows fixture.Start.
func openNamed(t *testing.T, server *testkit.Server, flags ...string) *named {
	t.Helper()
	n := &named{console: at(t, server), queue: fixture.New(t, server)}
	n.do(append([]string{"queue", "set"}, flags...)...)
	client := server.Client(t)
	queue, err := store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, store.Config{Clock: n.queue.Clock.Now})
	if err == nil {
		n.part = queue.Parts[0]
		n.dispatcher, err = dispatcher.New(dispatcher.RoomsOf(n.part), dispatcher.Config{})
	}
	if err == nil {
		n.poller, err = poller.New(poller.RoomsOf(n.part), poller.Config{Owner: "p1"})
	}
	must(t, err)
	return n
}

func (n *named) round() {
	n.t.Helper()
	must(n.t, check.Only(n.poller.RunOnce(n.t.Context())))
	must(n.t, check.Only(n.dispatcher.RunOnce(n.t.Context())))
}

func (n *named) input() []string { return n.queue.List(n.part.Keys.Input) }

func TestAQueueWithNamesOfItsOwnServesAForeignWorkerFromEndToEnd(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		n := openNamed(t, server, "--model-name", "banner_uid", "--payload", "nested")
		put := func(url string) string {
			return fmt.Sprintf(`{"type":"put","uid":"b","payload":{"banner_uid":"mine","deadline_at":%q},"policy":{"timeout":"1m","retries":[0,"30s"]}}`, url)
		}
		entry := func(url, fence string) string {
			return fmt.Sprintf(`{"banner_uid":"b","refresh_attempt_uid":%q,"payload":{"banner_uid":"mine","deadline_at":%q},"attempt_no":1,"deadline_at":"2026-11-21T07:01:00.000Z",`+
				`"fence":%s,"due_at":"2026-11-21T07:00:00.000Z","for":"change"}`,
				n.queue.Attempt("b"), url, fence)
		}
		n.queue.Command(put("http://1"))
		n.round()
		diff := cmp.Diff([]string{entry("http://1", "1795244400000")}, n.input())
		stopIf(t, diff != "", "%v", diff)
		n.queue.Command(put("http://2")) // it replaces the present one
		n.round()
		diff = cmp.Diff([]string{entry("http://2", "1795244400001")}, n.input())
		stopIf(t, diff != "", "%v", diff)
		n.queue.Redis.LPop(t.Context(), n.part.Keys.Input)
		attempt := n.queue.Attempt("b")
		n.queue.Say(fmt.Sprintf(`{"type":"started","uid":"b","attempt_uid":%q,"worker":"w"}`, attempt))
		n.round()
		worker := n.queue.Model("b")["worker"]
		failIf(t, worker != "w", "expected the short names understood, found worker %q", worker)
		n.queue.Say(
			fmt.Sprintf(`{"type":"success","banner_uid":"b","request_attempt_uid":"another","refresh_attempt_uid":%q}`, attempt),
			`{"type":"success","banner_uid":"nobody","attempt_uid":"x"}`,
			fmt.Sprintf(`{"type":"success","banner_uid":"b","refresh_attempt_uid":%q}`, attempt))
		n.round()
		stats := n.queue.Stats()
		got := [3]int{stats["no_uid"], stats["unknown_model"], stats["success"]}
		failIf(t, got != [3]int{1, 1, 1}, "expected a contradiction, an unknown model and a success, found %v", stats)
		n.queue.Command(`{"type":"run","uid":"b"}`)
		n.round()
		n.queue.Clock.Turn(2 * time.Minute) // its attempt is taken back where nobody has taken it
		n.round()
		left := n.input()
		failIf(t, len(left) != 0 || n.queue.Stats()["withdrawn"] != 1, "expected it taken back, found %q, %v", left, n.queue.Stats())
		expectContains(t, n.do("rejected", "ls"), "refresh_attempt_uid: expected the same uid as request_attempt_uid, found another", `banner_uid: expected a stored model, found "nobody"`)
	})
}

func TestHowAQueueWritesItsMessagesIsShownAndNotChangedWhileItIsUsed(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, q := at(t, server), fixture.Live(t, server)
		c.do("queue", "set", "--model-name", "banner_uid")
		expectContains(t, c.do("queue", "set", "--payload", "nested"), "bigtables: 1 part, bigtables\nmodel: banner_uid, attempt: refresh_attempt_uid, payload: nested\n")
		want := map[string]any{"queue": "bigtables", "parts": 1.0, "model_name": "banner_uid", "attempt_name": "refresh_attempt_uid", "payload": "nested", "new_error_above": 50.0}
		equal(t, want, c.object("queue", "show"))
		must(t, check.Only(q.Store.Claim(t.Context(), "p1", store.Holding{}, 1, time.Second)))
		q.Redis.ZAdd(t.Context(), q.Store.Keys.Running, goredis.Z{Score: 1, Member: "m"})
		q.Redis.ZAdd(t.Context(), q.Store.Keys.Workers, goredis.Z{Score: 1, Member: "dead"})
		c.do("queue", "set", "--payload", "nested") // as it is
		expectContains(t, c.fail(exitFailed, "queue", "set", "--payload", "top"),
			"queue: expected one that nobody uses at the moment, so that all read the same, found poller p1, 1 attempts that are queued or running. To set it anyway, add --force.")
		expectContains(t, c.do("queue", "set", "--payload", "top", "--force"), "payload: top\n")

		expectContains(t, c.fail(exitFailed, "queue", "set", "--attempt-name", "banner_uid", "--force"), `attempt_name: expected `, `found "banner_uid"`)
		q.Redis.HSet(t.Context(), q.Store.Keys.Settings, "model_name", "no name")
		expectContains(t, c.fail(exitUsage, "queue", "show"), `{bigtables}:settings.model_name: expected `, `found "no name"`)
	})
}

type watched struct {
	store.Pool
	looked chan struct{}
}

func (w watched) Fences(ctx context.Context, uids []string) ([]store.Fence, time.Time, error) {
	fences, now, err := w.Pool.Fences(ctx, uids)
	backoff.Signal(w.looked)
	return fences, now, err
}

func TestAPoolWorksUntilTheDeadlineThatStartedHasMoved(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		n := openNamed(t, server, "--model-name", "banner_uid", "--attempt-name", "try", "--payload", "nested")
		n.queue.Command(`{"type":"put","uid":"b","payload":{"try":1},"policy":{"timeout":"1m"}}`)
		n.round()
		n.queue.Clock.Turn(50 * time.Second) // it has waited in line
		attempts, finish := make(chan *worker.Attempt, 1), make(chan struct{})
		queue := watched{n.part.Pool(), make(chan struct{}, 1)}
		pool, err := worker.New(queue, func(ctx context.Context, a *worker.Attempt) error {
			attempts <- a
			select {
			case <-finish:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, worker.Config{Name: "w", FenceEvery: 10 * time.Millisecond})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- pool.Run(ctx) }()
		attempt := check.Await(t, attempts, "the attempt")
		old := attempt.Deadline()
		check.Eventually(t, "started is said", func() bool { return len(n.queue.List(n.part.Keys.Output)) == 1 })
		if said := n.queue.List(n.part.Keys.Output)[0]; attempt.UID != "b" || string(attempt.Payload) != `{"try":1}` || said != fmt.Sprintf(`{"type":"started","banner_uid":"b","try":%q,"worker":"w"}`, n.queue.Attempt("b")) {
			t.Errorf("expected words as the queue has them, found %s for %s", said, attempt.Payload)
		}
		n.round()
		n.queue.Clock.Turn(15 * time.Second) // past the deadline of the entry
		for range 3 {                        // the first may have begun before that
			check.Await(t, queue.looked, "a look at the deadline")
		}
		want := old.Add(50 * time.Second)
		failIf(t, !attempt.Deadline().Equal(want) || !attempt.DeadlineAt.Equal(old),
			"expected the deadline moved from %s to %s, found %s and %s", old, want, attempt.DeadlineAt, attempt.Deadline())
		close(finish)
		stop()
		must(t, check.Await(t, ended, "the end of the pool"))
		equal(t, []string{fmt.Sprintf(`{"type":"success","banner_uid":"b","try":%q}`, n.queue.Attempt("b"))}, n.queue.List(n.part.Keys.Output))
		n.round()
		stats := n.queue.Stats()
		failIf(t, stats["success"] != 1 || stats["late"] != 0 || stats["timeout"] != 0, "expected a success in time, found %v", stats)
	})
}

func TestAnAttemptOfAQueueWithNamesOfItsOwnIsTakenBack(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		n := openNamed(t, server, "--model-name", "banner_uid", "--attempt-name", "try")
		n.queue.Command(`{"type":"put","uid":"b","payload":{"refresh_attempt_uid":"mine"},"policy":{"timeout":"1m"}}`)
		n.round()
		list := n.input()
		stopIf(t, len(list) != 1 || !strings.HasPrefix(list[0], `{"banner_uid":"b","try":`), "expected an attempt, found %q", list)
		n.queue.Clock.Turn(2 * time.Minute)
		n.round()
		n.queue.Command(`{"type":"run","uid":"b","force":true}`)
		n.round()
		stats := n.queue.Stats()
		failIf(t, len(n.input()) != 1 || stats["withdrawn"] != 1 || stats["timeout"] != 0,
			"expected one attempt withdrawn, one superseded and one queued, found %v and %q", stats, n.input())
	})
}
