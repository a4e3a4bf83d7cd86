package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestAForecastGoesThroughAllBlockersOfAModel(t *testing.T) {
	hold := func(id string, until time.Time) Hold { return Hold{ID: id, Since: monday, Until: until} }
	minutes := func(n int) time.Time { return monday.Add(time.Duration(n) * time.Minute) }
	nights := map[string]schedule.Calendar{"nights": closedUntil(t)} // until two o'clock
	slots := func(slots Slots) Limiters {
		return Limiters{Keys: map[string]*LimiterState{"a=1": {Slots: slots}}, Circuits: map[string]*CircuitState{}, Limits: map[string][]Limit{}}
	}
	behindLimit := State{RefreshAt: minutes(-5), ParkedBy: "limit:a=1", ParkedSince: monday}
	for name, test := range map[string]struct {
		blockers Blockers
		limiters Limiters
		state    State
		startAt  time.Time
		by       Blocker
		blocker  Blocker
	}{
		"none":                      {Blockers{}, Limiters{}, State{RefreshAt: minutes(5)}, minutes(5), "", ""},
		"a hold that ends":          {Blockers{Holds: []Hold{hold("a", minutes(30))}}, Limiters{}, State{RefreshAt: minutes(5)}, minutes(30), "hold:a", ""},
		"a hold that ends before":   {Blockers{Holds: []Hold{hold("a", minutes(3))}}, Limiters{}, State{RefreshAt: minutes(5)}, minutes(5), "", ""},
		"a hold without an end":     {Blockers{Holds: []Hold{hold("a", time.Time{})}}, Limiters{}, State{RefreshAt: minutes(5)}, time.Time{}, "hold:a", "hold:a"},
		"a hold, then a calendar":   {Blockers{Holds: []Hold{hold("a", minutes(30))}, Calendars: nights}, Limiters{}, State{RefreshAt: minutes(5)}, minutes(120), "calendar:nights", ""},
		"parked by a hold":          {Blockers{Holds: []Hold{hold("a", minutes(30))}}, Limiters{}, State{RefreshAt: minutes(-5), ParkedBy: "hold:a", ParkedSince: monday}, minutes(30), "hold:a", ""},
		"parked by one that is off": {Blockers{}, Limiters{}, State{RefreshAt: minutes(-5), ParkedBy: "hold:a", ParkedSince: monday}, monday, "hold:a", ""},
		"a full limit":              {Blockers{}, slots(Slots{Closed: minutes(40)}), behindLimit, time.Time{}, "limit:a=1", "limit:a=1"},
		"a limit that is closed":    {Blockers{}, slots(Slots{Closed: minutes(40), By: "x (http_429)"}), behindLimit, minutes(40), "limit:a=1", ""},
		"a limit that was closed":   {Blockers{}, slots(Slots{Closed: monday, By: "x (http_429)"}), behindLimit, time.Time{}, "limit:a=1", "limit:a=1"},
		"doubted":                   {Blockers{}, Limiters{}, State{RefreshAt: minutes(5), ParkedBy: BySuspect, ParkedSince: monday}, time.Time{}, BySuspect, BySuspect},
	} {
		m := &Model{UID: "m", Payload: "{}", State: test.state}
		p := policyOf(t, `{}`)
		if test.blockers.Calendars != nil {
			p.Closed = []string{"nights"}
		}
		must(t, m.Resolve(p, schedule.Parse))
		before := m.State
		f, blocker := test.blockers.Forecast(m, &test.limiters, monday)
		failIf(t, !f.StartAt.Equal(test.startAt) || f.By != test.by || blocker != test.blocker, "%s: got %s by %q, behind %q", name, f.StartAt, f.By, blocker)
		failIf(t, m.State != before, "%s: the forecast changed the model", name)
	}
}

func TestAFullLimitStopsAForecastOnlyOfWhatIsDueNow(t *testing.T) {
	m := &Model{UID: "m", Payload: "{}", State: State{RefreshAt: monday}}
	must(t, m.Resolve(policyOf(t, `{"limits":[{"key":"{policy}","running":1}]}`), schedule.Parse))
	for after, want := range map[time.Duration]Blocker{0: "limit:policy=default", time.Minute: ""} {
		m.RefreshAt = monday.Add(after)
		f, blocker := new(Blockers).Forecast(m, &Limiters{Keys: map[string]*LimiterState{"policy=default": {Running: 1}}, Circuits: map[string]*CircuitState{}, Limits: map[string][]Limit{}}, monday)
		failIf(t, blocker != want || f.StartAt.IsZero() != (want != ""), "due %s from now: got %s behind %q, want %q", after, f.StartAt, blocker, want)
	}
}

func TestAModelBehindAFullLimitIsLookedAtSoonAndThenLater(t *testing.T) {
	m := &Model{UID: "m", Payload: "{}", State: State{RefreshAt: monday}}
	must(t, m.Resolve(policyOf(t, `{"limits":[{"key":"{policy}","running":2}]}`), schedule.Parse))
	limiters := func(running int) *Limiters {
		l := new(Limiters)
		l.Learn(Limiters{Keys: map[string]*LimiterState{"policy=default": {Running: running}}})
		return l
	}
	decide := func(running int) Decision { return new(Blockers).StartOrPark(m, limiters(running), "a1", monday) }
	full := decide(2)
	failIf(t, full.Event != EventParked || !full.Recheck.Equal(monday.Add(recheckSoon)), "first: %s, again %s", full.Event, full.Recheck)
	m.State = full.Next
	failIf(t, !decide(2).Recheck.Equal(monday.Add(recheckLater)), "again: %s", decide(2).Recheck)
	last := decide(1)
	failIf(t, last.Event != EventStart || !last.Recheck.Equal(monday.Add(recheckLater)), "the last slot: %s, again %s", last.Event, last.Recheck)
	failIf(t, last.Next.Counted != "limit:policy=default" || len(last.Acquires) != 1 || last.Acquires[0].Limit != 2, "the last slot: %+v", last.Acquires)
	one := decide(0)
	failIf(t, one.Event != EventStart || !one.Recheck.IsZero(), "one of two slots: %s, again %s", one.Event, one.Recheck)
	l := limiters(0)
	new(Blockers).StartOrPark(m, l, "a1", monday)
	failIf(t, l.Keys["policy=default"].Running != 1, "a start of this round is not counted: %d run", l.Keys["policy=default"].Running)
}

func TestLabelsAreReadOrRefusedByTheirName(t *testing.T) {
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, `"l`+string(rune('a'+i))+`":"v"`)
		}
		return strings.Join(all, ",")
	}
	for labels, want := range map[string]string{ // "-": accepted
		`null`: "-", `{}`: "-", `{"tenant":"t1"}`: "-", `{"n":7}`: "-", `{` + many(MaxLabels) + `}`: "-", `{` + many(MaxLabels+1) + `}`: "labels",
		`[]`: "labels", `"t1"`: "labels", `{"tenant":[]}`: "labels.tenant", `{"Tenant":"t1"}`: "labels.Tenant", `{"tenant":""}`: "labels.tenant", `{"uid":"a"}`: "labels.uid",
	} {
		c, err := DecodeCommand([]byte(`{"type":"put","uid":"a","labels":` + labels + `}`))
		failIf(t, refusedField(err) != want && (want != "-" || err != nil), "%s: got %v, want a refusal of %q", labels, err, want)
		failIf(t, labels == `{"n":7}` && c.Definition.Labels["n"] != "7", "a number became %v", c.Definition.Labels)
		failIf(t, labels == `{}` && c.Definition.Labels != nil, "no labels became %v", c.Definition.Labels)
	}
	equal(t, []string{"a=1", "b=2"}, LabelTerms(map[string]string{"b": "2", "a": "1"}))
}

func TestARoleIsDeadForCertainAfterALongSilence(t *testing.T) {
	for name, test := range map[string]struct {
		silence  time.Duration // of all three roles
		queued   int64
		headWait time.Duration
		want     string
	}{
		"they live":          {fewTicks, 1, time.Hour, ""},
		"silent for a while": {fewTicks + 1, 1, time.Hour, ""},
		"just not for long":  {LongestSilence, 1, time.Hour, ""},
		"silent for long":    {LongestSilence + 1, 0, 0, "dispatcher poller"},
		"work waits briefly": {LongestSilence + 1, 1, longWait, "dispatcher poller"},
		"work waits":         {LongestSilence + 1, 1, longWait + 1, "dispatcher worker poller"},
	} {
		s := Liveness{Now: monday, Queued: test.queued, HeadStartedAt: monday.Add(-test.headWait)}
		for _, role := range Roles {
			s.Heartbeat(role, monday.Add(-test.silence))
		}
		var got []string
		for _, dead := range s.Dead() {
			got = append(got, string(dead.Role))
		}
		failIf(t, strings.Join(got, " ") != test.want, "%s: got %v, want %s", name, got, test.want)
	}
	s := Liveness{Now: monday}
	s.Heartbeat(RolePoller, monday.Add(maxAhead))
	s.Heartbeat(RolePoller, monday) // an older one of another process
	s.Heartbeat(RolePoller, monday.Add(maxAhead+1))
	failIf(t, !s.Last[RolePoller].Equal(monday.Add(maxAhead)), "the last heartbeat is %s", s.Last[RolePoller])
}

func TestASaveThatPromisesAnotherFreshnessIsWatchedByIt(t *testing.T) {
	m := &Model{Policy: policy.Policy{FreshWithin: time.Hour}, State: State{Freshness: FreshnessStale, LastSuccessAt: monday.Add(-2 * time.Hour), StaleAt: monday.Add(-time.Hour)}}
	for within, want := range map[time.Duration]Freshness{3 * time.Hour: Fresh, time.Hour: FreshnessStale, 0: ""} {
		saved := *m
		saved.Policy.FreshWithin = within
		decision := Decision{Event: EventUpdate, Next: m.State, Definition: &saved}
		m.Watch(&decision, monday)
		failIf(t, decision.Next.Freshness != want || decision.PriorFreshness != FreshnessStale, "within %s: got %q, want %q", within, decision.Next.Freshness, want)
	}
}
