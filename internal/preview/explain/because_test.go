package explain

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

var now = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func shownAs(status model.Status, state model.State) Shown {
	return Shown{Now: now, Status: status, Record: &store.Record{Exists: true, Model: model.Model{UID: "m", State: state}}}
}

// gated are models of which each waits for something else.
func gated(t *testing.T, server *testkit.Server) *fixture.Queue {
	t.Helper()
	q := fixture.New(t, server)
	ok := func(err error) {
		t.Helper()
		must(t, err)
	}
	d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{Clock: q.Clock.Now})
	ok(err)
	p, err := poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "p1", Clock: q.Clock.Now})
	ok(err)
	shut, err := schedule.ParseCalendar(map[string]any{"name": "shut", "rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "dtstart": "2026-01-01T00:00:00", "timezone": "UTC", "for": "3h"})
	ok(err)
	ctx := t.Context()
	ok(flow.Of(q.Store).PutCalendar(ctx, shut, q.Clock.Now()))
	held, err := model.ParseSelector("uid=held")
	ok(err)
	ok(flow.Of(q.Store).PutHold(ctx, &model.Hold{ID: "h1", Selector: held, Since: q.Clock.Now(), By: "ann", Reason: "moving"}))
	ok(flow.Of(q.Store).PutLimit(ctx, &model.Limit{Name: "tenant=t1", Running: 1, Since: q.Clock.Now()}, q.Clock.Now()))
	_, err = flow.Of(q.Store).OpenCircuit(ctx, "tenant=t2", "bob", "down", q.Clock.Now().Add(time.Hour), q.Clock.Now())
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

// Both name what stops a model, and who wanted it.
func TestAListGivesTheReasonThatTheStoryGives(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		q := gated(t, server)
		names := map[string][]string{"held": {"ann", "moving", "h1"}, "closed": {"shut"}, "limited": {"tenant=t1"}, "cut": {"tenant=t2"}, "scheduled": {"planned"}}
		found, err := ReadModels(t.Context(), q.Store, slices.Collect(maps.Keys(names)))
		if err == nil {
			err = ReadReasons(t.Context(), q.Store, found)
		}
		if err != nil || len(found) != len(names) {
			t.Fatal(found, err)
		}
		for _, one := range found {
			e := check.Got(Read(t.Context(), q.Store, one.Record.UID))(t)
			story := strings.Join(e.Story(), "\n")
			for _, name := range names[one.Record.UID] {
				failIf(t, !strings.Contains(one.Because, name) || !strings.Contains(story, name), "%s: expected %s in %q and\n%s", one.Record.UID, name, one.Because, story)
			}
			failIf(t, !strings.Contains(e.Heading(), e.zone.String()), "expected the zone in %q", e.Heading())
		}
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
