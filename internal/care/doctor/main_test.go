package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// queue is the fixture of a queue that is checked.
type queue struct {
	*fixture.Queue
	t *testing.T
}

// everywhere runs a test on both servers with a clock that stands still.
func onBothServers(t *testing.T, test func(t *testing.T, q *queue)) {
	t.Helper()
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		test(t, &queue{fixture.New(t, server), t})
	})
}

// put saves models as an application does.
func (q *queue) put(commands ...string) {
	q.t.Helper()
	p, err := poller.New(q.Store, poller.Config{Owner: "putter"})
	if err != nil {
		q.t.Fatal(err)
	}
	q.Command(commands...)
	for left := len(commands); left > 0; {
		round, err := p.RunOnce(q.t.Context())
		if err != nil || round.Claimed == 0 || round.Rejected > 0 {
			q.t.Fatalf("put: expected %d more models saved, found %+v, %v; %s", left, round, err, q.List(q.Store.Keys.Rejected))
		}
		left -= round.Applied + round.Settled
	}
	if err := q.Store.Resign(q.t.Context(), "putter"); err != nil {
		q.t.Fatal(err)
	}
}

// ok ends a test when a preparation fails.
func (q *queue) ok(err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatal(err)
	}
}

// check runs all checks without a look at the clock of this machine, and leaves out what every server of a test has: no persistence,
// or nothing to tell about itself.
func (q *queue) check(options Options) *Report {
	q.t.Helper()
	report, err := Check(context.WithoutCancel(q.t.Context()), &store.Queue{Parts: []*store.Store{q.Store}}, options)
	q.ok(err)
	return report.without("persistence", "server-silent")
}

func (r *Report) without(codes ...string) *Report {
	for _, code := range codes {
		delete(r.Counts, code)
		var kept []Finding
		for _, f := range r.Findings {
			if f.Code != code {
				kept = append(kept, f)
			}
		}
		r.Findings = kept
	}
	return r
}

func (r *Report) String() string {
	var text strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&text, "%s %s %s: expected %s, found %s; %s; repaired %v\n", f.Severity, f.Code, f.Where, f.Want, f.Found, f.Repair, f.Repaired)
	}
	return text.String()
}

// healthy expects a report without findings.
func healthy(t *testing.T, report *Report) {
	t.Helper()
	if len(report.Counts) > 0 {
		t.Fatalf("expected a healthy queue, found\n%s", report)
	}
}

// tells expects each text in a report.
func tells(t *testing.T, report *Report, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(report.String(), want) {
			t.Errorf("want %s in\n%s", want, report)
		}
	}
}

const minute = time.Minute
