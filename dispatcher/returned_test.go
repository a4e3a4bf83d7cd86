package dispatcher_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// update saves a model with another payload.
func (b *bundle) update(uid string) {
	b.t.Helper()
	records, err := b.Store.Load(b.t.Context(), []string{uid})
	must(b.t, err)
	record := records[uid]
	record.Taken = true
	definition := model.Definition{UID: uid, Payload: `{"input_url":"http://new"}`, PolicyName: record.PolicyName}
	decision, _, err := record.Put(definition, record.Policy, true, b.now())
	must(b.t, err)
	batch := store.Batch{Now: b.now(), Items: []store.Item{{Transition: record.Decide(decision, b.now())}}}
	if codes, err := b.Store.Commit(b.t.Context(), batch); err != nil || codes[0] != store.CodeApplied {
		b.t.Fatalf("%v, %v", codes, err)
	}
}

// A worker takes an attempt, its model is saved anew meanwhile, and the worker returns the entry as it was: nobody began it, so nothing failed.
func TestAnAttemptThatWasReturnedAfterAnUpdateIsWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		entry := b.Redis.LPop(t.Context(), b.Store.Keys.Input).Val()
		b.update("tbl_1")
		b.Redis.RPush(t.Context(), b.Store.Keys.Input, entry)
		b.Clock.Turn(time.Minute)
		if round := b.round(d); round.TimedOut != 0 || round.Withdrawn != 1 {
			t.Errorf("want 1 withdrawn, got %+v", round)
		}
		if entries := b.List(b.Store.Keys.Input); len(entries) != 0 {
			t.Errorf("want the entry taken back, got %q", entries)
		}
	})
}
