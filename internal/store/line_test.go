package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func TestThePlaceInLineTellsHowManyAreBeforeAndHowFastTheyGo(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		entry := func(uid string) string { return `{"big_table_uid":"m","refresh_attempt_uid":"` + uid + `"}` }
		b.seed(keys{"-input": list{entry("a"), "nonsense", entry("b")}, ":stats": hash{"start": "200"}})
		for _, ticket := range []int{4, 20, 36} { // 16 a second
			must(t, b.SampleHead(t.Context(), ticket, b.now, time.Second))
			b.now = b.now.Add(time.Second)
		}
		b.now = b.now.Add(-time.Second)
		at := func(uid, attemptUID string) *Record {
			return &Record{Model: model.Model{UID: uid, State: model.State{AttemptUID: attemptUID}}}
		}
		place, err := b.Report().QueuePosition(t.Context(), at("m", "b"))
		failIf(t, err != nil || place != (QueuePosition{No: 3, Rate: 16}) || place.Wait() != 187500*time.Microsecond,
			"want the third place at 16 a second, got %+v, %s, %v", place, place.Wait(), err)
		b.seed(keys{":urgent": scores{"first": 1, "second": 2}, ":due": scores{"third": 1}})
		for uid, no := range map[string]int{"first": 4, "third": 5, "second": 6, "other": 0} {
			place, err := b.Report().QueuePosition(t.Context(), at(uid, ""))
			failIf(t, err != nil || place.No != no, "%s: want place %d, got %+v, %v", uid, no, place, err)
		}
		if place, err = b.Report().QueuePosition(t.Context(), at("m", "gone")); err != nil || place.No != 0 || place.Wait() != 0 {
			t.Errorf("want no place, got %+v, %v", place, err)
		}
	})
}

// Only what is news is noted: a front that was passed, or an empty list that was told already, is none.
func TestAFrontIsNotedWhenItIsNews(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"x"}, ":stats": hash{"start": "9"}})
		note := func(ticket int, after time.Duration, want list) {
			t.Helper()
			b.now = b.now.Add(after)
			must(t, b.SampleHead(t.Context(), ticket, b.now, time.Second))
			got, _ := b.state()[":front"].(list)
			expectEqual(t, "front", want, got)
		}
		note(0, 0, nil)
		note(5, 0, list{"5 1795240800000 1795240800000"})
		note(5, time.Second, list{"5 1795240800000 1795240801000"})
		note(3, time.Second, list{"5 1795240800000 1795240801000"}) // handed back
		note(7, 0, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000"})
		note(0, time.Second, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000"}) // something waits
		b.redis.Del(t.Context(), b.Keys.Input)
		note(0, 0, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000", "9 1795240803000"})
		note(0, time.Second, list{"5 1795240800000 1795240801000", "7 1795240802000 1795240802000", "9 1795240803000"})
		b.redis.HSet(t.Context(), b.Keys.Stats, "start", 2) // somebody has reset the counters
		note(1, 0, list{"1 1795240804000 1795240804000"})
	})
}

// Old fronts are thinned out to a tick's distance, so that they last for hours: nobody seems to have been taken sooner than was noted, nor more
// than a tick later.
func TestOldFrontsAreThinnedOutWithoutATickOfEvidenceLost(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct {
			every time.Duration // between two fronts
			empty int           // the list was found empty after so many
			most  int           // fronts that may be kept
			least time.Duration // that they reach back
		}{
			"four a tick":        {250 * time.Millisecond, 7000, 4200, headSamplesCap * 250 * time.Millisecond},
			"thinned out before": {800 * time.Millisecond, 7000, 8750, 100 * time.Minute},
		} {
			b.redis.Del(t.Context(), b.Keys.Front)
			b.redis.HSet(t.Context(), b.Keys.Stats, "start", 3*headSamplesCap)
			begin := b.now.Add(-(headSamplesCap + 1) * test.every).Truncate(time.Millisecond)
			seeded := make([]any, headSamplesCap)
			for i := range seeded {
				seen := begin.Add(time.Duration(i) * test.every).UnixMilli()
				seeded[i] = fmt.Sprintf("%d %d %d", 3*i+1, seen, seen+50)
				if i == test.empty {
					seeded[i] = fmt.Sprintf("%d %d", 3*i+1, seen)
				}
			}
			b.redis.RPush(t.Context(), b.Keys.Front, seeded...)
			before, errBefore := b.HeadSamples(t.Context())
			err := b.SampleHead(t.Context(), 3*headSamplesCap, b.now, time.Second)
			after, errAfter := b.HeadSamples(t.Context())
			stopIf(t, err != nil || errBefore != nil || errAfter != nil, "%v, %v, %v", err, errBefore, errAfter)
			back := after.At.Sub(after.Noted[0].FirstSeen)
			failIf(t, len(after.Noted) > test.most || back < test.least,
				"%s: want at most %d fronts of %s, got %d of %s", name, test.most, test.least, len(after.Noted), back)
			for ticket := after.Noted[0].Ticket; ticket < 3*headSamplesCap-3; ticket += long.Or(7, 1) {
				place := (ticket - 1) / 3
				for _, started := range []time.Duration{-time.Minute, 0, 49 * time.Millisecond, 51 * time.Millisecond} {
					s := &model.State{Ticket: ticket, StartedAt: begin.Add(time.Duration(place)*test.every + started)}
					if !s.StartedAt.After(after.Noted[0].FirstSeen) {
						continue
					}
					if late := after.TakenAt(s).Sub(before.TakenAt(s)); late < 0 || late > time.Second {
						t.Fatalf("%s: ticket %d, started %s after: taken %s later than it was noted", name, ticket, started, late)
					}
				}
			}
		}
	})
}
