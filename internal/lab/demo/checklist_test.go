package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// happened is an entry of the journal; what else it has is set by change.
func happened(event model.Event, no int, change ...func(*model.JournalEntry)) model.JournalEntry {
	e := model.JournalEntry{Event: event, AttemptNo: no, At: seven}
	for _, set := range change {
		set(&e)
	}
	return e
}

func final(e *model.JournalEntry)     { e.Final = true }
func explained(e *model.JournalEntry) { e.DisabledReason = "The feed is gone" }
func asAsked(e *model.JournalEntry)   { e.Why = "retry 1 of 2 after 2s, as the worker asked" }

func after(wait time.Duration) func(*model.JournalEntry) {
	return func(e *model.JournalEntry) { e.At = e.At.Add(wait) }
}

// TestABehaviourIsSeenWhenAllItsEvidenceIsThere looks at behaviours with and without a part of their evidence.
func TestABehaviourIsSeenWhenAllItsEvidenceIsThere(t *testing.T) {
	const failure, start, success, withdrawn = model.EventFailure, model.EventStart, model.EventSuccess, model.EventWithdrawn
	first, second, third := happened(failure, 1), happened(failure, 2), happened(success, 3)
	gaveUp, recovers := happened(failure, 1, final, explained), []model.JournalEntry{happened(failure, 1, final, explained), happened(model.EventUpdate, 0), happened(success, 1)}
	disabled, recovered := policy.NoticeDisabled, policy.NoticeRecovered
	for name, test := range map[string]struct {
		uid, text string
		journal   []model.JournalEntry
		notices   []policy.Notice
		want      bool
	}{
		"all in order":             {uidFlaky, "503 twice", []model.JournalEntry{first, second, happened(start, 3), third}, nil, true},
		"one missing":              {uidFlaky, "503 twice", []model.JournalEntry{first, third}, nil, false},
		"wrong order":              {uidFlaky, "503 twice", []model.JournalEntry{second, first, third}, nil, false},
		"nothing":                  {uidFlaky, "503 twice", nil, nil, false},
		"the whole pause":          {uidBusy, "not asked again", []model.JournalEntry{happened(failure, 1, asAsked), happened(start, 2, after(busyFor)), happened(success, 2)}, nil, true},
		"a shorter pause":          {uidBusy, "not asked again", []model.JournalEntry{happened(failure, 1, asAsked), happened(start, 2, after(busyFor-1)), happened(success, 2)}, nil, false},
		"the same number":          {uidManual, "taken back", []model.JournalEntry{happened(withdrawn, 2), happened(start, 2), happened(success, 2)}, nil, true},
		"another number":           {uidManual, "taken back", []model.JournalEntry{happened(withdrawn, 2), happened(start, 3), happened(success, 3)}, nil, false},
		"a reason, and told":       {uidGone, "disabled", []model.JournalEntry{gaveUp}, []policy.Notice{disabled}, true},
		"no reason":                {uidGone, "disabled", []model.JournalEntry{happened(failure, 1, final)}, []policy.Notice{disabled}, false},
		"told nobody":              {uidGone, "disabled", []model.JournalEntry{gaveUp}, nil, false},
		"recovered, and told":      {uidMoved, "recovers", recovers, []policy.Notice{disabled, recovered}, true},
		"recovered, and told once": {uidMoved, "recovers", recovers, []policy.Notice{disabled}, false},
		"disabled twice":           {uidMoved, "recovers", recovers, []policy.Notice{disabled, disabled}, false},
	} {
		ev := &evidence{journal: map[string][]model.JournalEntry{test.uid: test.journal}, notices: map[string][]policy.Notice{test.uid: test.notices}}
		for i := range behaviours {
			if b := &behaviours[i]; b.uid == test.uid && strings.Contains(b.text, test.text) && b.seen(ev) != test.want {
				t.Errorf("%s: seen = %t, want %t", name, !test.want, test.want)
			}
		}
	}
}

func TestTickStaysAndEvidenceIsNoLongerKeptWhenAllIsSeen(t *testing.T) {
	c := newChecklist()
	c.evidence.counters = map[string]int64{string(model.Stale): 1}
	c.tick()
	c.evidence.counters = nil
	c.tick()
	if c.count() != 1 {
		t.Errorf("%d behaviours ticked after the evidence went, want 1", c.count())
	}
	for i := range c.ticked {
		c.ticked[i] = true
	}
	c.transition(happened(model.EventStart, 1))
	c.notice(model.Notification{UID: "m"})
	failIf(t, len(c.evidence.journal)+len(c.evidence.notices) != 0, "a complete checklist keeps on collecting, for ever in a demo without end")
}
