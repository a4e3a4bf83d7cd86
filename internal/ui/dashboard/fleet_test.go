package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

// fleet is a queue on a redis-server with many models, whose dashboard is looked at with a real browser.
type fleet struct {
	*visitor
	client redis.UniversalClient // of the dashboard
	begun  []fixture.Entry       // attempts that workers have begun
}

// newFleet opens a dashboard. The clock of its queue stands on a Monday morning until it is turned.
func newFleet(t *testing.T, config Config) *fleet {
	t.Helper()
	q := fixture.New(t, testkit.Redis(t))
	q.Clock.Set(time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC))
	client := q.Server.Client(t)
	config.Clock, config.Tick = time.Now, 100*time.Millisecond
	return &fleet{visitor: sitAt(t, q, "", client, func(c *Config) { *c = config }), client: client}
}

func (f *fleet) live() {
	f.t.Helper()
	check.Run(f.t, f.dispatcher.Run)
	check.Run(f.t, f.poller.Run)
}

func (f *fleet) url(path string) string {
	return f.server.URL + home + path
}

func (f *fleet) policies(yaml string) {
	f.t.Helper()
	docs := check.Got(definitions.ReadPolicies("policies", strings.NewReader(yaml)))(f.t)
	sources, err := definitions.Drafts(docs, "policies")
	if err == nil {
		err = definitions.Complete(sources, func() (policy.Policy, error) { return policy.Default(), nil })
	}
	for i := range sources {
		if err == nil {
			err = f.queue.Fleet().PutPolicy(f.t.Context(), sources[i].Policy)
		}
	}
	must(f.t, err)
}

// work lets the daemons do all that is to be done now.
func (f *fleet) work() {
	f.t.Helper()
	for range 200 {
		polled := check.Got(f.poller.RunOnce(f.t.Context()))(f.t)
		dispatched := check.Got(f.dispatcher.RunOnce(f.t.Context()))(f.t)
		if polled.Claimed == 0 && dispatched.Started == 0 {
			return
		}
	}
	f.t.Fatal("expected daemons that come to an end")
}

// turn lets workers answer what they have begun, lets them take what waits, and turns the clock by whole minutes. answer returns type and fields of the message about an
// attempt; a type of "" is none.
func (f *fleet) turn(by time.Duration, answer func(entry fixture.Entry) (kind string, fields []string)) {
	f.t.Helper()
	for _, entry := range f.begun {
		if kind, fields := answer(entry); kind != "" {
			f.Say(fixture.Result(kind, entry.UID, entry.AttemptUID, fields...))
		}
	}
	f.begun = nil
	f.work()
	for entry, found := f.Take(); found; entry, found = f.Take() {
		f.Say(fixture.Result("started", entry.UID, entry.AttemptUID, `"worker":"worker-7f"`))
		f.begun = append(f.begun, entry)
	}
	f.work()
	for range by / time.Minute {
		f.Clock.Turn(time.Minute)
		must(f.t, report.Of(f.Store).NoteSample(f.t.Context(), f.Clock.Now()))
	}
}

// fail saves a model, runs it, and lets its attempt fail.
func (f *fleet) fail(uid, definition, failure string) {
	f.t.Helper()
	f.Command(fmt.Sprintf(`{"type":"put","uid":%q,"refresh":"now",%s}`, uid, definition))
	f.work()
	f.Say(fixture.Result("failure", uid, f.Attempt(uid), failure))
	f.work()
	f.start()
}
