package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// absent is a queue on the clock of Redis in which somebody is missing.
type absent struct {
	*console
	*fixture.Queue
}

func missing(t *testing.T, server *testkit.Server, models string) *absent {
	t.Helper()
	a := &absent{at(t, server), fixture.Live(t, server)}
	a.put(models)
	return a
}

// ago is an instant on the clock of Redis.
func (a *absent) ago(length time.Duration) time.Time {
	a.t.Helper()
	now := check.Got(a.Store.Now(a.t.Context()))(a.t)
	return now.Add(-length)
}

func (a *absent) wait(uid string, length time.Duration) {
	at := a.ago(length)
	a.Redis.HSet(a.t.Context(), a.Store.Keys.Model(uid), "refresh_at", model.FormatTime(at))
	a.beat(a.Store.Keys.Due, uid, at)
}

func (a *absent) beat(set, name string, at time.Time) {
	a.t.Helper()
	must(a.t, a.Redis.ZAdd(a.t.Context(), set, redis.Z{Score: float64(at.UnixMilli()), Member: name}).Err())
}

// expectMissing expects explain, get and doctor to name a party with the beginning of a clause.
func (a *absent) expectMissing(uid, party, clause string) {
	a.t.Helper()
	for _, command := range [][]string{{"explain", uid}, {"model", "get", uid}} {
		expectContains(a.t, a.do(command...), words.Sentence(clause)[:len(clause)])
	}
	for _, command := range [][]string{{"explain", uid}, {"model", "get", uid}} {
		found, _ := a.object(command...)["missing"].(map[string]any)
		reason := fmt.Sprint(found["reason"])
		failIf(a.t, found["party"] != party || found["certain"] != true || !strings.HasPrefix(reason, clause),
			"%s: expected %s to be missing, found %v", command, party, found)
	}
	code, stdout, _ := a.run("doctor")
	failIf(a.t, code != exitFailed, "doctor: expected exit code 1, found %d\n%s", code, stdout)
	expectContains(a.t, stdout, "error    "+party+"-missing", "found "+clause)
}

func (a *absent) expectNobodyMissing(uid string) {
	a.t.Helper()
	found := a.object("explain", uid)
	failIf(a.t, found["missing"] != nil, "expected nobody to be missing, found %v", found["missing"])
	expectContains(a.t, a.do("doctor"), "0 errors")
}

func TestWhenNobodyRunsTheDispatcherIsNamed(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		a := missing(t, server, "uid: a\n")
		a.wait("a", -time.Minute) // after its time a dispatcher has 5 s
		a.expectNobodyMissing("a")
		a.wait("a", time.Minute)
		a.expectMissing("a", "dispatcher", "no dispatcher is running")
		a.beat(a.Store.Keys.Dispatchers, "d1", a.ago(30*time.Second)) // it may have a long tick
		expectContains(t, a.do("explain", "a"), "No dispatcher has given a sign of life for 3")
		a.do("doctor")
		a.beat(a.Store.Keys.Dispatchers, "d1", a.ago(2*time.Minute))
		a.expectMissing("a", "dispatcher", "no dispatcher has given a sign of life for 2 minutes")
	})
}

func TestWhenNoWorkerTakesAnythingTheWorkerIsNamed(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		a := missing(t, server, "uid: first\n---\nuid: second\n")
		a.wait("first", 3*time.Minute)
		a.wait("second", 2*time.Minute)
		dispatcher := a.start("dispatcher", "--max-queued", "1")
		a.AwaitEvent("start", 1)
		started := a.ago(90 * time.Minute)
		a.Redis.HSet(t.Context(), a.Store.Keys.Model("first"), "started_at", model.FormatTime(started))
		a.expectMissing("first", "worker", "no worker has taken anything for 1 hour 3")
		a.expectMissing("second", "worker", "no worker has taken anything for 1 hour 3")
		text := a.do("explain", "second")
		expectContains(t, text, "input list is full")
		failIf(t, strings.Contains(text, "dispatcher"), "expected no word of a dispatcher, found %s", text)
		_, taken := a.Take()
		stopIf(t, !taken, "expected an attempt in line")
		a.AwaitEvent("start", 2)
		a.expectNobodyMissing("first") // a worker has it
		a.expectNobodyMissing("second")
		dispatcher.ends(t)
	})
}

func TestWhenResultsWaitThePollerIsNamed(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		a := missing(t, server, "uid: a\n")
		start(t, a.Queue)
		entry, _ := a.Take()
		a.expectNobodyMissing("a")
		a.Say(fixture.Result("success", "a", entry.AttemptUID))
		a.expectMissing("a", "poller", "no poller is running")
		poller := a.start("poller")
		a.AwaitEvent("success", 1)
		a.expectNobodyMissing("a")
		poller.stop()
	})
}

func TestStatsListWhoLives(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		a := missing(t, server, "uid: a\nrrule: FREQ=YEARLY\n")
		expectContains(t, a.do("stats"), "dispatchers     0  none is known\n", "pollers         0  none is known\n", "workers         0  none is known\n")
		var daemons []*background
		for _, args := range [][]string{{"dispatcher"}, {"poller", "--owner", "p1"}, {"worker", "--exec", "true", "--grace", "0"}} {
			daemons = append(daemons, a.start(args...))
		}
		for _, party := range []string{"dispatchers", "pollers", "workers"} {
			check.Eventually(t, party+" live", func() bool { return len(a.living()[party]) == 1 })
		}
		a.beat(a.Store.Keys.Pollers, "p0", a.ago(3*time.Minute)) // not adopted by p1 yet, or gone
		expectContains(t, a.do("stats"), "pollers         1  p1 (")
		p1 := a.living()["pollers"][0]
		failIf(t, p1["name"] != "p1" || p1["lives"] != true || p1["part"] != nil, "expected p1 to live, found %v", p1)
		for _, daemon := range daemons {
			daemon.stop()
		}
		for party, members := range a.living() {
			for _, member := range members {
				failIf(t, member["name"] != "p0", "expected no %s known when they have stopped, found %v", party, members)
			}
		}
	})
}

func (a *absent) living() map[string][]map[string]any {
	a.t.Helper()
	found, _ := a.object("stats")["living"].(map[string]any)
	living := make(map[string][]map[string]any)
	for party, members := range found {
		for _, member := range members.([]any) {
			living[party] = append(living[party], member.(map[string]any))
		}
	}
	return living
}

func TestStatsListTheMembersOfEachPart(t *testing.T) {
	d := divide(t, testkit.Miniredis(t), 3)
	a := &absent{d.console, fixture.Live(t, d.server)}
	for i, part := range d.Parts[:2] {
		a.Store = part
		a.beat(part.Keys.Workers, fmt.Sprint("w", i), a.ago(time.Duration(i)*10*time.Second))
	}
	expectContains(t, d.do("stats"), "workers      2 in 2 of 3 parts  w0 (", ", w1 (1")
	living := a.living()["workers"]
	failIf(t, len(living) != 2 || living[0]["part"] != "{bigtables:0}" || living[1]["part"] != "{bigtables:1}",
		"expected one in each of two parts, found %v", living)
}
