package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestTheNumbersOfASuccessAreKeptAndWhatCannotBeUsedIsNamed(t *testing.T) {
	seventeen := `"metrics":{` + strings.TrimSuffix(strings.Repeat(`"x":1,`, 1), ",")
	for c := 'a'; c < 'a'+16; c++ {
		seventeen += `,"` + string(c) + `":1`
	}
	for _, test := range []struct {
		extra   string
		want    map[string]float64
		ignored []string
	}{
		{`"metrics":{"rows":0,"bytes":1.5e3,"x_1":-2}`, map[string]float64{"rows": 0, "bytes": 1500, "x_1": -2}, nil},
		{`"metrics":null`, nil, nil}, {`"metrics":{}`, nil, nil},
		{`"metrics":[1]`, nil, []string{"metrics"}},
		{`"metrics":{"Rows":1,"a b":1,"rows":"5","n":null,"deep":{"x":1},"t":true,"big":1e301,"good":7}`, map[string]float64{"good": 7},
			[]string{"metrics.Rows", "metrics.a b", "metrics.big", "metrics.deep", "metrics.n", "metrics.rows", "metrics.t"}},
		{seventeen + `}`, nil, []string{"metrics.x"}},
	} {
		got, err := Wire{}.DecodeMessage([]byte(wire("success", test.extra)))
		if strings.HasPrefix(test.extra, `"metrics":{"x":1,"a"`) {
			failIf(t, len(got.Metrics) != 16, "%d metrics are kept", len(got.Metrics))
			test.want = got.Metrics
		}
		diff := cmp.Diff(test.want, got.Metrics) + cmp.Diff(test.ignored, got.Ignored)
		failIf(t, err != nil || diff != "", "%s: %v, -want +got\n%s", test.extra, err, diff)
	}
}

func rowsOf(counts ...float64) (past []Attempt) {
	for _, n := range counts {
		past = append(past, Attempt{Outcome: EventSuccess, AttemptUID: "old", Metrics: map[string]float64{"rows": n}})
	}
	return past
}

func TestOnlyGoodResultsTellWhatIsUsual(t *testing.T) {
	half := []policy.Guard{{Metric: "rows", Rule: policy.GuardDrop, Bound: 50, Of: 3}}
	with := func(past []Attempt, i int, change func(*Attempt)) []Attempt { change(&past[i]); return past }
	const doubted = "rows 40: over 50% less than the usual 100"
	for name, test := range map[string]struct {
		past []Attempt
		want string
	}{
		"three":                   {rowsOf(100, 100, 100), doubted},
		"fewer than three":        {rowsOf(100, 100), ""},
		"the newest of them":      {rowsOf(100, 100, 100, 1, 1, 1, 1), doubted},
		"the median":              {rowsOf(1, 100, 9000), doubted},
		"a failure is not good":   {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Outcome = EventFailure }), ""},
		"a suspect is not good":   {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Suspect = "rows 100" }), ""},
		"an accepted one is":      {with(rowsOf(100, 100, 100), 2, func(a *Attempt) { a.Suspect, a.Accepted = "rows 100", true }), doubted},
		"none before that is":     {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Suspect, a.Accepted = "rows 100", true }), ""},
		"a held one is not good":  {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Outcome = EventSuspect }), ""},
		"an unchanged one is not": {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Changed = new(bool) }), ""},
		"one without the number":  {with(rowsOf(100, 100, 100), 1, func(a *Attempt) { a.Metrics = map[string]float64{"bytes": 1} }), ""},
	} {
		got := Doubt(half, map[string]float64{"rows": 40}, test.past, "")
		failIf(t, got != test.want, "%s: %q, want %q", name, got, test.want)
	}
	both := append(half, policy.Guard{Metric: "rows", Rule: policy.GuardMin, Bound: 50})
	got := Doubt(both, map[string]float64{"rows": 40}, rowsOf(100, 100, 100), "")
	failIf(t, got != doubted+"; rows 40: expected at least 50", "%q", got)
}

// guarded is a model whose policy doubts a success without rows, with an attempt in hand.
func guarded(t *testing.T, on policy.OnSuspect) Model {
	t.Helper()
	m := Model{UID: "tbl_1", Rule: "FREQ=DAILY;BYHOUR=6", Dtstart: "2026-01-01", State: State{RefreshAt: monday, LastSuccessAt: monday.Add(-time.Hour)}}
	p := policy.Default()
	p.Guard, p.OnSuspect = []policy.Guard{{Metric: "rows", Rule: policy.GuardMin, Bound: 1}}, on
	if err := m.Resolve(p, schedule.Parse); err != nil {
		t.Fatal(err)
	}
	m.State = m.Start(monday, "a1").Next
	return m
}

func succeed(t *testing.T, m *Model, rows float64, at time.Time) Decision {
	t.Helper()
	decision, outcome := m.Handle(Message{Type: MessageSuccess, AttemptUID: m.AttemptUID, Metrics: map[string]float64{"rows": rows}}, at)
	failIf(t, outcome != Applied, "outcome %q", outcome)
	return decision
}

func TestADoubtedSuccessIsToldFailedOrHeldAsThePolicySays(t *testing.T) {
	at, reason := monday.Add(time.Minute), "rows 0: expected at least 1"
	tell := guarded(t, "")
	d := succeed(t, &tell, 0, at)
	failIf(t, d.Event != EventSuccess || d.Ended.Suspect != reason || !d.NotifiesSuspect || !d.Next.LastSuccessAt.Equal(at), "tell: %+v", d)
	d = succeed(t, &tell, 1, at)
	failIf(t, d.Event != EventSuccess || d.Ended.Suspect != "" || d.NotifiesSuspect || d.Ended.Metrics["rows"] != 1, "well: %+v", d)

	fail := guarded(t, policy.SuspectFail)
	d = succeed(t, &fail, 0, at)
	failIf(t, d.Event != EventFailure || d.Ended.ErrorType != "suspect" || d.Ended.Reason != reason || d.NotifiesSuspect || d.Next.AttemptNo != 1, "fail: %+v", d)

	hold := guarded(t, policy.SuspectHold)
	d = succeed(t, &hold, 0, at)
	next := &d.Next
	failIf(t, d.Event != EventSuspect || !next.Held() || next.AttemptNo != 0 || next.Running() || !next.LastSuccessAt.Equal(monday.Add(-time.Hour)) ||
		!d.Recheck.Equal(Never) || !d.NotifiesSuspect || d.countedAttempt() != 0, "hold: %+v", d)
	opens, recheck := new(Blockers).Opens(next.ParkedBy, at.Add(1000*time.Hour))
	failIf(t, opens || !recheck.Equal(Never), "time opens it")

	again := guarded(t, policy.SuspectHold)
	again.Again = true
	d = succeed(t, &again, 0, at)
	failIf(t, d.Event != EventFailure || d.Ended.ErrorType != "suspect" || !d.Next.Due(at), "an attempt that is to run again is held, or counts: %+v", d)
}

// held is a model that is held since a minute after Monday began, with the record of that.
func held(t *testing.T) Model {
	t.Helper()
	m := guarded(t, policy.SuspectHold)
	d := succeed(t, &m, 0, monday.Add(time.Minute))
	m.State, m.Past = d.Next, []Attempt{*d.Ended}
	return m
}

func TestAHeldModelLeavesByAcceptRejectRunOrSaveOnly(t *testing.T) {
	at := monday.Add(3 * time.Hour)
	m := held(t)
	d, outcome := m.accept(at)
	failIf(t, outcome != Applied || d.Event != EventSuccess || d.Next.Parked() || !d.Next.LastSuccessAt.Equal(monday.Add(time.Minute)) || !d.Next.RefreshAt.After(at) ||
		d.Next.AttemptNo != 0 || !d.Replaces || !d.Ended.Accepted || !d.Ended.Good() || d.Ended.Metrics == nil || !d.Ended.EndedAt.Equal(monday.Add(time.Minute)), "accept: %+v", d)
	d, outcome = m.reject(at)
	failIf(t, outcome != Applied || d.Event != EventFailure || d.Next.Parked() || d.Next.AttemptNo != 1 || !d.Next.RefreshAt.Equal(at) || d.Next.Trigger != TriggerRetry ||
		d.Ended.ErrorType != "suspect" || d.Ended.Good() || !d.Replaces || d.Next.LastAttemptUID != "a1", "reject: %+v", d)
	d, outcome = m.Run(false, at)
	failIf(t, outcome != Applied || d.Next.Held() || !d.Next.Due(at), "run: %+v", d)
	d, outcome = m.Disable("", "", at)
	failIf(t, outcome != Applied || d.Next.Held() || !d.Next.Disabled, "disable: %+v", d)
	m.Past = nil // a queue without histories
	d, outcome = m.accept(at)
	failIf(t, outcome != Applied || d.Next.Held() || d.Replaces, "accept without a record: %+v", d)
	d, outcome = m.reject(at)
	failIf(t, outcome != Applied || d.Next.Held() || d.Ended.Reason != "rejected by hand", "reject without a record: %+v", d)
	m.State = d.Next
	_, accepted := m.accept(at)
	_, rejected := m.reject(at)
	failIf(t, accepted != Unchanged || rejected != Unchanged, "what is not held is accepted or rejected: %q, %q", accepted, rejected)
}

func TestAHeldModelThatIsAcceptedAfterItsPlannedTimeIsDueAtOnceAndOnce(t *testing.T) {
	for clockTime, want := range map[string]string{"03:00": "06:00", "06:00": "06:00", "07:00": "07:00", "09:00+3": "09:00+3"} {
		now := clock(clockTime)
		m := held(t)
		m.Policy.Misfire = policy.Misfire{Limited: true} // held time is no delay
		d, outcome := m.accept(now)
		got := clockText(d.Next.RefreshAt)
		failIf(t, outcome != Applied || got != want || !d.Ended.RefreshAt.Equal(d.Next.RefreshAt) || !d.Next.LastSuccessAt.Equal(m.ParkedSince),
			"accepted at %s: %s, due at %s, want %s", clockTime, outcome, got, want)
		if m.State = d.Next; !m.Due(now) {
			continue
		}
		d = m.StartOrSkip(now, "a2")
		stopIf(t, d.Event != EventStart, "accepted at %s: %s, want a start", clockTime, d.Event)
		m.State = d.Next
		after, planned := m.Succeed(now, nil).Next.RefreshAt, m.Planned(now)
		failIf(t, !after.Equal(planned), "accepted at %s: the next one is at %s, want %s", clockTime, clockText(after), clockText(planned))
	}
	m := held(t)
	m.Rule, m.Schedule = "", nil // a one-shot has nothing planned
	d, _ := m.accept(clock("09:00"))
	failIf(t, !d.Next.RefreshAt.IsZero(), "a one-shot is due at %s, want it finished", clockText(d.Next.RefreshAt))
}

func TestASaveOfAHeldModelReleasesItAndNewLabelsDoNot(t *testing.T) {
	m, at := held(t), monday.Add(3*time.Hour)
	save := func(change string) Decision {
		t.Helper()
		definition := Definition{UID: "tbl_1", Rule: m.Rule, Dtstart: m.Dtstart, Payload: m.Payload}
		switch change {
		case "payload":
			definition.Payload = `{"a":1}`
		case "rule":
			definition.Rule = "FREQ=DAILY;BYHOUR=9"
		case "labels":
			definition.Labels = map[string]string{"a": "b"}
		}
		d, outcome, err := m.Put(definition, m.Policy, true, at)
		failIf(t, outcome != Applied || err != nil, "%s: %q, %v", change, outcome, err)
		return d
	}
	d := save("labels")
	failIf(t, !d.Next.Held(), "labels release it")
	d = save("rule")
	failIf(t, d.Next.Parked() || !d.Next.RefreshAt.Equal(monday.Add(9*time.Hour)) && !d.Next.RefreshAt.After(at), "rule: %+v", d)
	d = save("payload")
	failIf(t, d.Next.Held() || !d.Next.Due(at), "a new payload does not start it: %+v", d.Next)
}

func TestAcceptingADoubtedSuccessThatCountsMakesItGood(t *testing.T) {
	m := guarded(t, "")
	d := succeed(t, &m, 0, monday.Add(time.Minute))
	m.State, m.Past = d.Next, []Attempt{*d.Ended}
	before := m.State
	before.Usual = `{"rows":0}`
	d, outcome := m.accept(monday.Add(time.Hour))
	failIf(t, outcome != Applied || d.Event != EventAccept || d.Next != before || !d.Ended.Good() || !d.Replaces, "%q %+v", outcome, d)
	m.Past[0] = *d.Ended
	_, outcome = m.accept(monday.Add(time.Hour))
	failIf(t, outcome != Unchanged, "accepted twice: %q", outcome)
}

var halfOfTen = []policy.Guard{{Metric: "rows", Rule: policy.GuardDrop, Bound: 50, Of: 10}}

// series gives a model the results of one day after the other, and returns which are doubted: "d", or else ".".
func series(t *testing.T, m *Model, rows ...float64) (told string) {
	t.Helper()
	for day, n := range rows {
		at := monday.Add(time.Duration(24*(day+1)) * time.Hour)
		m.AttemptUID, m.StartedAt, m.DeadlineAt = "a", at, at.Add(time.Hour)
		d, _ := m.Handle(Message{Type: MessageSuccess, AttemptUID: "a", Metrics: map[string]float64{"rows": n}}, at)
		m.State = d.Next
		m.Past = slices.Insert(m.Past, 0, *d.Ended)[:min(10, len(m.Past)+1)]
		told += map[bool]string{true: "d", false: "."}[d.Ended.Suspect != "" || d.Ended.ErrorType == "suspect"]
	}
	return told
}

func TestAGuardDoubtsAWrongLevelForAsLongAsNobodyAcceptsIt(t *testing.T) {
	for _, then := range []policy.OnSuspect{policy.SuspectTell, policy.SuspectFail} {
		m := guarded(t, then)
		m.Past, m.Policy.Guard = nil, halfOfTen
		zeros := slices.Repeat([]float64{0}, 25)
		got := series(t, &m, append(slices.Repeat([]float64{100}, 10), zeros...)...)
		failIf(t, got != strings.Repeat(".", 10)+strings.Repeat("d", 25), "%s: doubts %s", then, got)
	}
}

func TestWhatIsAcceptedOnceIsUsualFromThenOn(t *testing.T) {
	m := guarded(t, policy.SuspectTell)
	m.Past, m.Policy.Guard = nil, halfOfTen
	failIf(t, series(t, &m, 100, 100, 100, 100, 30) != "....d", "doubts otherwise than it should")
	d, outcome := m.accept(monday.Add(1000 * time.Hour))
	failIf(t, outcome != Applied || d.Next.Usual != `{"rows":30}`, "accepted: %+v", d)
	m.State, m.Past[0] = d.Next, *d.Ended
	got := series(t, &m, 30, 31, 100, 29, 10, 30)
	failIf(t, got != "....d.", "a drop from the new level is not doubted: %s", got)
}
