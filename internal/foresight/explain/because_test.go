package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/poller"
)

var (
	must   = testkit.Must
	equal  = testkit.Equal
	failIf = testkit.FailIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

var now = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func shownAs(status model.Status, state model.State) Shown {
	return Shown{Now: now, Status: status, Record: &store.Record{Exists: true, Model: model.Model{UID: "m", State: state}}}
}

func TestEachStatusSaysWhatItMeans(t *testing.T) {
	ago, ahead := now.Add(-2*time.Hour), now.Add(time.Hour)
	for _, test := range []struct {
		status model.Status
		state  model.State
		want   string
	}{
		{model.StatusScheduled, model.State{RefreshAt: ahead}, "scheduled: starts in 1h"},
		{model.StatusDue, model.State{RefreshAt: ago}, "due: waits for a dispatcher since 2h"},
		{model.StatusParked, model.State{RefreshAt: ago, ParkedBy: "limit:host=a", ParkedSince: ago}, "parked: waits for limit:host=a since 2h"},
		{model.StatusQueued, model.State{StartedAt: ago}, "queued: waits for a worker since 2h"},
		{model.StatusProcessing, model.State{DeadlineAt: ahead}, "processing: a worker has it, deadline in 1h"},
		{model.StatusFinished, model.State{}, "finished: nothing to do until it is saved or run"},
		{model.StatusDisabled, model.State{Disabled: true, DisabledReason: "Bad URL", FinalFailureAt: ago}, "disabled until the next update: Bad URL"},
		{model.StatusBroken, model.State{}, "broken: its key holds something else than a model; refreshd doctor tells more"},
	} {
		got := shownAs(test.status, test.state).StatusText()
		failIf(t, got != test.want, "%s: expected %q, found %q", test.status, test.want, got)
	}
	due := shownAs(model.StatusDue, model.State{RefreshAt: ago})
	due.Liveness = &model.Liveness{Now: now, Queued: 3, Held: 2, Last: map[model.Role]time.Time{model.RoleDispatcher: now}}
	want := "due: waits for room in the input list (3 in line, 2 in the hands of workers) since 2h"
	failIf(t, due.StatusText() != want, "expected %q, found %q", want, due.StatusText())
	due.Liveness = &model.Liveness{Now: now}
	want = "due: waits for a dispatcher since 2h; no dispatcher lives"
	failIf(t, due.StatusText() != want || due.Missing() == nil || !due.Missing().Certain, "expected %q, found %q", want, due.StatusText())
}

func TestEachFreshnessSaysWhenItChanges(t *testing.T) {
	when := func(at time.Time) string { return at.Format("15:04") }
	for freshness, want := range map[model.Freshness][2]string{ // without and with warn_within
		"": {"", ""}, model.Fresh: {"fresh, stale at 07:00", "fresh, late at 07:00"}, model.FreshnessNever: {"never succeeded yet, stale at 07:00", "never succeeded yet, late at 07:00"},
		model.FreshnessLate: {"late, stale at 07:00", "late, stale at 07:00"}, model.FreshnessStale: {"stale since 07:00", "stale since 07:00"},
	} {
		for i, warn := range []time.Duration{0, time.Hour} {
			m := &model.Model{Policy: policy.Policy{WarnWithin: warn}, State: model.State{Freshness: freshness, StaleAt: now}}
			got := FreshnessText(m, when)
			failIf(t, got != want[i], "%q, warned within %s: expected %q, found %q", freshness, warn, want[i], got)
		}
	}
}

// gated are models of which each waits for something else.
func gated(t *testing.T, server *testkit.Server) *fixture.Queue {
	t.Helper()
	q := fixture.New(t, server)
	ok := func(err error) {
		t.Helper()
		must(t, err)
	}
	d, err := dispatcher.New(q.Store, dispatcher.Config{Clock: q.Clock.Now})
	ok(err)
	p, err := poller.New(q.Store, poller.Config{Owner: "p1", Clock: q.Clock.Now})
	ok(err)
	shut, err := schedule.ParseCalendar(map[string]any{"name": "shut", "rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "dtstart": "2026-01-01T00:00:00", "timezone": "UTC", "for": "3h"})
	ok(err)
	ctx := t.Context()
	ok(q.Store.Fleet().PutCalendar(ctx, shut, q.Clock.Now()))
	held, err := model.ParseSelector("uid=held")
	ok(err)
	ok(q.Store.Fleet().PutHold(ctx, &model.Hold{ID: "h1", Selector: held, Since: q.Clock.Now(), By: "ann", Reason: "moving"}))
	ok(q.Store.Fleet().PutLimit(ctx, &model.Limit{Name: "tenant=t1", Running: 1, Since: q.Clock.Now()}, q.Clock.Now()))
	_, err = q.Store.Fleet().OpenCircuit(ctx, "tenant=t2", "bob", "down", q.Clock.Now().Add(time.Hour), q.Clock.Now())
	ok(err)
	limited := `"policy":{"timeout":"1h","limits":[{"key":"{label.tenant}","running":9}],"circuit":{"key":"{label.tenant}","open_after":"1 of 1","on":["http_5xx"],"probe":"1h"}}`
	q.Command(`{"type":"put","uid":"held","timezone":"Europe/Berlin","rrule":"every day at 6 AM","refresh":"now"}`,
		`{"type":"put","uid":"closed","refresh":"now","policy":{"closed":["shut"]}}`,
		`{"type":"put","uid":"runs","refresh":"now","labels":{"tenant":"t1"},`+limited+`}`,
		`{"type":"put","uid":"scheduled","rrule":"every day at 6 AM"}`)
	_, err = p.RunOnce(ctx)
	ok(err)
	_, err = d.RunOnce(ctx)
	ok(err)
	q.Command(`{"type":"put","uid":"limited","refresh":"now","labels":{"tenant":"t1"},`+limited+`}`, `{"type":"put","uid":"cut","refresh":"now","labels":{"tenant":"t2"},`+limited+`}`)
	_, err = p.RunOnce(ctx)
	ok(err)
	_, err = d.RunOnce(ctx)
	ok(err)
	return q
}

// A list gives the reason that the story gives, each on its clock.
func TestAListGivesTheReasonThatTheStoryGives(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		q := gated(t, server)
		uids := []string{"held", "closed", "limited", "cut", "scheduled"}
		found, err := ReadModels(t.Context(), q.Store, uids)
		if err == nil {
			err = ReadReasons(t.Context(), q.Store, found)
		}
		if err != nil || len(found) != len(uids) {
			t.Fatal(found, err)
		}
		got := map[string]string{}
		for _, one := range found {
			got[one.Record.UID] = one.Because
			e := testkit.Got(Read(t.Context(), q.Store, one.Record.UID))(t)
			reason := one.because(&e.admission.Gates, e.when)
			if story := strings.Join(e.Story(), "\n"); !strings.Contains(story, reason) || !strings.Contains(story, "; all times are in "+e.zone.String()) {
				t.Errorf("%s: expected %q and the zone in\n%s", one.Record.UID, reason, story)
			}
		}
		want := map[string]string{
			"held":   "held by ann since 2026-11-21 07:00:00 UTC, until it is released: moving (hold h1 of uid=held); it starts once then",
			"closed": "closed by the calendar shut until 2026-11-21 09:00:00 UTC; it starts once then", "limited": "waits for limit tenant=t1",
			"cut": "waits for the circuit of tenant=t2", "scheduled": "planned",
		}
		equal(t, want, got)
	})
}

func TestAPictureEndsWithWhatIsSoNow(t *testing.T) {
	running := shownAs(model.StatusProcessing, model.State{AttemptUID: "a", AttemptNo: 2, StartedAt: now.Add(-time.Minute), DeadlineAt: now.Add(time.Hour)})
	if p := Picture(running, nil); len(p.Events) != 1 || p.Events[0].Kind != "retry" || !p.End.Equal(now) || !p.Start.Equal(now.Add(-time.Minute)) {
		t.Errorf("expected the retry that runs, from its start to now, found %+v", p)
	}
	gave := shownAs(model.StatusDisabled, model.State{Disabled: true, FinalFailureAt: now})
	p := Picture(gave, nil)
	failIf(t, len(p.Events) != 1 || p.Events[0].Kind != "disabled" || !p.End.Equal(now), "expected the end by itself, found %+v", p)
	p = Picture(shownAs(model.StatusScheduled, model.State{RefreshAt: now}), nil)
	failIf(t, len(p.Events) != 0 || !p.Start.IsZero(), "expected nothing drawn, found %+v", p)
}
