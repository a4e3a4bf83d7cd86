package demo

import (
	"strings"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// behaviour is one thing that the audience is to see.
type behaviour struct {
	uid  string
	text string
	seen func(*evidence) bool
}

// evidence is what has happened so far.
type evidence struct {
	journal  map[string][]model.JournalEntry // by model
	notices  map[string][]policy.Notice      // by model
	counters map[string]int64
	progress map[string]bool // models that told how far they were, somewhere between nothing and all
}

var behaviours = []behaviour{
	{uidSteady, "succeeds on schedule, again and again", story(uidSteady, succeeded(1), succeeded(1))},
	{uidFlaky, "503 twice: retried at once, retried after 1s, then well", story(uidFlaky, failed(1), failed(2), succeeded(3))},
	{uidBusy, "429 with Retry-After: 2: not asked again for two seconds", leftAlone},
	{uidSlow, "tells how far it is while it runs, and succeeds", toldProgress},
	{uidUnchanged, "304 by ETag: a success that found nothing new", counted("success_unchanged")},
	{uidHangs, "three deadlines pass: it gives up and says why", story(uidHangs, timedOut(1), timedOut(2), final(timedOut(3)))},
	{uidGone, "404 is not worth a retry: disabled, and its owner is told the reason", disabled(uidGone)},
	{uidMoved, "disabled, then its owner saves a new address: it recovers", recovered},
	{uidManual, "run by hand, long before it is planned", story(uidManual, event(model.EventRun), event(model.EventStart), event(model.EventSuccess))},
	{uidBanner, "no schedule: refreshed once, then finished", finished(uidBanner)},
	{uidBanner, "saved while it was being refreshed: refreshed again for the second edition", savedWhileRunning},
	{uidHangs, "a worker answers after its deadline: counted as stale, changes nothing", counted(string(model.Stale))},
	{uidSlow, "its worker had to stop: handed back, not counted, done by another", story(uidSlow, event(model.EventInterrupted), attempt(model.EventStart, 1), event(model.EventSuccess))},
	{uidManual, "no worker came until the deadline: taken back, not counted", story(uidManual, event(model.EventWithdrawn), attempt(model.EventStart, 1), event(model.EventSuccess))},
}

// checklist ticks behaviours off. A tick stays.
type checklist struct {
	evidence evidence
	ticked   []bool
}

func newChecklist() *checklist {
	return &checklist{
		evidence: evidence{
			journal:  make(map[string][]model.JournalEntry),
			notices:  make(map[string][]policy.Notice),
			progress: make(map[string]bool),
		},
		ticked: make([]bool, len(behaviours)),
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

func (c *checklist) progress(uid string, percent int) {
	if percent > 0 && percent < 100 {
		c.evidence.progress[uid] = true
	}
}

func (c *checklist) counters(counters map[string]int64) { c.evidence.counters = counters }

// tick looks at all evidence.
func (c *checklist) tick() {
	for i, b := range behaviours {
		c.ticked[i] = c.ticked[i] || b.seen(&c.evidence)
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

// step recognises one transition of a story.
type step func(model.JournalEntry) bool

func event(kind model.Event) step {
	return func(e model.JournalEntry) bool { return e.Event == kind }
}

func attempt(kind model.Event, no int) step {
	return func(e model.JournalEntry) bool { return e.Event == kind && e.AttemptNo == no }
}

func succeeded(no int) step { return attempt(model.EventSuccess, no) }
func failed(no int) step    { return attempt(model.EventFailure, no) }
func timedOut(no int) step  { return attempt(model.EventTimeout, no) }

func final(s step) step {
	return func(e model.JournalEntry) bool { return s(e) && e.Final && e.DisabledReason != "" }
}

// idle recognises every transition after which no attempt is running.
func idle(e model.JournalEntry) bool { return e.DeadlineAt.IsZero() }

func because(s step, why string) step {
	return func(e model.JournalEntry) bool { return s(e) && strings.Contains(e.Why, why) }
}

// follow returns the transitions of a model that make the story, in this order, whatever lies between them; nil: it has
// not happened yet.
func (ev *evidence) follow(uid string, steps ...step) []model.JournalEntry {
	var found []model.JournalEntry
	for _, e := range ev.journal[uid] {
		if steps[len(found)](e) {
			found = append(found, e)
		}
		if len(found) == len(steps) {
			return found
		}
	}
	return nil
}

func story(uid string, steps ...step) func(*evidence) bool {
	return func(ev *evidence) bool { return ev.follow(uid, steps...) != nil }
}

func counted(counter string) func(*evidence) bool {
	return func(ev *evidence) bool { return ev.counters[counter] > 0 }
}

func finished(uid string) func(*evidence) bool {
	return story(uid, because(event(model.EventSuccess), "finished"))
}

func leftAlone(ev *evidence) bool {
	found := ev.follow(uidBusy, because(event(model.EventFailure), "as asked"), event(model.EventStart), event(model.EventSuccess))
	return found != nil && found[1].At.Sub(found[0].At) >= busyFor
}

func toldProgress(ev *evidence) bool {
	return ev.progress[uidSlow] && ev.follow(uidSlow, event(model.EventSuccess)) != nil
}

func disabled(uid string) func(*evidence) bool {
	return func(ev *evidence) bool {
		return ev.follow(uid, final(event(model.EventFailure))) != nil && len(ev.notices[uid]) > 0 && ev.notices[uid][0] == policy.NoticeDisabled
	}
}

func recovered(ev *evidence) bool {
	steps := []step{final(event(model.EventFailure)), event(model.EventUpdate), event(model.EventSuccess)}
	told := ev.notices[uidMoved]
	return ev.follow(uidMoved, steps...) != nil && len(told) > 1 && told[1] == policy.NoticeRecovered
}

func savedWhileRunning(ev *evidence) bool {
	return ev.follow(uidBanner, event(model.EventStart), event(model.EventUpdate),
		because(idle, "again"), event(model.EventStart), event(model.EventSuccess)) != nil
}
