package operate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// failing saves models of two tenants and three hosts that have failed, in both parts, a minute after each other, from six on.
func failing(t *testing.T, queue *store.Queue) {
	t.Helper()
	must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"p","fresh_within":"1h","rrule":"@daily","retries":["5m"]}`)))
	for i, row := range []struct{ tenant, host, reason string }{
		{"t1", "a", "HTTP 500"}, {"t1", "a", "HTTP 500"}, {"t1", "b", "HTTP 500"}, {"t2", "b", "HTTP 404"}, {"t2", "b", "HTTP 404"}, {"t2", "c", "HTTP 500"}, {"", "", "HTTP 500"},
	} {
		uid := fmt.Sprint("f", i)
		fields := map[string]any{"policy": "p", "payload": map[string]any{}}
		if row.host != "" {
			fields["payload"] = map[string]any{"input_url": "http://" + row.host + "/x"}
		}
		if row.tenant != "" {
			fields["labels"] = map[string]any{"tenant": row.tenant}
		}
		saveWith(t, queue, uid, fields)
		b := fixture.OnPart(t, queue.Of(uid))
		b.Step(time.Duration(i) * time.Minute)
		b.MustApply(b.Hand(uid, "a1"))
		record := b.One(uid)
		b.MustApply(record.Decide(record.Fail(policy.Failure{Reason: row.reason, ErrorType: "http"}, b.Clock()), b.Clock()))
	}
}

func TestFailingModelsAreGroupedByWhatTheyHaveInCommon(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue}
	for name, row := range map[string]struct {
		request FailuresRequest
		want    []string // by, models, uids, minutes since six; or the refused field
	}{
		"by fingerprint":       {FailuresRequest{By: ByFingerprint}, []string{"HTTP 500 5 0", "HTTP 404 2 3"}},
		"by error, as before":  {FailuresRequest{By: "error"}, []string{"HTTP 500 5 0", "HTTP 404 2 3"}},
		"of a tenant":          {FailuresRequest{By: ByFingerprint, Selector: "tenant=t2"}, []string{"HTTP 404 2 3", "HTTP 500 1 5"}},
		"by host":              {FailuresRequest{By: "host"}, []string{"host=b 3 2", "host=a 2 0", " 1 6", "host=c 1 5"}},
		"by a key":             {FailuresRequest{By: "{host(input_url)}", Selector: "tenant=t1"}, []string{"host=a 2 0", "host=b 1 2"}},
		"by label":             {FailuresRequest{By: "label:tenant"}, []string{"tenant=t1 3 0", "tenant=t2 3 3", " 1 6"}},
		"by policy":            {FailuresRequest{By: "policy"}, []string{"policy=p 7 0"}},
		"past: none":           {FailuresRequest{By: ByFingerprint, Past: true}, nil},
		"by nothing":           {FailuresRequest{By: "x"}, []string{"by"}},
		"no selector":          {FailuresRequest{By: "host", Selector: "?"}, []string{"selector"}},
		"past by host":         {FailuresRequest{By: "host", Past: true}, []string{"past"}},
		"past of some of them": {FailuresRequest{By: ByFingerprint, Past: true, Selector: "tenant=t1"}, []string{"past"}},
	} {
		groups, err := o.Failures(t.Context(), row.request)
		var got []string
		if err != nil {
			got = []string{refusedField(err)}
		}
		for _, g := range groups {
			by := g.By
			if strings.HasPrefix(by, "error=") {
				by = g.Reason
			}
			since := int(g.FirstAt.Sub(fixture.SixOClock).Minutes())
			got = append(got, fmt.Sprint(by, " ", g.Models, " ", since))
			if most := min(3, int(g.Models)); len(g.UIDs) != most || !slices.IsSorted(g.UIDs) && row.request.By != ByFingerprint && row.request.By != "error" {
				t.Errorf("%s: got the uids %v of %s, want %d", name, g.UIDs, by, most)
			}
		}
		if !cmp.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestASummaryOfAGroupNamesItsMostFrequentFingerprint(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue}
	groups := check.Got(o.Failures(t.Context(), FailuresRequest{By: "label:tenant", Selector: "tenant=t2"}))(t)
	if got := groups[0].Summary(); !strings.HasPrefix(got, "2 by "+groups[0].ID) || !strings.Contains(got, "404") {
		t.Errorf("got %s, want two by the fingerprint of HTTP 404", got)
	}
	one := check.Got(o.Failure(t.Context(), groups[0].ID))(t)
	got := fmt.Sprint(one.Summary(), " ", one.Count, " ", one.Began, " ", one.Ended, " ", one.Examples, " ", one.UIDs)
	if want := "HTTP 404 2 2 0 [f3 f4] [f3 f4]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, id := range []string{"000000000000", "?"} {
		if _, err := o.Failure(t.Context(), id); err == nil {
			t.Errorf("%s: want it refused", id)
		}
	}
}

func TestFreshnessCountsAndNamesTheModelsThatAreStaleForLongest(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue}
	ctx := t.Context()
	for i := range 13 { // succeeded long ago
		uid := fmt.Sprint("s", i)
		saveWith(t, queue, uid, map[string]any{"policy": "p", "labels": map[string]any{"tenant": "old"}})
		b := fixture.OnPart(t, queue.Of(uid))
		b.Step(-time.Duration(i*i) * time.Hour)
		b.MustApply(b.Hand(uid, "a1"))
		record := b.One(uid)
		b.MustApply(record.Decide(record.Succeed(b.Clock(), nil), b.Clock()))
	}
	found := check.Got(o.Freshness(ctx, FreshnessRequest{Histogram: true, Selector: "tenant=old"}))(t)
	var ages []string
	for _, bucket := range *found.Histogram {
		ages = append(ages, fmt.Sprint(bucket.UpTo, " ", bucket.Models))
	}
	if want := []string{"1h 1", "6h 2", "1d 2", "2d 2", "1w 6", "4w 0", "older 0", "never 0"}; !cmp.Equal(ages, want) {
		t.Errorf("ages: got %q, want %q", ages, want)
	}
	if got := found.Watched; got != 13 || found.Selector != "tenant=old" || len(found.Worst) > maxWorst {
		t.Errorf("got %d watched of %q, %d listed", got, found.Selector, len(found.Worst))
	}
	all := check.Got(o.Freshness(ctx, FreshnessRequest{Histogram: true}))(t)
	ages = nil
	for _, bucket := range *all.Histogram {
		ages = append(ages, fmt.Sprint(bucket.Models))
	}
	if got, want := strings.Join(ages, " "), "1 2 2 2 6 0 0 7"; got != want || all.Watched != 20 {
		t.Errorf("all: got %s of %d, want %s of 20", got, all.Watched, want)
	}
}

func TestFreshnessOfThenIsTheLastNoteBeforeIt(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue}
	ctx := t.Context()
	for _, part := range queue.Parts {
		must(t, report.Of(part).NoteSample(ctx, fixture.SixOClock))
	}
	for at, want := range map[string]string{"2026-11-20T06:00:00Z": "at", "2027-11-21T06:00:00Z": "at"} {
		if _, err := o.Freshness(ctx, FreshnessRequest{At: at}); refusedField(err) != want {
			t.Errorf("%s: got %v, want refused %s", at, err, want)
		}
	}
}

func TestAShareIsThatOfTheWatchedModels(t *testing.T) {
	share := newFreshnessShare(report.FreshnessCounts{model.Fresh: 6, model.FreshnessNever: 1, model.FreshnessLate: 2, model.FreshnessStale: 3})
	if got, want := share.String(), "50.00% of 12 watched models are fresh, 1 never succeeded yet, 2 late, 3 stale"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := newFreshnessShare(nil).String(); got != "" {
		t.Errorf("of none: got %s, want nothing", got)
	}
	if got := NewRetryStats(3, 1, 2).Summary(); !strings.HasPrefix(got, "3, 1 of 2") || !strings.Contains(got, "(50%)") {
		t.Errorf("retries: got %s", got)
	}
	if got := NewRetryStats(0, 0, 0).Summary(); got != "" {
		t.Errorf("no retries: got %s, want nothing", got)
	}
}

func TestOccurrencesAreThoseAfterATimeInTheZoneOfTheRule(t *testing.T) {
	for name, row := range map[string]struct {
		request OccurrencesRequest
		times   string
		ended   bool
		notes   int // of clocks that are changed
	}{
		"from now on":             {OccurrencesRequest{Rule: "0 6 * * *", Count: 2}, "22T06:00 23T06:00", false, 0},
		"in a zone":               {OccurrencesRequest{Rule: "0 6 * * *", Timezone: "Asia/Tokyo", Count: 1}, "22T06:00", false, 0},
		"after a time":            {OccurrencesRequest{Rule: "0 6 * * *", After: "2026-11-24T05:00:00", Count: 1}, "24T06:00", false, 0},
		"from a dtstart":          {OccurrencesRequest{Rule: "FREQ=DAILY;INTERVAL=5", Dtstart: "2026-11-20T07:30:00", Count: 2}, "25T07:30 30T07:30", false, 0},
		"fewer than asked for":    {OccurrencesRequest{Rule: "FREQ=DAILY;COUNT=2", Dtstart: "2026-11-21T07:00:00", Count: 5}, "21T07:00 22T07:00", true, 0},
		"where clocks are turned": {OccurrencesRequest{Rule: "30 2 * * *", Timezone: "Europe/Berlin", After: "2027-03-27T12:00:00", Count: 1}, "28T03:30", false, 1},
	} {
		found, err := NextOccurrences(row.request, fixture.SixOClock)
		must(t, err)
		var times []string
		notes := 0
		for i, at := range found.Times {
			times = append(times, at.Format("02T15:04"))
			if found.Notes[i] != "" {
				notes++
			}
		}
		if got := strings.Join(times, " "); got != row.times || found.Ended != row.ended || notes != row.notes {
			t.Errorf("%s: got %s, ended %t, %d notes; want %s, %t, %d", name, got, found.Ended, notes, row.times, row.ended, row.notes)
		}
	}
}

func TestALogIsThatOfAnAttemptByItsNumber(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	ctx := t.Context()
	for number, want := range map[int]string{0: "log", 1: "-", 2: "log"} {
		if log, err := ReadLog(ctx, queue, "f1", number); refusedField(err) != want || err == nil && (log.Reason != "HTTP 500" || log.Text != "") {
			t.Errorf("attempt %d: got %+v, %v, want refused %s", number, log, err, want)
		}
	}
	if _, err := ReadLog(ctx, queue, "nobody", 1); refusedField(err) != "log" {
		t.Errorf("of nobody: got %v, want it refused", err)
	}
}

func TestLengthsOfAnAttemptAreThoseThatAreKnown(t *testing.T) {
	text := func(a Attempt) string {
		number := func(ms *int64) string {
			if ms == nil {
				return "-"
			}
			return fmt.Sprint(*ms)
		}
		return fmt.Sprint(a.Times, " ", a.DurationMS, " ", number(a.WaitMS), " ", number(a.WorkMS), " ", number(a.DelayMS), " ", a.JitterMS)
	}
	past := []model.Attempt{
		{Duration: 1500 * time.Millisecond},
		{Duration: 2 * time.Second, Times: 3, Overlap: "ends before planned", Delay: time.Minute, Jitter: time.Second},
	}
	var got []string
	for _, a := range NewAttempts(past) {
		got = append(got, text(a))
	}
	if want := []string{"1 1500 - - - 0", "3 2000 - - 60000 1000"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPoolHasOneStateAndItsNumberOfAttempts(t *testing.T) {
	for want, p := range map[string]WorkerPool{
		"silent": {Order: store.PoolStop}, "stopping": {Process: Process{Lives: true}, Order: store.PoolStop}, "quiet": {Process: Process{Lives: true}, Order: store.PoolQuiet}, "working": {Process: Process{Lives: true}},
	} {
		if got := p.State(); got != want {
			t.Errorf("%+v: got %s, want %s", p, got, want)
		}
	}
	p := WorkerPool{Taken: 5, Attempts: make([]RunningAttempt, 2)}
	if got := p.More(); got != 3 {
		t.Errorf("got %d more, want 3", got)
	}
	p.Taken = 1
	if got := p.More(); got != 0 {
		t.Errorf("got %d more, want none", got)
	}
}

func TestABulkIsConfirmedAndDescribed(t *testing.T) {
	b := Bulk{ID: "b1", State: "running", Seen: 1, Picked: 2, Done: 3, Others: map[model.Outcome]int64{model.Busy: 4, model.UnknownModel: 5}}
	if got, want := b.String(), "b1 running: 1 model seen, 2 picked, 3 done, 4 busy, 5 unknown model"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue, By: "ann"}
	ctx := t.Context()
	id := check.Got(o.BeginBulk(ctx, BulkRequest{Action: model.CommandRun, Selector: "tenant=t1", Rate: "10/s", Force: true}))(t)
	found := check.Got(o.Bulk(ctx, id))(t)
	got := fmt.Sprint(found.ID == id, " ", found.Action, " ", found.Selector, " ", found.Rate, " ", found.Force, " ", found.By, " ", found.State, " ", found.EndedAt.IsZero())
	if want := "true run tenant=t1 10/2s true ann running true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	cancelled := check.Got(o.CancelBulk(ctx, id))(t)
	if !cancelled.Cancelled() || cancelled.EndedAt.IsZero() || found.Cancelled() {
		t.Errorf("got %+v, want it cancelled at a time", cancelled)
	}
	if _, err := o.CancelBulk(ctx, id); err == nil {
		t.Error("cancelled twice, want it refused")
	}
}

func TestASelectionIsCountedOrBounded(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	o := Operator{Queue: queue}
	for selector, want := range map[string]string{"tenant=t1": "3 models [f0 f1 f2]", "uid=f6": "1 model [f6]", "tenant=t9": "0 models []"} {
		for _, brief := range []bool{false, true} {
			found := check.Got(o.Select(t.Context(), selector, brief))(t)
			if got := fmt.Sprint(found.String(), " ", found.Examples); got != want {
				t.Errorf("%s, brief %t: got %s, want %s", selector, brief, got, want)
			}
		}
	}
	most := Selected{Models: 9, Most: true}
	if got, want := most.String(), "at most 9 models"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNamesOfPoliciesAreCompleted(t *testing.T) {
	queue := parted(t)
	for _, name := range []string{"feeds", "fast", "slow"} {
		must(t, queue.Fleet().PutPolicy(t.Context(), fixture.Policy(t, `{"name":"`+name+`"}`)))
	}
	for begun, want := range map[string][]string{"f": {"fast", "feeds"}, "fe": {"feeds"}, "x": {}} {
		got := check.Got(PoliciesLike(t.Context(), Operator{Queue: queue}, begun))(t)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", begun, got, want)
		}
	}
}

func TestOutcomesOfManyAreCountedByResult(t *testing.T) {
	queue := parted(t)
	failing(t, queue)
	results := map[string]int{}
	tally := check.Got(Operator{Queue: queue}.ExecuteEach(t.Context(), model.Command{Type: model.CommandRun}, []string{"f0", "f1", "nobody"}, func(all []Outcome) error {
		for _, o := range all {
			results[o.UID+" "+o.Result]++
		}
		return nil
	}))(t)
	if got, want := slices.Sorted(maps.Keys(results)), []string{"f0 run", "f1 run", "nobody refused"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if tally.Commands != 3 || tally.Results["run"] != 2 {
		t.Errorf("got %+v, want three commands, two of them run", tally)
	}
}
