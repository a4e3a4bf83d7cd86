package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// watching drives one model through what may change its freshness, from midnight on.
type watching struct {
	t    *testing.T
	m    Model
	told []string
}

// tell decides a step, such as "01:30 success", and notes events and notices of its freshness.
func (w *watching) tell(step string) {
	w.t.Helper()
	at, what, _ := strings.Cut(step, " ")
	now, decision := clock(at), Decision{Event: EventStarted, Next: w.m.State}
	switch what, rest, _ := strings.Cut(what, " "); what {
	case "age":
		decision = w.m.ChangeFreshness(now)
	case "success":
		decision.Event, decision.Next.LastSuccessAt = EventSuccess, now
	case "start":
	case "policy", "replan":
		w.m.Policy = policyOf(w.t, "{"+rest+"}")
		if what == "policy" {
			return
		}
		var outcome Outcome
		if decision, outcome = w.m.Replan(now); outcome == Unchanged {
			return
		}
	default:
		w.t.Fatalf("what is %q?", step)
	}
	w.m.Watch(&decision, now)
	w.m.State = decision.Next
	for _, n := range decision.Notifications("m", now) {
		w.told = append(w.told, at+" notice "+string(n.Notice))
	}
	if decision.Event != EventSuccess && decision.Event != EventStarted {
		w.told = append(w.told, at+" "+string(decision.Event))
	}
	for _, counter := range decision.Counters(QueueCircuit{}, now) {
		if counter == CounterFreshAgain {
			w.told = append(w.told, at+" "+counter)
		}
	}
}

func (w *watching) String() string {
	s := &w.m.State
	text := "not watched"
	if s.Watched() {
		text = string(s.Freshness) + " " + s.StaleAt.Format("15:04")
	}
	if !s.FreshSince.IsZero() {
		text += " since " + s.FreshSince.Format("15:04")
	}
	return strings.TrimSuffix(text+": "+strings.Join(w.told, ", "), ": ")
}

func TestAModelIsFreshThenLateThenStaleAndEachIsToldOnce(t *testing.T) {
	const (
		warned  = `"fresh_within":"2h","warn_within":"1h"`
		plain   = `"fresh_within":"2h"`
		longer  = `"fresh_within":"6h","warn_within":"5h"`
		shorter = `"fresh_within":"30m"`
		none    = ``
	)
	for _, test := range []struct{ policy, steps, want string }{
		{none, "00:00 start | 01:00 success", "not watched"},

		// What never succeeded counts from when it began to be watched
		{warned, "00:10 start", "never 01:10 since 00:10"},
		{warned, "00:10 start | 01:10 age", "late 02:10 since 00:10: 01:10 became_late"},
		{warned, "00:10 start | 01:10 age | 02:10 age", "stale 02:10 since 00:10: 01:10 became_late, 02:10 notice stale, 02:10 became_stale"},
		{plain, "00:00 start | 02:00 age", "stale 02:00 since 00:00: 02:00 notice stale, 02:00 became_stale"},

		{shorter, "00:00 start | 00:30 age | 01:00 replan " + plain, "never 02:00 since 00:00: 00:30 notice stale, 00:30 became_stale, 01:00 notice fresh, 01:00 watch, 01:00 fresh_again"},
		{warned, "00:00 start | 01:00 age | 01:30 replan " + longer, "never 05:00 since 00:00: 01:00 became_late, 01:30 watch, 01:30 fresh_again"},
		{warned, "00:00 start | 00:30 success", "fresh 01:30"},

		// Only a success makes it fresh
		{warned, "00:00 start | 01:00 age | 01:20 start | 01:30 success", "fresh 02:30: 01:00 became_late, 01:30 fresh_again"},
		{plain, "00:00 start | 02:00 age | 02:20 start | 02:30 success", "fresh 04:30: 02:00 notice stale, 02:00 became_stale, 02:30 notice fresh, 02:30 fresh_again"},
		{plain + `,"notify":["disabled"]`, "00:00 start | 02:00 age | 02:30 success", "fresh 04:30: 02:00 became_stale, 02:30 fresh_again"},
		{plain, "00:00 start | 03:00 start", "never 02:00 since 00:00"}, // only its age shows it
		{plain, "00:00 start | 02:00 age | 01:00 start", "stale 02:00 since 00:00: 02:00 notice stale, 02:00 became_stale"},
		{warned, "00:00 start | 01:00 age | 00:59 start", "late 02:00 since 00:00: 01:00 became_late"}, // decided before it was reported
		{none, "00:00 success | 03:00 policy " + plain + " | 03:00 start", "fresh 02:00"},

		// A policy that begins to watch one that has succeeded counts from that success
		{none, "00:00 success | 03:00 policy " + plain + " | 03:00 start | 03:01 age", "stale 02:00: 03:01 notice stale, 03:01 became_stale"},
		{none, "00:00 success | 03:00 replan " + plain, "fresh 02:00: 03:00 watch"},
		{none, "00:00 start | 03:00 replan " + plain, "never 05:00 since 03:00: 03:00 watch"},
		{plain, "00:00 success | 01:00 replan " + shorter, "fresh 00:30: 01:00 watch"},

		// Another policy: an improvement is reported at once, a decline by the age
		{plain, "00:00 success | 01:00 replan " + shorter + " | 01:00 age", "stale 00:30: 01:00 watch, 01:00 notice stale, 01:00 became_stale"},
		{shorter, "00:00 success | 00:30 age | 01:00 replan " + plain, "fresh 02:00: 00:30 notice stale, 00:30 became_stale, 01:00 notice fresh, 01:00 watch, 01:00 fresh_again"},
		{shorter, "00:00 success | 00:30 age | 01:30 replan " + warned, "late 02:00: 00:30 notice stale, 00:30 became_stale, 01:30 watch"},
		{warned, "00:00 success | 01:00 age | 01:30 replan " + longer, "fresh 05:00: 01:00 became_late, 01:30 watch, 01:30 fresh_again"},
		{warned, "00:00 success | 01:00 age | 01:30 replan " + none, "not watched: 01:00 became_late, 01:30 watch"},

		// The walk has not come by yet when the old instant has
		{warned, "00:00 success | 00:30 policy " + longer + " | 01:00 age", "fresh 05:00: 01:00 watch"},
		{warned, "00:00 success | 00:30 policy " + none + " | 01:00 age", "not watched: 01:00 watch"},
	} {
		t.Run(test.policy+" "+test.steps, func(t *testing.T) {
			w := &watching{t: t, m: Model{UID: "m", Policy: policyOf(t, "{"+test.policy+"}"), State: State{Trigger: TriggerHand}}}
			for _, step := range strings.Split(test.steps, " | ") {
				w.tell(step)
			}
			got := w.String()
			failIf(t, got != test.want, "\n got %s\nwant %s", got, test.want)
			before := w.m.State
			decision, outcome := w.m.Replan(clock("09:00"))
			failIf(t, outcome != Unchanged && test.policy != none && !strings.Contains(test.steps, "policy"),
				"to watch it again decides %v, from %+v", decision.Event, before)
		})
	}
}

// Whatever it does, a model is in exactly the indexes that its freshness asks for.
func TestEachFreshnessHasItsIndexes(t *testing.T) {
	at := clock("06:00")
	for freshness, want := range map[Freshness]string{"": "", Fresh: "ages", FreshnessNever: "ages", FreshnessLate: "ages late", FreshnessStale: "stale"} {
		s := State{Freshness: freshness}
		if s.Watched() {
			s.StaleAt = at
		}
		var in []string
		for i, instant := range []time.Time{s.Scores().StaleAt, s.Scores().Late, s.Scores().Stale} {
			if instant.Equal(at) {
				in = append(in, []string{"ages", "late", "stale"}[i])
			}
		}
		got := strings.Join(in, " ")
		failIf(t, got != want, "%q stands in %q, want %q", freshness, got, want)
	}
}

func TestTheJournalTellsWhatTheFreshnessWas(t *testing.T) {
	now := clock("06:00")
	for _, test := range []struct {
		was, is Freshness
		want    string
	}{{"", Fresh, " fresh"}, {Fresh, FreshnessLate, "fresh late"}, {FreshnessStale, "", "stale "}, {Fresh, Fresh, " "}, {"", "", " "}} {
		d := Decision{Event: EventWatch, PriorFreshness: test.was, Next: State{Freshness: test.is}}
		entry, _ := d.Journal("m", now)
		got := fmt.Sprint(entry.PriorFreshness, " ", entry.Freshness)
		failIf(t, got != test.want, "from %q to %q: got %q, want %q", test.was, test.is, got, test.want)
	}
	stale := Decision{Event: EventBecameStale, Notice: policy.NoticeStale, Next: State{LastSuccessAt: now}}
	n := stale.Notifications("m", now)
	failIf(t, len(n) != 1 || !n[0].LastSuccessAt.Equal(now), "the owner of a stale model is told %+v", n)
}
