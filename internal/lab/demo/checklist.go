package demo

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// behaviour is one thing that the demo shows. It was seen when all its set fields have happened.
type behaviour struct {
	uid      string
	text     string
	steps    []step          // transitions of the model, in this order, whatever lies between them
	pause    time.Duration   // the second step comes no sooner after the first
	notices  []policy.Notice // for the owner of the model, in this order
	counter  string          // that is above 0
	progress bool            // an attempt reported how far it was
}

// step matches a transition. An unset field matches anything.
type step struct {
	event   model.Event
	attempt int
	sameNo  bool   // it has the attempt_no of the step before: that one was not counted
	final   bool   // it disables the model, with a reason for the owner
	idle    bool   // no attempt runs after it
	why     string // is part of its why
}

var (
	aStart   = step{event: model.EventStart}
	aSuccess = step{event: model.EventSuccess}
	anUpdate = step{event: model.EventUpdate}
)

var behaviours = []behaviour{
	{uid: uidSteady, text: "succeeds on schedule, again and again",
		steps: []step{{event: model.EventSuccess, attempt: 1}, {event: model.EventSuccess, attempt: 1}}},
	{uid: uidFlaky, text: "503 twice: retried at once, retried after 1s, then well",
		steps: []step{{event: model.EventFailure, attempt: 1}, {event: model.EventFailure, attempt: 2}, {event: model.EventSuccess, attempt: 3}}},
	{uid: uidBusy, text: "429 with Retry-After: 2: not asked again for two seconds",
		steps: []step{{event: model.EventFailure, why: "as the worker asked"}, aStart, aSuccess}, pause: busyFor},
	{uid: uidSlow, text: "reports its progress while it runs, and succeeds", steps: []step{aSuccess}, progress: true},
	{uid: uidUnchanged, text: "304 by ETag: a success that found nothing new", counter: "success_unchanged"},
	{uid: uidHangs, text: "three deadlines pass: it gives up and says why",
		steps: []step{{event: model.EventTimeout, attempt: 1}, {event: model.EventTimeout, attempt: 2}, {event: model.EventTimeout, attempt: 3, final: true}}},
	{uid: uidGone, text: "404 is not worth a retry: disabled, and its owner is told the reason",
		steps: []step{{event: model.EventFailure, final: true}}, notices: []policy.Notice{policy.NoticeDisabled}},
	{uid: uidMoved, text: "disabled, then its owner saves a new address: it recovers",
		steps:   []step{{event: model.EventFailure, final: true}, anUpdate, aSuccess},
		notices: []policy.Notice{policy.NoticeDisabled, policy.NoticeRecovered}},
	{uid: uidManual, text: "run by hand, long before it is planned", steps: []step{{event: model.EventRun}, aStart, aSuccess}},
	{uid: uidBanner, text: "no schedule: refreshed once, then finished", steps: []step{{event: model.EventSuccess, why: "finished"}}},
	{uid: uidBanner, text: "saved while it was being refreshed: refreshed again for the second edition",
		steps: []step{aStart, anUpdate, {idle: true, why: "again"}, aStart, aSuccess}},
	{uid: uidHangs, text: "a worker answers after its deadline: counted as stale, changes nothing", counter: string(model.Stale)},
	{uid: uidSlow, text: "its worker had to stop: handed back, not counted, done by another",
		steps: []step{{event: model.EventInterrupted}, {event: model.EventStart, sameNo: true}, aSuccess}},
	{uid: uidManual, text: "no worker came until the deadline: taken back, not counted",
		steps: []step{{event: model.EventWithdrawn}, {event: model.EventStart, sameNo: true}, aSuccess}},
}

func (s step) matches(e model.JournalEntry) bool {
	return (s.event == "" || e.Event == s.event) && (s.attempt == 0 || e.AttemptNo == s.attempt) &&
		(!s.final || e.Final && e.DisabledReason != "") && (!s.idle || e.DeadlineAt.IsZero()) && strings.Contains(e.Why, s.why)
}

type evidence struct {
	journal  map[string][]model.JournalEntry // by model
	notices  map[string][]policy.Notice      // by model
	counters map[string]int64
	progress map[string]bool // models that reported how far they were, somewhere between nothing and all
}

func (b *behaviour) seen(ev *evidence) bool {
	var found []model.JournalEntry
	for _, e := range ev.journal[b.uid] {
		n := len(found)
		if n < len(b.steps) && b.steps[n].matches(e) && (!b.steps[n].sameNo || e.AttemptNo == found[n-1].AttemptNo) {
			found = append(found, e)
		}
	}
	notices := ev.notices[b.uid]
	return len(found) == len(b.steps) &&
		(b.pause == 0 || found[1].At.Sub(found[0].At) >= b.pause) &&
		len(notices) >= len(b.notices) && slices.Equal(notices[:len(b.notices)], b.notices) &&
		(b.counter == "" || ev.counters[b.counter] > 0) &&
		(!b.progress || ev.progress[b.uid])
}

// checklist ticks behaviours off. A tick stays.
type checklist struct {
	evidence evidence
	ticked   []bool
}

func newChecklist() *checklist {
	return &checklist{
		evidence: evidence{journal: map[string][]model.JournalEntry{}, notices: map[string][]policy.Notice{}, progress: map[string]bool{}},
		ticked:   make([]bool, len(behaviours)),
	}
}

func (c *checklist) transition(e model.JournalEntry) {
	if !c.complete() { // a demo may run for days
		c.evidence.journal[e.UID] = append(c.evidence.journal[e.UID], e)
	}
}

func (c *checklist) notice(e model.Notification) {
	if !c.complete() {
		c.evidence.notices[e.UID] = append(c.evidence.notices[e.UID], e.Notice)
	}
}

func (c *checklist) tick() {
	for i := range behaviours {
		c.ticked[i] = c.ticked[i] || behaviours[i].seen(&c.evidence)
	}
}

func (c *checklist) complete() bool { return c.count() == len(behaviours) }

func (c *checklist) count() (n int) {
	for _, ticked := range c.ticked {
		if ticked {
			n++
		}
	}
	return n
}
