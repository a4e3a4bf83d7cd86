package metrics_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/ui/metrics"
	domain "github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

// story is a queue with a dispatcher and a poller that are measured, on a clock to turn.
type story struct {
	*fixture.Queue
	*metrics.Metrics
	t          *testing.T
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	rounds     [2]*metrics.Loop
}

type measured struct {
	*store.Store
	loop *metrics.Loop
}

func (m measured) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	codes, err := m.Store.Commit(ctx, batch)
	m.loop.Committed(batch, codes)
	return codes, err
}

func newStory(t *testing.T, server *testkit.Server) *story {
	t.Helper()
	queue := fixture.New(t, server)
	s := &story{Queue: queue, Metrics: metrics.New(metrics.Build{Version: "v1.2.3", Commit: "abc", Go: "go1.26"}, queue.Clock.Now), t: t}
	s.Watch(&redis.Clients{Read: queue.Redis, Write: queue.Redis, Block: queue.Redis})
	name := queue.Store.Keys.Queue
	whole, err := store.Open(t.Context(), &redis.Clients{Read: queue.Redis, Write: queue.Redis, Block: queue.Redis}, store.Config{Clock: queue.Clock.Now})
	must(t, err)
	s.Metrics.Queue(whole)
	s.rounds = [2]*metrics.Loop{s.Loop(name, "dispatcher"), s.Loop(name, "poller")}
	attempts := 0
	uid := func() string { attempts++; return fmt.Sprintf("a%d", attempts) }
	rooms := dispatcher.RoomsOf(queue.Store)
	rooms.Store = measured{queue.Store, s.rounds[0]}
	s.dispatcher = check.Got(dispatcher.New(rooms, dispatcher.Config{Owner: "d", NewUID: uid}))(t)
	s.poller = check.Got(poller.New(poller.Rooms{Store: measured{queue.Store, s.rounds[1]}, Flow: flow.Of(queue.Store)}, poller.Config{Owner: "p", NewUID: uid}))(t)
	return s
}

// work does rounds of both until nothing changes any more.
func (s *story) work() {
	s.t.Helper()
	for range 6 {
		for i, round := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := s.dispatcher.RunOnce(ctx); return err },
			func(ctx context.Context) error { _, err := s.poller.RunOnce(ctx); return err },
		} {
			ended := s.rounds[i].Begin()
			err := round(s.t.Context())
			if ended(err); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// take takes all attempts, and returns them by their models.
func (s *story) take() map[string]string {
	taken := map[string]string{}
	for entry, found := s.Take(); found; entry, found = s.Take() {
		taken[entry.UID] = entry.AttemptUID
	}
	return taken
}

// scrape asks as Prometheus does.
func (s *story) scrape() map[string]*dto.MetricFamily { s.t.Helper(); return scrape(s.t, s.Metrics) }

func scrape(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	reply := httptest.NewRecorder()
	m.Handler().ServeHTTP(reply, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	stopIf(t, err != nil || reply.Code != http.StatusOK, "scrape: status %d: %v", reply.Code, err)
	return families
}

// values are all numbers of some metrics that are not 0, and of histograms how many there are and their sum.
func values(families map[string]*dto.MetricFamily, skip ...string) map[string]float64 {
	all := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "refreshd_") || slices.Contains(skip, name) {
			continue
		}
		for _, m := range family.Metric {
			var labels []string
			for _, label := range m.Label {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			key := name + "{" + strings.Join(labels, ",") + "}"
			if h := m.Histogram; h != nil {
				all[key+" count"], all[key+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			if value := m.GetGauge().GetValue() + m.GetCounter().GetValue(); value != 0 {
				all[key] = value
			}
		}
	}
	return all
}

const promising = `"rrule":"FREQ=DAILY","policy":{"timeout":"10m","retries":["1h"],"on_exhausted":"give_up","fresh_within":"2h"}`

// tell tells the story: of m1 and m2 one succeeds and the other fails, m3 is lost, m4 is held, and the worker of m5 says it twice; m6 waits. Its
// clock moves by seconds between.
func (s *story) tell() {
	s.t.Helper()
	for i := range 6 {
		s.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","refresh":"now",%s}`, i+1, promising))
	}
	picks, err := domain.ParseSelector("uid=m4")
	if err == nil {
		err = flow.Of(s.Store).PutHold(s.t.Context(), &domain.Hold{ID: "h1", Selector: picks, Since: s.Clock.Now(), Until: s.Clock.Now().Add(100 * time.Hour), Reason: "maintenance"})
	}
	must(s.t, err)
	must(s.t, check.Only(s.poller.RunOnce(s.t.Context()))) // they are saved, and due
	s.Clock.Turn(2 * time.Second)
	s.work()
	attempts := s.take()
	s.Clock.Turn(3 * time.Second)
	for _, uid := range []string{"m1", "m2", "m3", "m5"} {
		s.Say(fixture.Result("started", uid, attempts[uid]))
	}
	s.work()
	s.Clock.Turn(5 * time.Second)
	s.Say(fixture.Result("success", "m1", attempts["m1"]), fixture.Result("failure", "m2", attempts["m2"], `"reason":"no","error_type":"http_503"`),
		fixture.Result("success", "m5", attempts["m5"]), fixture.Result("success", "m5", attempts["m5"]), fixture.Result("success", "m1", "old"),
		fixture.Result("success", "none", "x"), "no JSON", fixture.Result("nonsense", "m1", "x"))
	s.work()
	s.Clock.Turn(10 * time.Minute) // m3 is lost, and the attempt of m6 was taken and never begun
	s.work()
	must(s.t, check.Only(flow.Of(s.Store).OpenCircuit(s.t.Context(), domain.QueueCircuitKey, "", "", s.Clock.Now().Add(time.Hour), s.Clock.Now())))
	s.Clock.Turn(2 * time.Hour)
	s.work()
	s.Clock.Turn(7 * time.Second)
}

func TestTheNumbersTellTheStory(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		s := newStory(t, server)
		s.tell()
		// How many rounds and calls there are is no part of the story.
		got := values(s.scrape(), "refreshd_round_seconds", "refreshd_script_seconds", "refreshd_commit_items")
		text := ""
		for _, key := range slices.Sorted(maps.Keys(got)) {
			text += fmt.Sprintf("%s %g\n", key, got[key])
		}
		golden(t, "testdata/story.txt", text)
	})
}

// golden compares with a file, which REFRESHD_GOLDEN=1 writes anew.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("REFRESHD_GOLDEN") != "" {
		must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want := check.Got(os.ReadFile(file))(t)
	diff := cmp.Diff(string(want), got)
	failIf(t, diff != "", "%s (-want +got):\n%s", file, diff)
}

// serve lets a worker with one slot do nothing for an attempt.
func (s *story) serve() {
	s.t.Helper()
	name := s.Store.Keys.Queue
	handler := s.Work(name, func(context.Context, *worker.Attempt) error { s.Clock.Turn(time.Second); return nil })
	pool := check.Got(worker.New(s.Store.Pool(), handler, worker.Config{Concurrency: 1}))(s.t)
	s.Pool(name, pool, 1)
	must(s.t, handler(s.t.Context(), &worker.Attempt{}))
}

func TestNobodyOutsideMakesUpLabels(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		s := newStory(t, server)
		s.tell()
		before := series(s.scrape())
		for i := range 50 {
			s.Command(fmt.Sprintf(`{"type":"put","uid":"h%d","refresh":"now","payload":{"input_url":"http://h%[1]d/"},"policy":{"limits":[{"key":"{host(input_url)}","running":1}]}}`, i),
				fmt.Sprintf(`{"type":"evil%d","uid":"h"}`, i))
			s.Say(fixture.Result(fmt.Sprintf("type%d", i), "m1", "x"), fmt.Sprintf(`{"type":"success","big_table_uid":"u%d","refresh_attempt_uid":"x"}`, i))
		}
		s.work()
		for uid, attempt := range s.take() {
			s.Say(fixture.Result("started", uid, attempt, `"worker":"w`+uid+`"`), fixture.Result("failure", uid, attempt, `"reason":"r`+uid+`","error_type":"t`+uid+`"`))
		}
		s.work()
		k := s.Store.Keys
		for i := range 50 {
			s.Redis.HSet(t.Context(), k.Stats, fmt.Sprintf("made_up%d", i), i)
			s.Redis.ZAdd(t.Context(), k.Blockers, goredis.Z{Score: 1, Member: fmt.Sprintf("kind%d:x", i)})
			s.Redis.ZAdd(t.Context(), k.Workers, goredis.Z{Score: 1, Member: fmt.Sprintf("worker%d", i)})
		}
		s.Clock.Turn(2 * time.Second)
		after := series(s.scrape())
		// Nothing of it was seen before: messages that are rejected for their types, and a failure of a one-shot.
		for name := range after {
			for _, word := range []string{"evil", "type1", "made_up", "kind1", "worker1", "h1", "u1"} {
				failIf(t, strings.Contains(name, word), "a label that somebody made up: %s", name)
			}
		}
		more := len(after) - len(before)
		failIf(t, more > 20, "%d series more, for 50 of everything", more)
	})
}

func series(families map[string]*dto.MetricFamily) map[string]bool {
	all := map[string]bool{}
	for name, family := range families {
		for _, m := range family.Metric {
			all[fmt.Sprint(name, m.Label)] = true
		}
	}
	return all
}

func TestTheStartOfAModelThatWaitedForAnotherOfItsHostIsNotLate(t *testing.T) {
	t.Parallel()
	s := newStory(t, testkit.Miniredis(t))
	for _, uid := range []string{"m1", "m2"} {
		s.Command(fmt.Sprintf(`{"type":"put","uid":%q,"refresh":"now","payload":{"input_url":"http://h/"},"policy":{"limits":[{"key":"{host(input_url)}","running":1}]}}`, uid))
	}
	s.work()
	s.Clock.Turn(5 * time.Minute)
	for uid, attempt := range s.take() {
		s.Say(fixture.Result("success", uid, attempt))
	}
	s.work()
	got := values(s.scrape())
	started, late := 0.0, got["refreshd_start_lateness_seconds{queue=bigtables} sum"]
	for _, loop := range []string{"dispatcher", "poller"} { // each has started one
		started += got["refreshd_transitions_total{event=start,loop="+loop+",queue=bigtables}"]
	}
	failIf(t, started != 2 || late != 0, "expected two starts that are not late, found %g, late by %g s", started, late)
}
