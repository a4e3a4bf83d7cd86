package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// process is a process with health checks, on a clock that a test turns.
type process struct {
	*Checks
	t   *testing.T
	now time.Time
}

const patience = 10 * time.Minute

func newProcess(t *testing.T) *process {
	p := &process{t: t, now: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)}
	p.Checks = NewChecks(patience, func() time.Time { return p.now })
	return p
}

func (p *process) ask(path string) (int, Report) {
	p.t.Helper()
	reply := httptest.NewRecorder()
	p.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, path, nil))
	var report Report
	if err := json.Unmarshal(reply.Body.Bytes(), &report); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, reply.Body)
	}
	return reply.Code, report
}

func (p *process) expect(when string, live, ready int, why string) {
	p.t.Helper()
	gotLive, _ := p.ask("/livez")
	gotReady, report := p.ask("/readyz")
	if gotLive != live || gotReady != ready || !strings.Contains(report.Why, why) || why == "" && report.Why != "" {
		p.t.Errorf("%s: want livez %d and readyz %d because of %q, got %d and %d, %+v", when, live, ready, why, gotLive, gotReady, report)
	}
}

var errRedis = errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")

func TestALoopThatDoesItsRoundsIsReady(t *testing.T) {
	p := newProcess(t)
	p.expect("before any loop", 200, 503, "starting")
	loop := p.Loop("dispatcher", time.Second, false)
	for range 1000 {
		loop.Begin()(nil)
		p.now = p.now.Add(15 * time.Second) // exactly three ticks of the least length
		p.expect("three ticks later", 200, 200, "")
	}
	p.now = p.now.Add(time.Millisecond)
	p.expect("longer", 503, 503, "dispatcher: stuck: no round has ended for 15s")
}

func TestALoopThatHasNotBegunIsLiveForAsLongAsThePatienceAndNotReady(t *testing.T) {
	p := newProcess(t)
	loop := p.Loop("dispatcher", time.Second, false)
	p.now = p.now.Add(patience)
	p.expect("checking Redis first", 200, 503, "starting")
	p.now = p.now.Add(1)
	p.expect("no round for longer", 503, 503, "starting")
	end := loop.Begin()
	p.expect("in the first round", 200, 503, "starting")
	end(nil)
	p.expect("after it", 200, 200, "")
}

func TestALoopStuckInACallIsNeitherLiveNorReadyAfterThreeTicks(t *testing.T) {
	p := newProcess(t)
	loop, other := p.Loop("dispatcher", 20*time.Second, false), p.Loop("poller", time.Second, false)
	loop.Begin()(nil)
	loop.Begin()
	p.now = p.now.Add(time.Minute)
	other.Begin()(nil)
	p.expect("three ticks later", 200, 200, "")
	p.now = p.now.Add(time.Millisecond)
	p.expect("longer", 503, 503, "dispatcher: stuck")
}

func TestWhileRedisFailsALoopIsNotReadyAndLiveForAsLongAsThePatience(t *testing.T) {
	p := newProcess(t)
	loop := p.Loop("poller", time.Second, false)
	loop.Begin()(nil)
	for began := p.now; p.now.Sub(began) <= patience; p.now = p.now.Add(5 * time.Second) {
		loop.Begin()(errRedis)
		if p.now.Sub(began) <= 15*time.Second {
			p.expect("a short fault", 200, 200, "")
		} else {
			p.expect("a long fault", 200, 503, "poller: fails: no progress for")
		}
	}
	loop.Begin()(errRedis)
	p.expect("longer than the patience", 503, 503, "longer than the patience")
	if _, report := p.ask("/readyz"); report.Loops[0].Fault != errRedis.Error() || report.Loops[0].Failures != 122 {
		t.Errorf("want the fault and how often, got %+v", report.Loops)
	}
	loop.Begin()(nil)
	p.expect("over", 200, 200, "")
}

func TestALoopThatWorksOnDemandIsHealthyWithoutWorkAndStuckOnlyInACall(t *testing.T) {
	p := newProcess(t)
	loop := p.Loop("pushing", time.Second, true)
	p.now = p.now.Add(time.Hour)
	p.expect("nothing to do for an hour", 200, 200, "")
	loop.Begin()(errRedis)
	p.expect("the first failure", 200, 200, "")
	p.now = p.now.Add(16 * time.Second)
	p.expect("a long fault", 200, 503, "fails")
	first, second := loop.Begin(), loop.Begin()
	second(nil)
	p.now = p.now.Add(16 * time.Second)
	p.expect("one of two calls hangs", 503, 503, "stuck")
	first(nil)
	p.expect("it has ended", 200, 200, "")
}

func TestAProcessThatStopsIsLiveAndNotReady(t *testing.T) {
	p := newProcess(t)
	p.Loop("poller", time.Second, false).Begin()(nil)
	p.Stop()
	p.now = p.now.Add(time.Hour)
	p.expect("stopping", 200, 503, "stopping")
}

func TestOnlyTwoPathsAndTwoMethodsAreAnswered(t *testing.T) {
	p := newProcess(t)
	for request, want := range map[string]int{
		"GET /livez": 200, "HEAD /livez": 200, "POST /livez": 405, "DELETE /readyz": 405, "GET /": 404, "GET /livez/": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		reply := httptest.NewRecorder()
		p.ServeHTTP(reply, httptest.NewRequest(method, path, nil))
		if reply.Code != want {
			t.Errorf("%s: want %d, got %d", request, want, reply.Code)
		}
	}
}

func TestWithoutChecksNothingIsRecorded(t *testing.T) {
	var none *Checks
	none.Loop("poller", time.Second, false).Begin()(nil)
	none.Stop()
}

func TestAPartOfAQueueThatFailsIsNoReasonToRestartTheOthers(t *testing.T) {
	p := newProcess(t)
	first, second := p.Loop("poller {q:0}", time.Second, false), p.Loop("poller {q:1}", time.Second, false)
	other := p.Loop("dispatcher {q:0}", time.Second, false)
	rounds := func(count int, of map[*Progress]error) {
		for range count {
			for loop, err := range of {
				loop.Begin()(err)
			}
			p.now = p.now.Add(5 * time.Second)
		}
	}
	rounds(1, map[*Progress]error{first: nil, second: nil, other: nil})
	rounds(200, map[*Progress]error{first: errRedis, second: nil, other: nil})
	p.expect("one of two fails", 200, 503, "poller {q:0}: fails for")
	rounds(200, map[*Progress]error{first: errRedis, second: errRedis, other: nil})
	p.expect("both fail", 503, 503, "poller {q:1}: fails for")
	rounds(1, map[*Progress]error{first: nil, second: nil, other: nil})
	rounds(200, map[*Progress]error{second: nil, other: nil})
	p.expect("one of two is stuck", 503, 503, "poller {q:0}: stuck")
}

func TestALoopThatHasDoneItsWorkIsForgotten(t *testing.T) {
	p := newProcess(t)
	loop := p.Loop("opening", time.Second, false)
	for range 1000 {
		loop.Begin()(errRedis)
		p.now = p.now.Add(time.Second)
	}
	p.expect("while it fails for longer than the patience", 503, 503, "opening: fails")
	p.Drop(loop)
	p.expect("afterwards", 200, 503, "starting")
	(*Checks)(nil).Drop(nil)
}
