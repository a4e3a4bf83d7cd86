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

// clinic is a desk on a clock that a test turns.
type clinic struct {
	*Desk
	t   *testing.T
	now time.Time
}

const patience = 10 * time.Minute

func newClinic(t *testing.T) *clinic {
	c := &clinic{t: t, now: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)}
	c.Desk = NewDesk(patience, func() time.Time { return c.now })
	return c
}

// ask returns the status and the report of a path.
func (c *clinic) ask(path string) (int, Report) {
	c.t.Helper()
	reply := httptest.NewRecorder()
	c.ServeHTTP(reply, httptest.NewRequest(http.MethodGet, path, nil))
	var report Report
	if err := json.Unmarshal(reply.Body.Bytes(), &report); err != nil {
		c.t.Fatalf("%s: %v in %s", path, err, reply.Body)
	}
	return reply.Code, report
}

func (c *clinic) expect(when string, live, ready int, why string) {
	c.t.Helper()
	gotLive, _ := c.ask("/livez")
	gotReady, report := c.ask("/readyz")
	if gotLive != live || gotReady != ready || !strings.Contains(report.Why, why) || why == "" && report.Why != "" {
		c.t.Errorf("%s: want livez %d and readyz %d because of %q, got %d and %d, %+v", when, live, ready, why, gotLive, gotReady, report)
	}
}

var errRedis = errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")

func TestALoopThatDoesItsRoundsIsReady(t *testing.T) {
	c := newClinic(t)
	c.expect("before any loop", 200, 503, "starting")
	loop := c.Loop("dispatcher", time.Second, false)
	for range 1000 {
		loop.Begin()(nil)
		c.now = c.now.Add(15 * time.Second) // exactly three ticks of the least length
		c.expect("three ticks later", 200, 200, "")
	}
	c.now = c.now.Add(time.Millisecond)
	c.expect("longer", 503, 503, "dispatcher: stuck: no round has ended for 15s")
}

func TestALoopThatHasNotBegunIsLiveForAsLongAsThePatienceAndNotReady(t *testing.T) {
	c := newClinic(t)
	loop := c.Loop("dispatcher", time.Second, false)
	c.now = c.now.Add(patience)
	c.expect("checking Redis first", 200, 503, "starting")
	end := loop.Begin()
	c.expect("in the first round", 200, 503, "starting")
	end(nil)
	c.expect("after it", 200, 200, "")
}

func TestALoopThatNeverBeginsIsStuckAfterThePatience(t *testing.T) {
	c := newClinic(t)
	c.Loop("dispatcher", time.Second, false)
	c.now = c.now.Add(patience + 1)
	c.expect("no round", 503, 503, "starting")
}

func TestALoopStuckInACallIsNeitherLiveNorReadyAfterThreeTicks(t *testing.T) {
	c := newClinic(t)
	loop, other := c.Loop("dispatcher", 20*time.Second, false), c.Loop("poller", time.Second, false)
	loop.Begin()(nil)
	loop.Begin()
	c.now = c.now.Add(time.Minute)
	other.Begin()(nil)
	c.expect("three ticks later", 200, 200, "")
	c.now = c.now.Add(time.Millisecond)
	c.expect("longer", 503, 503, "dispatcher: stuck")
}

func TestWhileRedisFailsALoopIsNotReadyAndLiveForAsLongAsThePatience(t *testing.T) {
	c := newClinic(t)
	loop := c.Loop("poller", time.Second, false)
	loop.Begin()(nil)
	for began := c.now; c.now.Sub(began) <= patience; c.now = c.now.Add(5 * time.Second) {
		loop.Begin()(errRedis)
		if c.now.Sub(began) <= 15*time.Second {
			c.expect("a short fault", 200, 200, "")
		} else {
			c.expect("a long fault", 200, 503, "poller: fails: no progress for")
		}
	}
	loop.Begin()(errRedis)
	c.expect("longer than the patience", 503, 503, "longer than the patience")
	if _, report := c.ask("/readyz"); report.Loops[0].Fault != errRedis.Error() || report.Loops[0].Failures != 122 {
		t.Errorf("want the fault and how often, got %+v", report.Loops)
	}
	loop.Begin()(nil)
	c.expect("over", 200, 200, "")
}

func TestALoopThatRestsIsHealthyWithoutWorkAndStuckOnlyInACall(t *testing.T) {
	c := newClinic(t)
	loop := c.Loop("pushing", time.Second, true)
	c.now = c.now.Add(time.Hour)
	c.expect("nothing to do for an hour", 200, 200, "")
	loop.Begin()(errRedis)
	c.expect("the first failure", 200, 200, "")
	c.now = c.now.Add(16 * time.Second)
	c.expect("a long fault", 200, 503, "fails")
	first, second := loop.Begin(), loop.Begin()
	second(nil)
	c.now = c.now.Add(16 * time.Second)
	c.expect("one of two calls hangs", 503, 503, "stuck")
	first(nil)
	c.expect("it has ended", 200, 200, "")
}

func TestAProcessThatStopsIsLiveAndNotReady(t *testing.T) {
	c := newClinic(t)
	c.Loop("poller", time.Second, false).Begin()(nil)
	c.Stop()
	c.now = c.now.Add(time.Hour)
	c.expect("stopping", 200, 503, "stopping")
}

func TestOnlyTwoPathsAndTwoMethodsAreAnswered(t *testing.T) {
	c := newClinic(t)
	for request, want := range map[string]int{
		"GET /livez": 200, "HEAD /livez": 200, "POST /livez": 405, "DELETE /readyz": 405, "GET /": 404, "GET /livez/": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		reply := httptest.NewRecorder()
		c.ServeHTTP(reply, httptest.NewRequest(method, path, nil))
		if reply.Code != want {
			t.Errorf("%s: want %d, got %d", request, want, reply.Code)
		}
	}
}

func TestWithoutADeskNothingIsNoted(t *testing.T) {
	var none *Desk
	none.Loop("poller", time.Second, false).Begin()(nil)
	none.Stop()
}
