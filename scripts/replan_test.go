package scripts

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// ruled stores a policy with a rule.
func (b *bench) ruled(t *testing.T, name, rule string) {
	t.Helper()
	p := policy.Default()
	p.Name, p.Rule = name, rule
	if err := b.PutPolicy(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) walks(t *testing.T) []Replan {
	t.Helper()
	walks, err := b.Replans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return walks
}

func TestAWalkOverTheModelsMeetsEachInSteps(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		pipe := b.redis.Pipeline()
		for i := range 1000 {
			pipe.HSet(t.Context(), b.Keys.Model(fmt.Sprint("m", i)), "rev", 1)
			pipe.Set(t.Context(), b.Keys.Payload(fmt.Sprint("m", i)), "{}", 0)
			pipe.Set(t.Context(), fmt.Sprint("other:model:m", i), "", 0)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		met, steps := map[string]int{}, 0
		for place := WalkBegins; place != WalkEnds; steps++ {
			var uids []string
			var err error
			if uids, place, err = b.WalkModels(t.Context(), place, 100); err != nil {
				t.Fatal(err)
			}
			for _, uid := range uids {
				met[uid]++
			}
		}
		if len(met) != 1000 {
			t.Errorf("expected 1000 models met, found %d in %d steps", len(met), steps)
		}
		if most := 1000/100 + 1; steps > most || b.server.Mini == nil && steps < 3 {
			t.Errorf("expected up to %d steps, found %d", most, steps)
		}
	})
}

func TestAWalkThatAnotherServerGoesOnWithBeginsAnew(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, uid := range []string{"a", "b"} {
			b.redis.HSet(t.Context(), b.Keys.Model(uid), "rev", 1)
		}
		uids, place, err := b.WalkModels(t.Context(), "f00/1152921504606846975", 100)
		if err != nil || len(uids) != 2 || place != WalkEnds {
			t.Errorf("expected both models, found %v, %q, %v", uids, place, err)
		}
	})
}

func TestAWalkIsMovedOnlyByWhomReadItLast(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.ruled(t, "a", "FREQ=DAILY")
		b.ruled(t, "b", "FREQ=DAILY")
		read := b.walks(t)
		b.now = b.now.Add(time.Second)
		b.ruled(t, "a", "FREQ=HOURLY") // begins anew
		for i := range read {
			read[i].Place, read[i].Seen, read[i].Changed = "x/7", 20, 3
		}
		codes, err := b.MoveReplans(t.Context(), read)
		expectEqual(t, "codes", []Code{CodeConflict, CodeApplied}, codes)
		walks := b.walks(t) // the older first
		if err != nil || len(walks) != 2 || walks[0].Policy != "b" || walks[0].Seen != 20 || walks[0].Changed != 3 || walks[0].Place != "x/7" || walks[1].Place != WalkBegins {
			t.Fatalf("expected the walk of b moved alone, found %+v, %v", walks, err)
		}
		walks[0].Place = WalkEnds
		if _, err := b.MoveReplans(t.Context(), walks[:1]); err != nil || len(b.walks(t)) != 1 {
			t.Errorf("expected the walk of b over, found %+v, %v", b.walks(t), err)
		}
	})
}

// One that another release has stored may be read by that one.
func TestAPolicyThatCannotBeReadIsNotWalkedFor(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.ruled(t, "a", "FREQ=DAILY")
		b.redis.HSet(t.Context(), b.Keys.Policies(), "a", `{"alignment":{"of":"tomorrow"}}`)
		b.redis.HSet(t.Context(), b.Keys.Replans(), "gone", "what is this?")
		walks := b.walks(t)
		if len(walks) != 2 || walks[0].Policy != "gone" || !walks[0].Readable || walks[0].Place != WalkBegins || walks[1].Readable {
			t.Errorf("expected gone readable and a not, found %+v", walks)
		}
	})
}
