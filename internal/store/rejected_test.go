package store

import (
	"context"
	"testing"
)

func (b *bench) rejectedMessages() []Rejected {
	b.t.Helper()
	entries, err := b.Fleet().Rejected(context.Background())
	must(b.t, err)
	return entries
}

func (b *bench) requeueRejected(entries ...Rejected) int {
	b.t.Helper()
	moved, err := b.Fleet().RequeueRejected(context.Background(), entries)
	must(b.t, err)
	return moved
}

func TestARequeuedMessageGoesBackOnceToTheTailOfItsListByteForByte(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":claimed:p1": list{"o\xff\x00", "o", "osame", "osame"}, ":claimed:control": list{"c{}"}, ":holder": "p1"})
		var batch []Item
		for _, entry := range []string{"o\xff\x00", "o", "osame", "osame", "c{}"} {
			batch = append(batch, Item{Message: Claimed{entry}, Counter: "malformed", Reason: "bad"})
		}
		b.settle("p1", batch...)
		b.seed(keys{"-output": list{"before"}})
		entries := b.rejectedMessages()
		expectEqual(t, "moved", 5, b.requeueRejected(entries...))
		b.unchanged(func() { expectEqual(t, "moved again", 0, b.requeueRejected(entries...)) })
		b.expect(keys{
			"-output": list{"before", "\xff\x00", "", "same", "same"}, "-control": list{"{}"}, ":holder": "p1", ":stats": hash{"malformed": "5"},
		})
	})
}

func TestAMessageOfWhichOnlyTheBeginningIsKeptIsNotRequeued(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":rejected": list{`{"at":"x","source":"output","reason":"y","raw":"{","bytes":"9"}`, "by hand", `{"source":"nowhere"}`}})
		b.unchanged(func() {
			for _, entry := range b.rejectedMessages() {
				if moved, err := b.Fleet().RequeueRejected(t.Context(), []Rejected{entry}); err == nil || moved != 0 {
					t.Errorf("%+v: moved %d, %v", entry, moved, err)
				}
			}
		})
	})
}

func TestNothingIsRequeuedIntoAKeyThatHoldsSomethingElse(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":rejected": list{`{"source":"output","raw":"m"}`}, "-output": "text"})
		b.unchanged(func() {
			if _, err := b.Fleet().RequeueRejected(t.Context(), b.rejectedMessages()); err == nil {
				t.Error("want an error")
			}
		})
	})
}

func TestARequeuedCommandIsHandledThoughItsIDWasNotedWhenItWasRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		refused := `{"source":"control","raw":"{\"type\":\"enable\",\"uid\":\"m\",\"command_id\":\"one\"}"}`
		b.seed(keys{":rejected": list{refused}, ":commands": scores{"one": 1, "two": 2}})
		expectEqual(t, "moved", 1, b.requeueRejected(b.rejectedMessages()...))
		b.expect(keys{"-control": list{`{"type":"enable","uid":"m","command_id":"one"}`}, ":commands": scores{"two": 2}})
	})
}

func TestADroppedMessageIsForgottenOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":rejected": list{"a", "b", "a", "c"}})
		entries := b.rejectedMessages()
		for _, want := range []int{3, 0} {
			dropped, err := b.Fleet().DropRejected(t.Context(), entries[:3])
			if err != nil || dropped != want {
				t.Errorf("dropped %d, want %d, %v", dropped, want, err)
			}
		}
		b.expect(keys{":rejected": list{"c"}})
	})
}

func TestTheNewestRejectedMessageAboutAModelIsFoundInAnyPart(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		q, err := newQueue(b.Clients, b.config, settings{parts: 2})
		must(t, err)
		for part, texts := range []list{
			{`{"at":"2026-11-21T06:00:02Z","uid":"m","reason":"second"}`, `{"at":"2026-11-21T06:00:09Z","uid":"n"}`},
			{`{"at":"2026-11-21T06:00:01Z","uid":"m","reason":"first"}`, "garbage"},
		} {
			for _, text := range texts {
				b.redis.RPush(t.Context(), q.Parts[part].Keys.Rejected, text)
			}
		}
		for _, part := range q.Parts {
			if last, found, err := part.Fleet().RejectionAbout(t.Context(), "m"); !found || last.Reason != "second" || err != nil {
				t.Errorf("found %v %+v, %v", found, last, err)
			}
		}
		if _, found, err := q.Parts[0].Fleet().RejectionAbout(t.Context(), "nobody"); found || err != nil {
			t.Errorf("found one about nobody, %v", err)
		}
	})
}
