package outbox_test

import (
	"testing"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func rejectedMessages(b *bench) []store.Rejected {
	b.T.Helper()
	entries, err := outbox.Of(b.Store).Rejected(b.T.Context())
	must(b.T, err)
	return entries
}

// requeueAll requeues rejected messages one by one, and returns how many were moved, and how often it was refused.
func requeueAll(b *bench) any {
	moved, refused := 0, 0
	for _, entry := range rejectedMessages(b) {
		n, err := outbox.Of(b.Store).RequeueRejected(b.T.Context(), []store.Rejected{entry})
		if moved += n; err != nil {
			refused++
		}
	}
	return [2]int{moved, refused}
}

func TestEachCallAboutRejectedMessagesChangesExactlyWhatItShould(t *testing.T) {
	twice := func(b *bench, entries []store.Rejected, do func([]store.Rejected) (int, error)) any {
		first, err := do(entries)
		must(b.T, err)
		again, err := do(entries)
		must(b.T, err)
		return []int{first, again}
	}
	fixture.EachCall(t, []fixture.Call{
		{
			Name: "a requeued message goes back once to the tail of its list, byte for byte",
			Seed: keys{":claimed:p1": list{"o\xff\x00", "o", "osame", "osame"}, ":claimed:control": list{"n1 {}"}, ":holder": "p1", "-output": list{"before"}},
			Call: func(b *bench) any {
				b.Reject("p1", "o\xff\x00", "o", "osame", "osame", "n1 {}")
				return twice(b, rejectedMessages(b), func(all []store.Rejected) (int, error) {
					return outbox.Of(b.Store).RequeueRejected(b.T.Context(), all)
				})
			},
			Says: []int{5, 0},
			Want: keys{"-output": list{"before", "\xff\x00", "", "same", "same"}, "-control": list{"{}"}, ":holder": "p1", ":stats": hash{"malformed": "5"}},
		},
		{
			Name: "a message of which only the beginning is kept is not requeued", Call: requeueAll, Says: [2]int{0, 3},
			Seed: keys{":rejected": list{`{"at":"x","source":"output","reason":"y","raw":"{","bytes":"9"}`, "by hand", `{"source":"nowhere"}`}},
		},
		{
			Name: "nothing is requeued into a key that holds something else", Call: requeueAll, Says: [2]int{0, 1},
			Seed: keys{":rejected": list{`{"source":"output","raw":"m"}`}, "-output": "text"},
		},
		{
			Name: "a requeued command is handled though its id was noted when it was refused", Call: requeueAll, Says: [2]int{1, 0},
			Seed: keys{
				":rejected": list{`{"source":"control","raw":"{\"type\":\"enable\",\"uid\":\"m\",\"command_id\":\"one\"}"}`}, ":commands": scores{"one": 1, "two": 2},
			},
			Want: keys{"-control": list{`{"type":"enable","uid":"m","command_id":"one"}`}, ":commands": scores{"two": 2}},
		},
		{
			Name: "a dropped message is forgotten once",
			Seed: keys{":rejected": list{"a", "b", "a", "c"}},
			Call: func(b *bench) any {
				return twice(b, rejectedMessages(b)[:3], func(all []store.Rejected) (int, error) { return outbox.Of(b.Store).DropRejected(b.T.Context(), all) })
			},
			Says: []int{3, 0},
			Want: keys{":rejected": list{"c"}},
		},
	})
}

func TestTheNewestRejectedMessageAboutAModelIsFoundInAnyPart(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		must(t, store.Create(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue}, 2))
		q, err := store.Open(t.Context(), b.Clients, store.Config{Queue: b.Keys.Queue})
		must(t, err)
		for part, texts := range []list{
			{`{"at":"2026-11-21T06:00:02Z","uid":"m","reason":"second"}`, `{"at":"2026-11-21T06:00:09Z","uid":"n"}`},
			{`{"at":"2026-11-21T06:00:01Z","uid":"m","reason":"first"}`, "garbage"},
		} {
			must(t, b.Redis.RPush(t.Context(), q.Parts[part].Keys.Rejected, texts).Err())
		}
		for _, part := range q.Parts {
			last, found, err := outbox.Of(part).RejectionAbout(t.Context(), "m")
			failIf(t, !found || last.Reason != "second" || err != nil, "found %v %+v, %v", found, last, err)
		}
		if _, found, err := outbox.Of(q.Parts[0]).RejectionAbout(t.Context(), "nobody"); found || err != nil {
			t.Errorf("found one about nobody, %v", err)
		}
	})
}
