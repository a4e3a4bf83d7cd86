package poller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// rule stores the policy feeds with a rule; empty: none.
func (b *bundle) rule(rrule string) {
	b.t.Helper()
	p := policy.Default()
	p.Name, p.Rule, p.Timeout, p.Retries = "feeds", rrule, time.Minute, policy.Delays{5 * time.Minute}
	must(b.t, b.Store.Fleet().PutPolicy(b.t.Context(), p))
}

// feed is the command that saves a model which uses that policy.
func feed(uid string, fields ...string) string {
	text := fmt.Sprintf(`{"type":"put","uid":%q,"policy":"feeds"`, uid)
	for _, field := range fields {
		text += "," + field
	}
	return text + "}"
}

// apply lets pollers work until nothing is left to be applied.
func (b *bundle) apply(commands ...string) {
	b.t.Helper()
	b.Command(commands...)
	for b.round().Claimed > 0 {
	}
}

// walk lets a poller plan models anew until it finds no more to do. What was read before the change counts as committed two ticks later.
func (b *bundle) walk(p *poller.Poller) {
	b.t.Helper()
	b.Clock.Turn(2 * time.Second)
	for b.roundOf(p).Bulks {
	}
	left, err := flow.Of(b.Store).Bulks(b.t.Context())
	failIf(b.t, err != nil || len(left) > 0, "want the walk over, found %v, %v", left, err)
}

func (b *bundle) starts(uid string) string { return b.Model(uid)["refresh_at"] }

const (
	yearly   = "FREQ=YEARLY"
	hourly   = "FREQ=HOURLY;BYMINUTE=30;BYSECOND=0"
	newYear  = "2027-01-01T00:00:00.000Z"
	halfPast = "2026-11-21T07:30:00.000Z"
)

func TestAChangedRuleOfAStoredPolicyReachesAllModelsThatWaitForAPlannedRefresh(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.apply(feed("own", `"rrule":"FREQ=DAILY"`), feed("retry"), feed("stopped"), feed("running"), feed("urgent"), feed("payload", `"payload":{"n":1}`),
			`{"type":"put","uid":"other","policy":{"rrule":"FREQ=YEARLY"}}`, feed("zone", `"timezone":"Asia/Kolkata"`))
		for i := range 50 {
			b.apply(feed(fmt.Sprint("m", i)))
		}
		b.apply(`{"type":"run","uid":"retry"}`, `{"type":"run","uid":"running"}`)
		b.dispatch()
		b.Say(b.result("failure", "retry"))
		b.apply(`{"type":"disable","uid":"stopped"}`, `{"type":"run","uid":"urgent"}`)
		untouched := map[string]map[string]string{}
		for _, uid := range []string{"own", "retry", "stopped", "running", "urgent", "other"} {
			untouched[uid] = b.Model(uid)
		}

		b.rule(hourly)
		b.walk(b.poller(b.Store, poller.Config{Batch: 7}))

		for i := range 50 {
			at := b.starts(fmt.Sprint("m", i))
			failIf(t, at != halfPast, "m%d: want it to start within the hour, at %s, found %s", i, halfPast, at)
		}
		at := b.starts("zone")
		failIf(t, at != "2026-11-21T08:00:00.000Z", "want the half hour of its own zone, found %s", at)
		for uid, before := range untouched {
			after := b.Model(uid)
			failIf(t, fmt.Sprint(after) != fmt.Sprint(before), "%s: want it left alone as %v, found %v", uid, before, after)
		}
		counted := b.Stats()["replan"]
		failIf(t, counted != 52, "want 52 models planned anew, found %d", counted)
		due := b.Scores(b.Store.Keys.Due)["m7"]
		failIf(t, due != time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC).UnixMilli(), "want the place in the due set moved with it, found %d", due)
		for range b.List(b.Store.Keys.Input) {
			b.Take()
		}
		b.Clock.Turn(time.Hour)
		b.dispatch()
		waiting := len(b.List(b.Store.Keys.Input))
		failIf(t, waiting < 52, "want all of them started within the hour, found %d in the input list", waiting)
	})
}

func TestARuleThatEndsOrGoesEndsTheWaitAndOneThatComesBeginsItAgain(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		p := b.poller(b.Store, poller.Config{})
		b.rule(hourly)
		b.apply(feed("a"))
		for _, step := range []struct{ rule, want string }{
			{yearly, newYear}, {"", ""}, {hourly, halfPast}, {"FREQ=DAILY;UNTIL=20200101T000000Z", ""}, {yearly, newYear},
		} {
			b.rule(step.rule)
			b.walk(p)
			failIf(t, b.starts("a") != step.want, "rule %q: want the next start %q, found %q", step.rule, step.want, b.starts("a"))
		}
		must(t, check.Only(b.Store.Fleet().RemovePolicy(t.Context(), "feeds")))
		b.walk(p)
		failIf(t, b.starts("a") != "", "want nothing planned by the default policy, found %s", b.starts("a"))
		b.rule(hourly)
		b.walk(p)
		failIf(t, b.starts("a") != halfPast, "want it planned by the policy that is stored again, found %s", b.starts("a"))
	})
}

func TestAPolicyThatPlansAsBeforeMovesNothing(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.walk(b.poller(b.Store, poller.Config{}))
		for _, change := range []func(*policy.Policy){
			func(p *policy.Policy) { p.Timeout = time.Hour },
			func(p *policy.Policy) { p.Dtstart = schedule.DefaultDtstart },
		} {
			p := policy.Default()
			p.Name, p.Rule = "feeds", yearly
			change(&p)
			must(t, b.Store.Fleet().PutPolicy(t.Context(), p))
			walks, err := flow.Of(b.Store).Bulks(t.Context())
			failIf(t, err != nil || len(walks) != 0, "want no walk, found %v, %v", walks, err)
		}
	})
}

// What a daemon has read under the old policy may be committed a moment after the change, behind the back of a walk that began at once.
func TestAWalkBeginsWhenWhatWasReadBeforeTheChangeIsCommitted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.apply(feed("a"))
		b.rule(hourly)
		p := b.poller(b.Store, poller.Config{})
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, newYear}, {1999 * time.Millisecond, newYear}, {time.Millisecond, halfPast}} {
			b.Clock.Turn(step.after)
			if round := b.roundOf(p); b.starts("a") != step.want || round.Bulks {
				t.Errorf("%v later: want it to start at %s, found %s, %+v", step.after, step.want, b.starts("a"), round)
			}
		}
	})
}

// lossy loses its connection after a commit, or where it would note how far a walk is.
type lossy struct {
	fixture.Part
	commits, moves int // how many get through
}

func (s *lossy) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if s.commits--; s.commits < 0 {
		return nil, errRedis
	}
	return s.Store.Commit(ctx, batch)
}

func (s *lossy) MoveBulk(ctx context.Context, bulk *flow.Bulk, now time.Time) (bool, error) {
	if s.moves--; s.moves < 0 {
		return false, errRedis
	}
	return s.Flow.MoveBulk(ctx, bulk, now)
}

func TestAWalkThatWasKilledIsFinishedByTheNextPoller(t *testing.T) {
	for name, failing := range map[string]lossy{
		"between two batches": {commits: 1, moves: 9}, "before it notes how far it is": {commits: 99, moves: 0}, "at once": {},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.rule(yearly)
				for i := range 30 {
					b.apply(feed(fmt.Sprint("m", i)))
				}
				b.rule(hourly)
				b.Clock.Turn(2 * time.Second)
				failing.Part = fixture.Whole(b.Store)
				killed := b.poller(&failing, poller.Config{Owner: "p1", Batch: 10})
				b.roundOf(killed)
				walks, err := flow.Of(b.Store).Bulks(t.Context())
				stopIf(t, err != nil || len(walks) != 1 || walks[0].Place != store.WalkBegins && failing.moves == 0,
					"want the walk where it was, found %v, %v", walks, err)
				b.Clock.Turn(time.Minute) // the lease of the killed one
				b.walk(b.poller(b.Store, poller.Config{Owner: "p2", Batch: 10}))
				for i := range 30 {
					at := b.starts(fmt.Sprint("m", i))
					failIf(t, at != halfPast, "m%d: want %s, found %s", i, halfPast, at)
				}
				counted := b.Stats()["replan"]
				failIf(t, counted != 30, "want each model planned anew once, found %d", counted)
			})
		})
	}
}

func TestPoliciesThatChangeTogetherShareOneWalk(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for _, name := range []string{"one", "two"} {
			b.apply(fmt.Sprintf(`{"type":"put","uid":"a-%[1]s","policy":{"rrule":"FREQ=YEARLY"}}`, name))
		}
		both := func(rule string) {
			for _, name := range []string{"one", "two"} {
				p := policy.Default()
				p.Name, p.Rule = name, rule
				must(t, b.Store.Fleet().PutPolicy(t.Context(), p))
			}
		}
		both(yearly)
		b.apply(`{"type":"put","uid":"a","policy":"one"}`, `{"type":"put","uid":"b","policy":"two"}`)
		b.walk(b.poller(b.Store, poller.Config{}))
		both(hourly)
		b.Clock.Turn(2 * time.Second)
		p := b.poller(b.Store, poller.Config{})
		if round := b.roundOf(p); round.Bulks || b.starts("a") != halfPast || b.starts("b") != halfPast {
			t.Errorf("want both done in one step, found %+v, %s and %s", round, b.starts("a"), b.starts("b"))
		}
	})
}

func TestABusyPollerTakesAStepOnlyNowAndThen(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.walk(b.poller(b.Store, poller.Config{}))
		steps := 0
		p := b.poller(counting{b.Store, &steps}, poller.Config{})
		b.Clock.Turn(2 * time.Second)
		for range 20 {
			if _, err := flow.Of(b.Store).BeginBulk(t.Context(), "more", model.Bulk{Action: model.BulkEnable}); err != nil { // there is always more to do
				t.Fatal(err)
			}
			b.Say("garbage")
			b.Clock.Turn(10 * time.Millisecond)
			b.roundOf(p)
		}
		failIf(t, steps != 2, "want a step each tenth of a tick, two in 200 ms, found %d", steps)
	})
}

// Each step takes longer than the pause behind one, as where Redis or the processor is busy.
func TestALongWalkLetsALineOfResultsPass(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.walk(b.poller(b.Store, poller.Config{}))
		for action, most := range map[model.BulkAction]int{model.BulkReplan: 3, model.BulkEnable: 100} {
			steps := 0
			p := b.poller(slow{counting{b.Store, &steps}, b}, poller.Config{Batch: 10})
			b.Clock.Turn(2 * time.Second)
			for range 1000 {
				b.Say("garbage")
			}
			batches := 0
			for b.Redis.LLen(t.Context(), b.Store.Keys.Output).Val() > 0 {
				b.begin("more", action, "policy=feeds", "") // there is always more to do
				must(t, b.Redis.HSet(t.Context(), b.Store.Keys.Bulk("more"), "since", model.FormatTime(fixture.Start)).Err())
				b.Clock.Turn(20 * time.Millisecond)
				b.roundOf(p)
				batches++
			}
			failIf(t, batches != 100 || steps > most || steps < most/2, "%s: want about %d steps before 1000 results in 100 batches, found %d in %d", action, most, steps, batches)
		}
	})
}

// A step of the bulk is 10 models, one of the walk all that are met at once: in turns, the bulk would take as long as both.
func TestABulkThatAPersonHasBegunGoesBeforeAWalkThatPlansModelsAnew(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		b.fleet(100, "t1")
		for i := range 20 {
			b.apply(feed(fmt.Sprint("m", i)))
		}
		steps := 0
		p := b.poller(counting{b.Store, &steps}, poller.Config{Batch: 10})
		b.walk(p)
		steps = 0
		b.begin("x", model.BulkRun, "tenant=t1", "")
		bulk := func() flow.Bulk {
			found, _, err := flow.Of(b.Store).ReadBulk(t.Context(), "x")
			must(t, err)
			return found
		}
		walks := 0
		for bulk().EndedAt.IsZero() {
			b.begin("more", model.BulkReplan, "policy=feeds", "") // there is always more to do
			must(t, b.Redis.HSet(t.Context(), b.Store.Keys.Bulk("more"), "since", model.FormatTime(fixture.Start)).Err())
			b.Clock.Turn(50 * time.Millisecond)
			before := bulk().Done
			b.roundOf(p)
			if bulk().Done == before && bulk().EndedAt.IsZero() {
				walks++
			}
		}
		failIf(t, bulk().Done != 100 || walks > 1, "want 100 models started with one step of the walk in half a second, found %d with %d", bulk().Done, walks)
		for range 3 { // and where nothing else is to be done, the walk goes on
			b.Clock.Turn(50 * time.Millisecond)
			b.roundOf(p)
		}
		left, err := flow.Of(b.Store).Bulks(t.Context())
		failIf(t, err != nil || len(left) > 0, "want the walk over, found %v, %v", left, err)
	})
}

// slow takes a while over each step of a walk.
type slow struct {
	counting
	b *bundle
}

func (s slow) WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) ([]string, store.Place, error) {
	s.b.Clock.Turn(150 * time.Millisecond)
	return s.counting.WalkModels(ctx, selector, from, least)
}

type counting struct {
	*store.Store
	steps *int
}

func (s counting) WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) ([]string, store.Place, error) {
	*s.steps++
	return s.Store.WalkModels(ctx, selector, from, least)
}

func TestAPolicyThatChangesAgainDuringTheWalkIsWalkedForAnew(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.rule(yearly)
		for i := range 30 {
			b.apply(feed(fmt.Sprint("m", i)))
		}
		b.rule("FREQ=DAILY")
		b.Clock.Turn(2 * time.Second)
		// The policy changes when a batch has been decided, and before the walk is noted.
		p := b.poller(&stored{Store: b.Store, meanwhile: func() { b.rule(hourly) }}, poller.Config{Batch: 10})
		b.roundOf(p)
		walks, err := flow.Of(b.Store).Bulks(t.Context())
		stopIf(t, err != nil || len(walks) != 1 || walks[0].Place != store.WalkBegins || walks[0].Seen != 0,
			"want the walk begun anew, found %v, %v", walks, err)
		b.walk(p)
		for i := range 30 {
			at := b.starts(fmt.Sprint("m", i))
			failIf(t, at != halfPast, "m%d: want %s, found %s", i, halfPast, at)
		}
	})
}

// refuses lets nobody walk over the models.
type refuses struct{ *store.Store }

func (refuses) WalkModels(context.Context, model.Selector, store.Place, int) ([]string, store.Place, error) {
	return nil, "", errRedis
}
