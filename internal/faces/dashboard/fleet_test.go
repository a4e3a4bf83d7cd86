package dashboard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/poller"
)

// fleet is a queue on a redis-server, its daemons, and a dashboard that serves it.
type fleet struct {
	*fixture.Queue

	t         *testing.T
	queue     *store.Queue
	client    redis.UniversalClient // of the dashboard
	dashboard *Dashboard
	rounds    struct { // by hand, before live
		dispatcher *dispatcher.Dispatcher
		poller     *poller.Poller
	}
	begun []fixture.Entry // attempts that workers have begun
}

// newFleet starts a dashboard. The clock of its queue stands on a Monday morning until it is turned.
func newFleet(t *testing.T, config Config) *fleet {
	t.Helper()
	f := &fleet{Queue: fixture.New(t, testkit.Redis(t)), t: t}
	f.Clock.Set(time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC))
	f.client = f.Server.Client(t)
	var err error
	clients := &store.Clients{Read: f.client, Write: f.client, Block: f.client}
	if f.queue, err = store.Open(t.Context(), clients, store.Config{Clock: f.Clock.Now}); err != nil {
		t.Fatal(err)
	}
	if f.rounds.dispatcher, err = dispatcher.New(f.Store, dispatcher.Config{Owner: "dispatcher-1", Tick: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if f.rounds.poller, err = poller.New(f.Store, poller.Config{Owner: "poller-1", Tick: 50 * time.Millisecond, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	config.Listen, config.Clock, config.Tick = "127.0.0.1:0", time.Now, 100*time.Millisecond
	if f.dashboard, err = Open([]*store.Queue{f.queue}, config); err != nil {
		t.Fatal(err)
	}
	f.run(f.dashboard.Run)
	return f
}

// run runs a loop until the test ends.
func (f *fleet) run(loop func(context.Context) error) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := loop(ctx); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// live lets the daemons run by themselves from now on.
func (f *fleet) live() {
	f.t.Helper()
	f.run(f.rounds.dispatcher.Run)
	f.run(f.rounds.poller.Run)
}

// url is the address of a page.
func (f *fleet) url(path string) string {
	return strings.TrimSuffix(f.dashboard.URL(), "/") + home + path
}

// policies stores policies of YAML.
func (f *fleet) policies(yaml string) {
	f.t.Helper()
	docs, err := definitions.ReadPolicies("policies", strings.NewReader(yaml))
	if err != nil {
		f.t.Fatal(err)
	}
	sources, err := definitions.Drafts(docs, "policies", false)
	if err == nil {
		err = definitions.Complete(sources, func() (policy.Policy, error) { return policy.Default(), nil })
	}
	for i := range sources {
		if err == nil {
			err = f.queue.Fleet().PutPolicy(f.t.Context(), sources[i].Policy)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// work lets the daemons do all that is to be done now.
func (f *fleet) work() {
	f.t.Helper()
	for range 200 {
		polled, err := f.rounds.poller.RunOnce(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		dispatched, err := f.rounds.dispatcher.RunOnce(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if polled.Claimed == 0 && dispatched.Started == 0 {
			return
		}
	}
	f.t.Fatal("expected daemons that come to an end")
}

// turn lets workers answer what they have begun, lets them take what waits, and turns the clock. answer returns type and fields of the message about an
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
	f.Clock.Turn(by)
	if err := takeSample(f.t.Context(), f.dashboard.sites.list[0]); err != nil {
		f.t.Fatal(err)
	}
}

// fail saves a model, runs it, and lets its attempt fail.
func (f *fleet) fail(uid, definition, failure string) {
	f.t.Helper()
	f.Command(fmt.Sprintf(`{"type":"put","uid":%q,"refresh":"now",%s}`, uid, definition))
	f.work()
	f.Say(fixture.Result("failure", uid, f.Attempt(uid), failure))
	f.work()
	for _, found := f.Take(); found; _, found = f.Take() {
	}
}

// get asks for a page, as no browser does.
func (f *fleet) get(path string) string { f.t.Helper(); return f.body(f.url(path)) }

// body is what stands at an address.
func (f *fleet) body(address string) string {
	f.t.Helper()
	response, err := http.Get(address)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}
