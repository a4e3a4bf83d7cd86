package operate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestASimulationRunsFromItsBeginToItsEnd(t *testing.T) {
	queue := parted(t)
	must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"stored","rrule":"0 * * * *","timeout":"10m","retries":[],"on_exhausted":"next_planned"}`)))
	var notes []string
	in := inputs(Operator{Queue: queue}, map[string]string{
		"hourly": `{"name":"a","rrule":"0 * * * *","timeout":"10m","retries":[],"on_exhausted":"next_planned"}`,
		"berlin": `{"name":"a","rrule":"0 8 * * *","timezone":"Europe/Berlin","timeout":"10m","retries":[],"on_exhausted":"next_planned"}`,
		"two":    `[{"name":"a"},{"name":"b"}]`,
		"good":   "success 2m\nsuccess 3m\n", "bad": "dance",
	})
	in.Note = func(text string) { notes = append(notes, text) }
	for name, row := range map[string]struct {
		request SimulateRequest
		want    []string // title, begin, end, events of each; or part of an error
		noted   bool
	}{
		"for a day":             {SimulateRequest{Policy: "hourly", Days: 1}, []string{"a 21T06:00 22T06:01 75 false"}, false},
		"until a time":          {SimulateRequest{Policy: "hourly", Until: "2026-11-21T09:30:00Z"}, []string{"a 21T06:00 21T09:30 12 false"}, false},
		"for a length":          {SimulateRequest{Policy: "hourly", Until: "90m"}, []string{"a 21T06:00 21T07:30 6 false"}, false},
		"from a time":           {SimulateRequest{Policy: "hourly", Start: "2026-11-22T00:30:00Z", Until: "1h"}, []string{"a 22T00:30 22T01:30 6 false"}, false},
		"from one of the zone":  {SimulateRequest{Policy: "berlin", Start: "2026-11-22T07:30", Until: "1h"}, []string{"a 22T06:30 22T07:30 6 false"}, false},
		"up to a limit":         {SimulateRequest{Policy: "hourly", Limit: 3}, []string{"a 21T06:00 21T08:01 9 true"}, true},
		"by the usual limit":    {SimulateRequest{Policy: "hourly"}, []string{fmt.Sprintf("a 21T06:00 23T07:01 %d true", 3*failingLimit)}, true},
		"of outcomes":           {SimulateRequest{Policy: "hourly", Outcomes: "good", Days: 1}, []string{"a 21T06:00 21T07:03 4 false"}, false},
		"of chance, for a day":  {SimulateRequest{Policy: "hourly", Fail: "0%", Lost: "0%", Days: 1}, []string{"a 21T06:00 22T06:01 50 false"}, false},
		"against a stored one":  {SimulateRequest{Policy: "hourly", Against: "stored", Until: "30m"}, []string{"a 21T06:00 21T06:30 3 false", "stored 21T06:00 21T06:30 3 false"}, false},
		"against one alike":     {SimulateRequest{Policy: "hourly", Against: "berlin", Until: "30m"}, []string{"hourly 21T06:00 21T06:30 3 false", "berlin 21T06:00 21T06:30 3 false"}, false},
		"an end before":         {SimulateRequest{Policy: "hourly", Until: "2026-11-21T05:00:00Z"}, []string{"until: "}, false},
		"no end":                {SimulateRequest{Policy: "hourly", Until: "then"}, []string{"until: "}, false},
		"no begin":              {SimulateRequest{Policy: "hourly", Start: "then"}, []string{"start: "}, false},
		"two policies":          {SimulateRequest{Policy: "two"}, []string{"expected one policy or model, found 2"}, false},
		"no policy":             {SimulateRequest{Policy: "nobody"}, []string{"found neither"}, false},
		"no outcomes":           {SimulateRequest{Policy: "hourly", Outcomes: "bad"}, []string{"line 1"}, false},
		"no file with outcomes": {SimulateRequest{Policy: "hourly", Outcomes: "nowhere"}, []string{"not exist"}, false},
	} {
		notes = nil
		charts, err := in.Simulate(t.Context(), row.request, fixture.SixOClock.Add(500*time.Millisecond))
		var got []string
		for _, c := range charts {
			got = append(got, fmt.Sprint(c.Title, " ", c.Start.UTC().Format("02T15:04"), " ", c.End.UTC().Format("02T15:04"), " ", len(c.Events), " ", c.CutOff))
		}
		if err != nil && !strings.Contains(err.Error(), row.want[0]) || err == nil && !cmp.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, row.want)
		}
		if (len(notes) > 0) != row.noted {
			t.Errorf("%s: got the notes %q, want some: %t", name, notes, row.noted)
		}
	}
}

func TestARecordedSeriesIsJudgedByTheGuardsOfAPolicy(t *testing.T) {
	in := inputs(Operator{Queue: parted(t)}, map[string]string{
		"guarded": `{"name":"a","guard":[{"rows":{"min":10}}]}`, "open": `{"name":"a"}`, "series": "{\"rows\":12}\n{\"rows\":3}\n", "bad": "?",
	})
	in.Known = false
	refreshes := check.Got(in.Judge(t.Context(), SimulateRequest{Policy: "guarded", Metrics: "series"}))(t)
	var doubted []bool
	for _, r := range refreshes {
		doubted = append(doubted, r.Suspect != "")
	}
	if want := []bool{false, true}; !cmp.Equal(doubted, want) {
		t.Errorf("got %v doubted, want %v", doubted, want)
	}
	for policy, metrics := range map[string]string{"open": "series", "guarded": "bad", "nobody": "series"} {
		if _, err := in.Judge(t.Context(), SimulateRequest{Policy: policy, Metrics: metrics}); err == nil {
			t.Errorf("%s of %s: want it refused", policy, metrics)
		}
	}
	if _, err := in.Judge(t.Context(), SimulateRequest{Policy: "guarded", Metrics: "nowhere"}); err == nil {
		t.Error("of no file: want it refused")
	}
}
