package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// drawn is a random model in a random world, some time after something has happened to it.
func drawn(t *testing.T, rng *rand.Rand) (l *life, now time.Time, told string) {
	t.Helper()
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	fields := `"timeout":"` + pick("10m", "1h") + `","retries":[` + pick(`"10m","10m"`, `0,"45m"`, `"2h"`, ``) + `],"on_exhausted":"` + pick("give_up", "next_planned") + `"` +
		pick("", "", `,"give_up_after":"3h"`, `,"give_up_after":"50m"`) + pick("", "", `,"queue_timeout":"5m"`) + pick("", "", `,"misfire":"skip"`) +
		pick("", "", `,"alignment":"until_success"`) + pick("", "", `,"retry_window":"FREQ=DAILY;BYHOUR=6,9,10,11,18"`, `,"retry_window":"FREQ=DAILY;BYHOUR=6,7,8,9;BYMINUTE=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20"`) + pick("", `,"closed":["nightly"]`) +
		pick("", `,"circuit":{"key":"{label.tenant}","open_after":"2 of 3","probe":"5m"}`) +
		pick("", `,"limits":[{"key":"{label.tenant}","rate":"1/10m"}]`, `,"limits":[{"key":"{label.tenant}","rate":"6/1h","running":3}]`)
	definition := `"labels":{"tenant":"t1"},` + pick(atSixAnd16, atSixAnd16, `"rrule":"FREQ=HOURLY","dtstart":"2026-01-01"`, `"rrule":null`) + `,"policy":{` + fields + `}`
	l = &life{t: t, m: model.Model{UID: "tbl_1"}}
	minute := func(text string, within int) time.Time {
		return at(text).Add(time.Duration(rng.IntN(within)) * time.Minute)
	}
	key := &model.LimiterState{}
	if rng.IntN(2) == 0 {
		key.Closed = minute("05:30", 120)
		key.Free = key.Closed.Add(time.Duration(rng.IntN(3)) * 10 * time.Minute)
	}
	l.w.limiters.Learn(model.Limiters{Keys: map[string]*model.LimiterState{"tenant=t1": key}})
	if rng.IntN(3) > 0 {
		closed(&l.w)
	}
	l.command(at("00:00"), "put", definition)
	now = at("06:00")
	l.m.RefreshAt, l.m.Why = now, pick("planned", "saved: refresh now")
	steps := pick("", "start", "start | failure", "start | failure | start", "start | failure | start | failure", "start | success", "start | taken", `start | postponed "retry_after":900`, "start | interrupted",
		"run | start | timeout", "run", "start | failure | disable | enable")
	for step := range strings.SplitSeq(steps, "|") {
		verb, extra, _ := strings.Cut(strings.TrimSpace(step), " ")
		if verb == "start" && l.m.RefreshAt.After(now) {
			now = l.m.RefreshAt
		}
		running := l.m.Running()
		switch {
		case verb == "", verb == "start" && (running || !l.m.Waiting()), (verb == "failure" || verb == "success" || verb == "postponed" || verb == "interrupted" || verb == "taken" || verb == "timeout") && !running,
			(verb == "enable" || verb == "run") && running:
			continue
		case verb == "timeout":
			now = l.m.ExpiresAt()
		}
		l.do(now, verb, extra)
		now = now.Add(time.Duration(rng.IntN(20)) * time.Minute)
	}
	if l.m.Waiting() && rng.IntN(3) == 0 { // nobody was there
		now = now.Add(time.Duration(rng.IntN(240)) * time.Minute)
	}
	key.Running = rng.IntN(3) // those of the steps have ended
	if rng.IntN(3) == 0 {
		circuit := &flow.KeyCircuit{Key: "tenant=t1", Recent: "011", CircuitState: model.CircuitState{OpenedAt: at("05:58"), ProbeAt: now.Add(time.Duration(rng.IntN(90)-30) * time.Minute)}}
		if rng.IntN(3) == 0 {
			circuit.Probe = "tbl_2"
		}
		l.w.circuit = circuit
		l.w.limiters.Circuits["tenant=t1"] = &circuit.CircuitState
	}
	if rng.IntN(4) == 0 {
		held(now.Add(time.Duration(rng.IntN(300)+1) * time.Minute))(&l.w)
	}
	if rng.IntN(8) == 0 {
		held(time.Time{})(&l.w)
	}
	l.w.liveness = alive(now)
	return l, now, definition + ", " + steps
}

// lives turns the clock as a dispatcher does while nothing else happens: nobody answers, and nothing of the key ends. It returns the decision that
// starts an attempt, ends one, or disables the model, and when; false: that never comes.
func lives(l *life, now time.Time) (decision model.Decision, at time.Time, comes bool) {
	m, limiters := l.m, model.Limiters{}
	key := *l.w.limiters.Keys["tenant=t1"]
	limiters.Learn(model.Limiters{Keys: map[string]*model.LimiterState{"tenant=t1": &key}})
	if l.w.circuit != nil {
		circuit := l.w.circuit.CircuitState
		limiters.Circuits["tenant=t1"] = &circuit
	}
	recheck := now
	for range 200 {
		switch {
		case m.Running():
			return m.Expire(later(now, m.ExpiresAt())), later(now, m.ExpiresAt()), true
		case !m.Waiting():
			return decision, now, false
		case m.Parked():
			if now = later(now, recheck); now.Equal(model.Never) {
				return decision, now, false
			}
			opens, again := l.w.blockers.Opens(m.ParkedBy, now)
			if !opens {
				if recheck = again; recheck.Equal(model.Never) {
					return decision, now, false
				}
				continue
			}
			passed, goes := l.w.blockers.Pass(&m, &limiters, "next", now)
			if recheck = passed.Recheck; !goes {
				if !passed.Recheck.After(now) || passed.Recheck.Sub(now) == 30*time.Second {
					return decision, now, false // it waits for something else to happen
				}
				continue
			}
			decision = passed
		default:
			now = later(now, m.RefreshAt)
			decision = l.w.blockers.StartOrPark(&m, &limiters, "next", now)
			recheck = decision.Recheck
		}
		if decision.Event == model.EventStart || decision.Event == model.EventGiveUp {
			return decision, now, true
		}
		m.State = decision.Next
	}
	return decision, now, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// What is foretold of a model is what it does when nothing else happens.
func TestWhatIsForetoldIsWhatComesWhenNothingElseHappens(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(6000) {
		l, now, story := drawn(t, rand.New(rand.NewPCG(seed, 1)))
		e := l.explain(now)
		tell, tree := e.Summarize(), e.Tree()
		all := strings.Join(slices.Concat(e.Story(), e.Next(), []string{tree.Alt(), tree.Begins}), " ")
		decision, at, comes := lives(l, now)
		wrong := func(format string, args ...any) {
			t.Helper()
			t.Errorf("seed %d at %s: %s\n%s\n%+v\ntold: %s\nnext: %s", seed, now.Format("15:04"), fmt.Sprintf(format, args...), story, l.m.Why, strings.Join(e.Story(), " "), strings.Join(e.Next(), " "))
		}
		starts := comes && decision.Event == model.EventStart
		switch f := &e.Forecast; {
		case strings.Contains(all, "0001"):
			wrong("an instant that is none is told: %s", all)
		case l.m.Running() && comes && decision.Event == model.EventQueueTimeout:
			seen["queue timeout"]++
			if text := strings.Join(e.Next(), " "); !strings.Contains(text, "If nobody answers: it starts again") {
				wrong("it starts again: %s", text)
			}
		case l.m.Running():
		case !f.StartAt.IsZero() && (!starts || !f.StartAt.Equal(at)):
			wrong("start_at %s, and it does %s at %s", f.StartAt, decision.Event, at)
		case !f.StartAt.IsZero() && f.StartAt.After(now) && !strings.Contains(tell.Next, e.at(f.StartAt)):
			wrong("it starts %s, and that is not told", e.at(f.StartAt))
		case !f.StartAt.IsZero() && f.StartAt.After(l.m.RefreshAt) && f.StartAt.After(now):
			seen["delayed"]++
		case !f.StartAt.IsZero():
			seen["starts"]++
		case starts && e.WaitsFor == "":
			wrong("it starts at %s, and nothing is foretold", at)
		case f.GiveUp.Possible() && e.WaitsFor == "" && (!comes || decision.Event != model.EventGiveUp || !f.GiveUp.At.Equal(at)):
			wrong("to be disabled at %s, and it does %s at %s", f.GiveUp.At, decision.Event, at)
		case f.GiveUp.Possible() && e.WaitsFor == "":
			seen["gives up"]++
		case l.m.Waiting() && e.WaitsFor != "":
			seen["blocked"]++
			failIf(t, strings.Contains(tell.Next, "Next retry") || strings.Contains(tell.Next, "Next refresh"), "seed %d: blocked by %s, and told: %s", seed, e.WaitsFor, tell.Next)
		}
		if f := &e.Forecast; !f.StartAt.IsZero() && starts {
			next := l.m
			next.State = decision.Next
			if retry := strings.Contains(tell.Next, "Next retry"); retry && next.Trigger != model.TriggerRetry || strings.Contains(tell.Next, "Next refresh") && next.Trigger == model.TriggerRetry {
				wrong("it starts as %q", next.Trigger)
			}
			for name, branch := range map[string][2]model.Branch{
				"succeeds": {f.Success, {RefreshAt: next.Succeed(at, nil).Next.RefreshAt}}, "fails": {f.Failure, {RefreshAt: next.Fail(policy.Failure{}, at).Next.RefreshAt}},
			} {
				if told, does := branch[0].RefreshAt, branch[1].RefreshAt; !told.Equal(does) {
					wrong("if it %s it is told to start at %s, and will at %s", name, told, does)
				}
			}
		}
		// Nobody is told an end that no attempt can reach
		end := e.GivesUpAt()
		if is := strings.Contains(tell.Next, "unless it succeeds before"); is != (!end.IsZero() && !e.Forecast.GiveUp.Possible()) {
			wrong("gives_up_at is %s", end)
		} else if is {
			seen["ends"]++
			if !l.m.Running() && (!starts || !at.Before(end)) {
				wrong("it cannot succeed before %s: %s at %s", end, decision.Event, at)
			}
			next := l.m
			next.State = decision.Next
			if after := next.GivesUpAt(); starts && !after.IsZero() && !after.Equal(end) {
				wrong("it is told to be disabled at %s, and will be at %s", end, after)
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"queue timeout", "delayed", "starts", "gives up", "blocked", "ends"} {
		failIf(t, seen[what] < 20, "only %d models: %s", seen[what], what)
	}
}
