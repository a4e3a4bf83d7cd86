package transfer

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func calendar(t *testing.T, name, length string) schedule.Calendar {
	t.Helper()
	c, err := schedule.ParseCalendar(map[string]any{
		"name": name, "rrule": "FREQ=DAILY;BYHOUR=2", "timezone": "Europe/Berlin", "dtstart": "2026-01-01T00:00:00", "for": length, "reason": "back up <all>",
	})
	must(t, err)
	return c
}

// steer stores calendars, limits (one has ended) and a hold.
func (q *queue) steer() *queue {
	q.t.Helper()
	q.ok(flow.OfQueue(q.Queue).PutCalendar(q.t.Context(), calendar(q.t, "nightly", "2h")))
	q.ok(flow.OfQueue(q.Queue).PutCalendar(q.t.Context(), calendar(q.t, "long", "5h")))
	for _, l := range []model.Limit{
		{Name: "host=example.com", Running: 1, Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Reason: "they <move>", By: "ann"},
		{Name: "{host(input_url)}", Running: 7, Rate: policy.Rate{Count: 60, Per: time.Minute}, Since: now.Add(-time.Hour)},
		{Name: "host=over.example", Running: 1, Since: now.Add(-time.Hour), Until: now},
	} {
		q.ok(flow.OfQueue(q.Queue).PutLimit(q.t.Context(), &l))
	}
	q.ok(flow.OfQueue(q.Queue).PutHold(q.t.Context(), &model.Hold{ID: "h1", Since: now, Reason: "moves house", By: "ann"}))
	return q
}

const steering = `{"kind":"calendar","calendar":{"name":"long","rrule":"FREQ=DAILY;BYHOUR=2","timezone":"Europe/Berlin","dtstart":"2026-01-01T00:00:00","for":"5h","reason":"back up \u003call\u003e"}}
{"kind":"calendar","calendar":{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=2","timezone":"Europe/Berlin","dtstart":"2026-01-01T00:00:00","for":"2h","reason":"back up \u003call\u003e"}}
{"kind":"limit","key":"host=example.com","running":1,"since":"2026-11-21T06:00:00.000Z","until":"2026-11-21T08:00:00.000Z","reason":"they <move>","by":"ann"}
{"kind":"limit","key":"{host(input_url)}","running":7,"rate":"60/m","since":"2026-11-21T06:00:00.000Z"}
`

func TestACalendarOrLimitThatDiffersIsReplacedOnlyIfAskedFor(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		to := open(t, server, "to", 2)
		for _, put := range []error{
			flow.Of(to.Parts[1]).PutCalendar(t.Context(), calendar(t, "nightly", "3h"), now), // one part differs
			flow.OfQueue(to.Queue).PutLimit(t.Context(), &model.Limit{Name: "host=example.com", Running: 2, Since: now}),
			flow.OfQueue(to.Queue).PutLimit(t.Context(), &model.Limit{Name: "{host(input_url)}", Running: 2, Since: now.Add(-time.Hour), Until: now}), // it has ended
		} {
			must(t, put)
		}
		i, refused := to.read(steering, false)
		want := []string{
			"fleet.jsonl line 2: calendar: expected the calendar nightly as it is here, or --replace, found another one",
			"fleet.jsonl line 3: limit: expected the limit host=example.com as it is here, or --replace, found another one",
		}
		diff := cmp.Diff(want, refused)
		failIf(t, diff != "" || i.Calendars != (Count{Created: 1, Refused: 1}) || i.Limits != (Count{Created: 1, Refused: 1}),
			"%+v %+v (-want +got):\n%s", i.Calendars, i.Limits, diff)
		i, refused = to.read(steering, true)
		failIf(t, len(refused) > 0 || i.Calendars != (Count{Replaced: 1, Unchanged: 1}) || i.Limits != (Count{Replaced: 1, Unchanged: 1}),
			"expected them replaced, found %+v %+v, %q", i.Calendars, i.Limits, refused)
		got := to.export(true)
		failIf(t, got != steering, "expected what was imported, found\n%s", got)
	})
}

func TestALimitThatEndedOnItsWayIsNotSet(t *testing.T) {
	to := open(t, testkit.Miniredis(t), "to", 1)
	i := to.must(`{"kind":"limit","key":"host=h","running":1,"since":"2026-11-21T06:00:00Z","until":"2026-11-21T07:00:00Z"}` + "\n")
	limits, err := flow.Of(to.Parts[0]).Limits(t.Context())
	failIf(t, i.Limits != (Count{Unchanged: 1}) || len(limits) > 0 || err != nil, "found %+v, %v, %v", i.Limits, limits, err)
}

func TestACalendarOrLimitThatCannotBeReadIsNamedByTheExportAndLeftOut(t *testing.T) {
	from := open(t, testkit.Miniredis(t), "from", 1).steer()
	client := from.server.Client(t)
	client.HSet(t.Context(), from.Parts[0].Keys.Calendars, "odd", "{")
	client.HSet(t.Context(), from.Parts[0].Keys.Limits, "host=odd", "{")
	var out bytes.Buffer
	faults := map[string]bool{}
	e := Export{Queue: from.Queue, State: true, Fault: func(text string) { faults[text] = true }}
	err := e.Write(t.Context(), &out)
	failIf(t, err != nil || out.String() != steering, "expected the others, found %v\n%s", err, out.String())
	got := strings.Join(slices.Sorted(maps.Keys(faults)), "; ")
	failIf(t, len(faults) != 2 || !strings.HasPrefix(got, "calendar odd: ") || !strings.Contains(got, "; limit host=odd: "),
		"expected both named, found %s", got)
}
