package acl_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestWhatAMonitorDrawsIsReadByADispatcherAPollerAndPeople(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	users.Server.Client(t).ZAdd(t.Context(), "q:gates", goredis.Z{Score: 1, Member: "hold:h1"})
	for _, role := range acl.Roles() {
		_, err := report.Of(users.Store(t, role)).Stats(t.Context())
		reads := slices.Contains([]acl.Role{acl.Dispatcher, acl.Poller, acl.Operator, acl.Viewer}, role)
		failIf(t, reads && err != nil || !reads && !redis.Refused(err), "%s: found %v", role, err)
	}
}

// TestABulkIsBegunByAnOperatorCarriedOutByAPollerAndSeenByAViewer walks each source: all models, a label and the sets of a status.
func TestABulkIsBegunByAnOperatorCarriedOutByAPollerAndSeenByAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	operator, daemon, viewer := users.Store(t, acl.Operator), users.Store(t, acl.Poller), users.Store(t, acl.Viewer)
	must(t, daemon.Clients.LoadScripts(t.Context(), daemon.Keys.Due))
	for i, text := range []string{"", "tenant=t1", "status=failing", "status=disabled", "status=running", "status=parked", "uid=a", "status=queued"} {
		id := fmt.Sprint("x", i)
		var failed []error
		note := func(err error) { failed = append(failed, err) }
		selector, err := model.ParseSelector(text)
		note(err)
		_, err = flow.Of(operator).BeginBulk(t.Context(), id, model.Bulk{Action: model.BulkRun, Selector: selector})
		note(err)
		open, err := flow.Of(daemon).Bulks(t.Context())
		note(err)
		_, _, err = daemon.WalkModels(t.Context(), selector, store.WalkBegins, 1)
		note(err)
		_, err = daemon.Queued(t.Context())
		note(err)
		stopIf(t, len(open) != 1, "%q: expected one bulk, found %v, %v", text, open, errors.Join(failed...))
		_, err = flow.Of(daemon).MoveBulk(t.Context(), &open[0], time.UnixMilli(1))
		note(err)
		_, err = flow.Of(operator).CancelBulk(t.Context(), id)
		note(err)
		_, err = flow.Of(viewer).EndedBulks(t.Context())
		note(err)
		note(viewer.Report().EachSelected(t.Context(), selector, func([]string) error { return nil }))
		_, err = viewer.Report().Behind(t.Context(), viewer.Keys.Failing, store.Scored{}, 1)
		note(err)
		_, err = report.Of(viewer).LastReasons(t.Context(), []string{"a"})
		note(err)
		err = errors.Join(failed...)
		failIf(t, err != nil, "%q: %v", text, err)
	}
}

// TestWhatKeepsModelsFromStartingIsSetByAnOperatorAndSeenByAViewer does what the commands do, under the users of both.
func TestWhatKeepsModelsFromStartingIsSetByAnOperatorAndSeenByAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	operator, daemon, viewer, now := users.Store(t, acl.Operator), users.Store(t, acl.Dispatcher), users.Store(t, acl.Viewer), time.Now()
	calendar, err := schedule.ParseCalendar(map[string]any{"name": "nightly", "rrule": "FREQ=DAILY;BYHOUR=2", "dtstart": "2026-01-01T00:00:00", "for": "1h"})
	must(t, err)
	must(t, daemon.Clients.LoadScripts(t.Context(), daemon.Keys.Due))
	ctx, gate := t.Context(), model.NewBlocker(model.BlockerHold, "h1")
	owner := users.Server.Client(t)
	open := func(s *store.Store) error {
		closed := model.Slots{Closed: now.Add(time.Hour), By: "m (http_429)"}
		must(t, owner.Set(ctx, daemon.Keys.Rate("host=h"), closed.String(), time.Hour).Err())
		_, err := flow.Of(s).OpenLimit(ctx, "host=h", now)
		return err
	}
	change := func(s *store.Store) map[string]error {
		_, released := flow.Of(s).ReleaseHold(ctx, "h1", time.Minute, now)
		_, limited := flow.Of(s).RemoveLimit(ctx, "host=h", now)
		_, removed := flow.Of(s).RemoveCalendar(ctx, "nightly", now)
		_, closed := flow.Of(s).CloseCircuit(ctx, "host=h", "me", now)
		_, opened := flow.Of(s).OpenCircuit(ctx, "host=h", "me", "why", now, now)
		_, turned := flow.Of(s).OpenCircuit(ctx, "queue", "me", "", now, now)
		_, dropped := inspect.Of(s).DropProbe(ctx, "host=h", "m", now)
		return map[string]error{
			"hold": flow.Of(s).PutHold(ctx, &model.Hold{ID: "h1", Since: now}), "release": released, "limit set": flow.Of(s).PutLimit(ctx, &model.Limit{Name: "host=h", Running: 1}, now),
			"limit rm": limited, "limit open": open(s), "calendar put": flow.Of(s).PutCalendar(ctx, calendar, now), "calendar rm": removed,
			"circuit open": opened, "circuit open queue": turned, "circuit set": flow.Of(s).SetQueueCircuit(ctx, model.DefaultQueueCircuit(), "me"), "circuit close": closed, "doctor": errors.Join(dropped, inspect.Of(s).RecheckBlocker(ctx, gate, now)),
		}
	}
	look := func(s *store.Store) map[string]error {
		_, unreadable, holds := flow.Of(s).Holds(ctx)
		_, gates := s.Fleet().Blockers(ctx)
		_, limits := flow.Of(s).Limits(ctx)
		_, uses := flow.Of(s).LimitUses(ctx)
		_, circuits := flow.Of(s).Circuits(ctx)
		_, queue := flow.Of(s).QueueCircuit(ctx)
		_, calendars := flow.Of(s).StoredCalendars(ctx)
		_, rooms := flow.Of(s).Limiters(ctx, []string{"host=h"}, []string{"host=h"}, now)
		_, parked := flow.Of(s).ParkedBy(ctx, []model.Blocker{gate}, func(model.Blocker) int { return 1 })
		_, counted := flow.Inspect(s).CountParked(ctx, gate)
		_, texts := flow.Inspect(s).Texts(ctx, now)
		_, state := inspect.Of(s).BlockerState(ctx, gate, now)
		return map[string]error{
			"hold ls": errors.Join(holds, unreadable), "gates": gates, "limits": limits, "limit ls": uses, "circuit ls": errors.Join(circuits, queue), "calendar ls": calendars, "rooms": rooms,
			"parked": parked, "count": counted, "doctor": errors.Join(texts, state),
		}
	}
	must(t, open(users.Store(t, acl.Poller)))
	must(t, owner.Set(ctx, "q:model:text", "text", 0).Err())
	must(t, owner.ZAdd(ctx, daemon.Keys.Limit("host=h"), goredis.Z{Score: 1, Member: "m"}, goredis.Z{Score: 1, Member: "text"}).Err())
	limiters, err := flow.Of(daemon).Limiters(ctx, []string{"host=h"}, nil, now)
	failIf(t, err != nil || limiters.Keys["host=h"].Running != 0, "a dispatcher frees slots: %v, %v", limiters, err)
	first, operated, again := change(viewer), change(operator), change(viewer) // nobody asks for what is so already
	for what := range first {
		failIf(t, first[what] == nil && again[what] == nil, "viewer: expected %s refused", what)
	}
	for role, want := range map[acl.Role]bool{acl.Operator: true, acl.Viewer: false} {
		c := users.Client(t, role)
		queue, err := store.Open(ctx, &redis.Clients{Read: c, Write: c, Block: c}, store.Config{Queue: "q"})
		must(t, err)
		err = queue.SetNewErrorAbove(ctx, 9)
		failIf(t, (err == nil) != want, "%s: expected that it may change settings: %t, found %v", role, want, err)
	}
	for name, all := range map[string]map[string]error{"operator changes": operated, "operator looks": look(operator), "viewer": look(viewer)} {
		for what, err := range all {
			failIf(t, err != nil, "%s, %s: %v", name, what, err)
		}
	}
}

// TestWhoMayNotRaiseTheLayoutChangesNothing asks as each role. An operator could, as it may set all settings. The others go on with the old layout.
func TestWhoMayNotRaiseTheLayoutChangesNothing(t *testing.T) {
	for name, users := range map[string]*fixture.Users{"one part": fixture.WithUsers(t, "q"), "several": fixture.WithUsersOfParts(t, "q")} {
		admin := users.Server.Client(t)
		if name == "several" {
			must(t, store.Create(t.Context(), &redis.Clients{Read: admin, Write: admin}, store.Config{Queue: "q"}, 2))
		}
		for _, role := range acl.Roles() {
			client := users.Client(t, role)
			queue, err := store.Open(t.Context(), &redis.Clients{Read: client, Write: client}, store.Config{Queue: "q"})
			must(t, err)
			must(t, queue.Raise(t.Context()))
			may := role == acl.Dispatcher || role == acl.Poller || role == acl.Operator
			failIf(t, (queue.Layout == store.Layout) != may, "%s, %s: found layout %d", name, role, queue.Layout)
			raised := admin.HDel(t.Context(), "{q}:settings", "layout").Val() == 1
			failIf(t, raised != may, "%s, %s: expected the layout stored: %t", name, role, may)
		}
	}
}
