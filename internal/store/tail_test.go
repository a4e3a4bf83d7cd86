package store

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func tailStore(t *testing.T, s *testkit.Server) *Store {
	t.Helper()
	clients, err := Connect(s.Addr, ConnectOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := New(clients, Config{})
	must(t, err)
	return store
}

// fail stores a model whose first attempt fails for good, in three transitions.
func fail(t *testing.T, store *Store, now time.Time) {
	t.Helper()
	records, err := store.Load(t.Context(), []string{"tbl_1"})
	must(t, err)
	record, no := records["tbl_1"], false
	created, _, err := record.Put(model.Definition{UID: "tbl_1", Payload: "{}"}, policy.Default(), false, now)
	must(t, err)
	transitions := []*Transition{record.Decide(created, now)}
	transitions = append(transitions, record.Decide(record.Start(now, "a1"), now))
	failure := policy.Failure{Reason: "HTTP 404", Retryable: &no, UserFriendlyReason: "The feed is gone"}
	transitions = append(transitions, record.Decide(record.Fail(failure, now.Add(time.Second)), now.Add(time.Second)))
	for _, transition := range transitions {
		codes, err := store.Commit(t.Context(), Batch{Now: now, MaxQueued: 10, Items: []Item{{Transition: transition}}})
		if err != nil || codes[0] != CodeApplied {
			t.Fatalf("Commit = %v, %v; want applied", codes, err)
		}
	}
}

func TestTailReturnsEachTransitionOnceInOrder(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		store := tailStore(t, s)
		now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
		fail(t, store, now)
		entries, last, err := store.Report().Tail(t.Context(), TailStart)
		must(t, err)
		want := []model.JournalEntry{
			{UID: "tbl_1", Event: model.EventCreate, At: now, RefreshAt: now, Why: "saved: refresh now"},
			{
				UID: "tbl_1", Event: model.EventStart, At: now, AttemptUID: "a1", AttemptNo: 1,
				RefreshAt: now.Add(policy.DefaultTimeout), DeadlineAt: now.Add(policy.DefaultTimeout), Why: "if lost: retry 1/3 at once, none planned",
			},
			{
				UID: "tbl_1", Event: model.EventFailure, At: now, AttemptUID: "a1", AttemptNo: 1, EndedNo: 1, Why: "final: not retryable",
				Reason: "HTTP 404", Final: true, DisabledReason: "The feed is gone",
			},
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
		entries, again, err := store.Report().Tail(t.Context(), last)
		if err != nil || len(entries) > 0 || again != last {
			t.Errorf("Tail behind the last entry = %v, %q, %v; want none and the position %q", entries, again, err, last)
		}
	})
}

func TestTailOutboxReturnsEachNotificationOnce(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		store := tailStore(t, s)
		now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
		fail(t, store, now)
		entries, last, err := store.Report().TailOutbox(t.Context(), TailStart)
		want := []model.Notification{{UID: "tbl_1", Notice: policy.NoticeDisabled, At: now, AttemptNo: 1, Reason: "The feed is gone", Why: "final: not retryable"}}
		if diff := cmp.Diff(want, entries); diff != "" || err != nil {
			t.Errorf("%v, entries (-want +got):\n%s", err, diff)
		}
		entries, again, err := store.Report().TailOutbox(t.Context(), last)
		if err != nil || len(entries) > 0 || again != last {
			t.Errorf("TailOutbox behind the last entry = %v, %q, %v; want none and the position %q", entries, again, err, last)
		}
	})
}
