package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// ward is a queue with a patient or more.
type ward struct {
	*fixture.Queue
	t *testing.T
}

// everywhere runs a test on both servers with a clock that stands still.
func everywhere(t *testing.T, test func(t *testing.T, w *ward)) {
	t.Helper()
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		test(t, &ward{fixture.New(t, server), t})
	})
}

// put saves models as an application does.
func (w *ward) put(commands ...string) {
	w.t.Helper()
	p, err := poller.New(w.Store, poller.Config{Owner: "putter"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Command(commands...)
	for left := len(commands); left > 0; {
		round, err := p.RunOnce(w.t.Context())
		if err != nil || round.Claimed == 0 || round.Rejected > 0 {
			w.t.Fatalf("put: expected %d more models saved, found %+v, %v; %s", left, round, err, w.List(w.Store.Keys.Rejected()))
		}
		left -= round.Applied + round.Settled
	}
	if err := w.Store.Resign(w.t.Context(), "putter"); err != nil {
		w.t.Fatal(err)
	}
}

// ok ends a test when a preparation fails.
func (w *ward) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// examine runs the doctor without a look at the clock of this machine, and leaves out what every server of a test has: no persistence,
// or nothing to tell about itself.
func (w *ward) examine(options Options) *Report {
	w.t.Helper()
	report, err := Examine(context.WithoutCancel(w.t.Context()), w.Store, options)
	w.ok(err)
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
		fmt.Fprintf(&text, "%s %s %s: expected %s, found %s; %s; mended %v\n", f.Severity, f.Code, f.Where, f.Want, f.Found, f.Repair, f.Mended)
	}
	return text.String()
}

const minute = time.Minute
