package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

type queue struct {
	*fixture.Queue
	t *testing.T
}

// everywhere runs a test with a stopped clock.
func everywhere(t *testing.T, test func(t *testing.T, q *queue)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		test(t, &queue{fixture.New(t, server), t})
	})
}

// put saves models as an application does.
func (q *queue) put(commands ...string) {
	q.t.Helper()
	p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "putter"}))(q.t)
	q.Command(commands...)
	for left := len(commands); left > 0; {
		round, err := p.RunOnce(q.t.Context())
		stopIf(q.t, err != nil || round.Claimed == 0 || round.Rejected > 0,
			"put: expected %d more models saved, found %+v, %v; %s", left, round, err, q.List(q.Store.Keys.Rejected))
		left -= round.Applied + round.Settled
	}
	must(q.t, q.Store.Resign(q.t.Context(), "putter"))
}

func (q *queue) ok(err error) {
	q.t.Helper()
	must(q.t, err)
}

// check runs all checks without a look at the clock of this machine, and leaves out what every server of a test has: no persistence,
// or nothing to report about itself.
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

func healthy(t *testing.T, report *Report) {
	t.Helper()
	stopIf(t, len(report.Counts) > 0, "expected a healthy queue, found\n%s", report)
}

func tells(t *testing.T, report *Report, wants ...string) {
	t.Helper()
	for _, want := range wants {
		failIf(t, !strings.Contains(report.String(), want), "want %s in\n%s", want, report)
	}
}

const minute = time.Minute

// passing is a hook that changes nothing.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
