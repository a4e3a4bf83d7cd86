package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func picks(t testing.TB, text string) model.Selector {
	t.Helper()
	selector, err := model.ParseSelector(text)
	must(t, err)
	return selector
}

// walk walks to the end, and counts how often it meets each model.
func (b *bench) walk(t *testing.T, selector string) (met map[string]int, steps int) {
	t.Helper()
	met = map[string]int{}
	for place := WalkBegins; place != WalkEnds; steps++ {
		uids, to, err := b.WalkModels(t.Context(), picks(t, selector), place, 100)
		must(t, err)
		for _, uid := range uids {
			met[uid]++
		}
		place = to
	}
	return met, steps
}

func TestAWalkOverTheModelsMeetsEachInSteps(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		pipe := b.redis.Pipeline()
		for i := range 1000 {
			uid := fmt.Sprint("m", i)
			pipe.HSet(t.Context(), b.Keys.Model(uid), "rev", 1)
			pipe.Set(t.Context(), b.Keys.Payload(uid), "{}", 0)
			pipe.Set(t.Context(), fmt.Sprint("other:model:m", i), "", 0)
			pipe.SAdd(t.Context(), b.Keys.Label(fmt.Sprint("even=", i%2)), uid)
			pipe.ZAdd(t.Context(), b.Keys.Failing, goredis.Z{Score: float64(i), Member: uid})
		}
		pipe.ZAdd(t.Context(), b.Keys.Disabled, goredis.Z{Score: 1, Member: "m7"})
		must(t, only(pipe.Exec(t.Context())))
		for selector, want := range map[string]int{
			"": 1000, "even=0|1": 1000, "even=1": 500, "even=0,status=disabled": 1, "status=failing": 1000, "uid=m1?": 10, "uid=m*": 1000, "uid=m1|nobody": 2, "even=2": 0,
			"even!=1": 1000, "status=failing|disabled": 1000, "policy=x": 1000,
		} {
			met, steps := b.walk(t, selector)
			failIf(t, len(met) != want, "%q: expected %d models met, found %d in %d steps", selector, want, len(met), steps)
			if most := 1000/100 + 2; steps > most || want == 1000 && b.server.Mini == nil && steps < 3 {
				t.Errorf("%q: expected up to %d steps, found %d", selector, most, steps)
			}
			// None of them is in a set of models that wait for something, and an action may meet them all the same.
			count, err := b.Report().FewPicked(t.Context(), picks(t, selector), 0, nil)
			failIf(t, err != nil || count < want, "%q: expected at least %d candidates, found %d, %v", selector, want, count, err)
		}
	})
}

func TestAWalkThatAnotherServerGoesOnWithBeginsAnew(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, uid := range []string{"a", "b"} {
			b.redis.HSet(t.Context(), b.Keys.Model(uid), "rev", 1)
		}
		for _, place := range []Place{"f00/all/0/1152921504606846975", "f00/1152921504606846975", "what is this?", ""} {
			uids, place, err := b.WalkModels(t.Context(), model.Selector{}, place, 100)
			failIf(t, err != nil || len(uids) != 2 || place != WalkEnds, "expected both models, found %v, %q, %v", uids, place, err)
		}
	})
}

func (b *bench) list(text string) (uids []string) {
	b.t.Helper()
	err := b.Report().EachSelected(b.t.Context(), picks(b.t, text), func(chunk []string) error {
		failIf(b.t, len(chunk) > redis.ScanCount, "a chunk of %d uids, want at most %d", len(chunk), redis.ScanCount)
		uids = append(uids, chunk...)
		return nil
	})
	must(b.t, err)
	slices.Sort(uids)
	return uids
}

func TestEachModelIsListedOnceAndNoneOfAnotherQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var want []string
		all := keys{":model:a:b": hash{"rev": "1"}, ":model:broken": "no hash", ":payload:other": "{}", ":due": scores{"ghost": 1}}
		for i := range 3 * redis.ScanCount {
			uid := fmt.Sprintf("tbl_%d", i)
			all[":model:"+uid], want = hash{"rev": "1"}, append(want, uid)
		}
		b.seed(all)
		for _, foreign := range []string{"bigtables:model:x", "{bigtables:1}:model:x", "x{bigtables}:model:x"} {
			must(t, b.write(foreign, "x"))
		}
		slices.Sort(want)
		expectEqual(t, "by prefix", want, b.list("uid=tbl_*"))
		expectEqual(t, "all", append([]string{"a:b", "broken"}, want...), b.list(""))
		enough := errors.New("enough")
		err := b.Report().EachSelected(t.Context(), model.Selector{}, func([]string) error { return enough })
		failIf(t, !errors.Is(err, enough), "found %v, want the error of the visitor", err)
	})
}

func TestPolicyNamesAreThoseThatPeopleGave(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		read := func() []string {
			names, err := b.Report().PolicyNames(t.Context())
			must(t, err)
			return names
		}
		expectEqual(t, "none", list{"default"}, read())
		b.seed(keys{":policies": hash{"nightly": "{}", "inline-0123456789abcdef": "{}", "default": "{}"}})
		expectEqual(t, "some", list{"default", "nightly"}, read())
	})
}

// SCAN may return a key twice while the table grows or shrinks.
func TestAKeyThatIsScannedTwiceIsListedOnce(t *testing.T) {
	seen := newSeen()
	expectEqual(t, "first", []string{"a", "b"}, seen.fresh([]string{"a", "b", "a"}))
	expectEqual(t, "second", []string{"c"}, seen.fresh([]string{"b", "c"}))
}

// Some models are due at the same instant, more than a chunk; a start or join between two pages moves all models behind it, also by more
// than two pages share.
func TestEachIndexedModelComesOnceWhileOthersInFrontStartAndEnd(t *testing.T) {
	const models = 2*rankPage + 7
	for _, step := range []struct{ start, join int }{{0, 0}, {30, 0}, {rankShared - 50, 0}, {0, 100}, {0, 300}, {300, 299}} {
		t.Run(fmt.Sprintf("%+v", step), func(t *testing.T) {
			everywhere(t, func(t *testing.T, b *bench) {
				due, met := []goredis.Z{{Score: -1, Member: "by hand"}}, map[string]int{}
				for i := range models {
					due = append(due, goredis.Z{Score: float64(max(500, i)), Member: fmt.Sprint("m", i)})
				}
				must(t, b.redis.ZAdd(t.Context(), b.Keys.Due, due...).Err())
				must(t, b.redis.ZAdd(t.Context(), b.Keys.Running, goredis.Z{Score: 9, Member: "r"}).Err())
				joined := 0
				must(t, b.Report().EachIndexed(t.Context(), b.now, func(chunk Indexed) error {
					for _, uid := range chunk.UIDs {
						met[uid]++
					}
					if met["by hand"] > 0 && step.start > 0 { // the first ones start, and of those that ran before one has ended, and one waits for a retry
						must(t, b.redis.ZRemRangeByRank(t.Context(), b.Keys.Due, 0, int64(step.start-1)).Err())
						must(t, b.redis.ZAdd(t.Context(), b.Keys.Due, goredis.Z{Score: 1e6, Member: "r"}, goredis.Z{Score: 3800, Member: "by hand"}).Err())
					}
					for range step.join {
						joined++
						must(t, b.redis.ZAdd(t.Context(), b.Keys.Due, goredis.Z{Score: 0, Member: fmt.Sprint("late", joined)}).Err())
					}
					return nil
				}))
				for _, one := range append(due[1:], goredis.Z{Member: "r"}) {
					failIf(t, met[one.Member.(string)] != 1, "%+v: %v came %d times", step, one.Member, met[one.Member.(string)])
				}
			})
		})
	}
}

func TestOnlyModelsThatWaitMoreThanAMinuteAreTakenForOnesThatWaitLater(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		var due []goredis.Z
		for i := range rankPage + rankShared {
			due = append(due, goredis.Z{Score: float64(b.now.Add(time.Duration(i-rankShared) * time.Second).UnixMilli()), Member: fmt.Sprint("m", i)})
		}
		must(t, b.redis.ZAdd(t.Context(), b.Keys.Due, due...).Err())
		must(t, b.redis.ZAdd(t.Context(), b.Keys.Parked, goredis.Z{Score: 9e12, Member: "parked"}).Err())
		later := 0
		must(t, b.Report().EachIndexed(t.Context(), b.now, func(chunk Indexed) error {
			for _, uid := range chunk.UIDs {
				score, err := b.redis.ZScore(t.Context(), b.Keys.Due, uid).Result()
				failIf(t, chunk.Later && (err != nil || int64(score) <= b.now.Add(time.Minute).UnixMilli()), "%s comes later", uid)
			}
			if chunk.Later {
				later += len(chunk.UIDs)
			}
			return nil
		}))
		failIf(t, later == 0, "none comes later")
	})
}

// The model before a page has left, so a second call is needed, and meanwhile more leave.
func TestAPageOfASetHasWhatStandsBehindWhateverLeavesInFront(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for i := range 30 {
			must(t, b.redis.ZAdd(t.Context(), b.Keys.Failing, goredis.Z{Score: float64(i), Member: fmt.Sprintf("m%02d", i)}).Err())
		}
		must(t, b.redis.ZRem(t.Context(), b.Keys.Failing, "m09").Err())
		calls := 0
		b.redis.AddHook(testkit.Hook(func(ctx context.Context, commands []goredis.Cmder, next func() error) error {
			err := next()
			if commands[0].Name() == "zrange" {
				if calls++; calls == 2 {
					must(t, b.redis.ZRemRangeByRank(ctx, b.Keys.Failing, 0, 3).Err())
				}
			}
			return err
		}))
		found, err := b.Report().Behind(t.Context(), b.Keys.Failing, Scored{"m09", 9}, 5)
		must(t, err)
		uids := redis.Map(found, func(one Scored) string { return one.UID })
		expectEqual(t, "behind m09", []string{"m10", "m11", "m12", "m13", "m14"}, uids)
		failIf(t, calls < 3, "expected more than two calls, found %d", calls)
	})
}

func TestWhatIsReadOfAPlannedModelTellsTheSameAsTheWholeOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		at := b.now.Add(time.Hour)
		states := map[string]hash{
			"planned": {}, "phased": {"phase": "7m"}, "retried": {"refresh_for": "retry", "attempt_no": "2"}, "moved": {"refresh_at": model.FormatTime(at.Add(time.Hour))},
			"missed": {"planned_for": model.FormatTime(b.now), "not_before": model.FormatTime(at)}, "one-shot": {"rrule": ""},
		}
		uids := []string{"gone", "broken"}
		b.seed(keys{":model:broken": "a text"})
		for uid, state := range states {
			stored := hash{"rev": "1", "rrule": "FREQ=HOURLY", "timezone": "Europe/Berlin", "dtstart": "2026-01-01T00:00:00", "refresh_at": model.FormatTime(at), "refresh_why": "planned"}
			maps.Copy(stored, state)
			b.seed(keys{":model:" + uid: stored})
			uids = append(uids, uid)
		}
		records, err := b.Report().ReadPlanned(t.Context(), uids)
		must(t, err)
		for _, r := range records {
			if !r.Exists || r.Broken {
				failIf(t, r.Broken != (r.UID == "broken") || r.Exists != r.Broken, "%s: exists %v, broken %v", r.UID, r.Exists, r.Broken)
				continue
			}
			want := b.load(r.UID)
			r.Why = want.Why // it is not read
			expectEqual(t, r.UID, want.State, r.State)
			failIf(t, want.Schedule != r.Schedule || want.Rule != r.Rule || want.Zone() != r.Zone(), "%s: %+v, want %+v", r.UID, r.Model, want.Model)
		}
		expectEqual(t, "records", len(states)+2, len(records))
	})
}

func TestAQueueThatWasNeverUsedKnowsOfTheOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, key := range []string{"{thumbs:0}:stats", "{thumbs:1}:stats", "tables:stats", "{feeds}:stats", "a b:stats", "text:status"} {
			b.redis.HSet(t.Context(), key, "create", 1)
		}
		queue, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
		must(t, err)
		if used, err := queue.Report().Used(t.Context()); used || err != nil {
			t.Errorf("want a queue that was never used, got %v (%v)", used, err)
		}
		others, err := queue.Report().Others(t.Context())
		must(t, err)
		if !b.Clients.Clustered { // a node of a cluster knows only what it holds
			expectEqual(t, "others", []string{"tables", "thumbs", "{feeds}"}, others)
		}
		b.mustApply(b.put("m1", "{}"))
		if used, err := queue.Report().Used(t.Context()); !used || err != nil {
			t.Errorf("want a queue that is used, got %v (%v)", used, err)
		}
	})
}
