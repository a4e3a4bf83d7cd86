package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func journal(entries ...model.JournalEntry) *evidence {
	ev := &evidence{journal: make(map[string][]model.JournalEntry), notices: make(map[string][]policy.Notice)}
	for _, e := range entries {
		ev.journal[e.UID] = append(ev.journal[e.UID], e)
	}
	return ev
}

func happened(uid string, event model.Event, no int) model.JournalEntry {
	return model.JournalEntry{UID: uid, Event: event, AttemptNo: no, At: seven}
}

func TestABehaviourNeedsAllItsStepsInOrder(t *testing.T) {
	first, second := happened("m", model.EventFailure, 1), happened("m", model.EventFailure, 2)
	between, third := happened("m", model.EventStart, 3), happened("m", model.EventSuccess, 3)
	b := behaviour{uid: "m", steps: []step{
		{event: model.EventFailure, attempt: 1}, {event: model.EventFailure, attempt: 2}, {event: model.EventSuccess, attempt: 3},
	}}
	tests := []struct {
		name    string
		entries []model.JournalEntry
		want    bool
	}{
		{"all in order", []model.JournalEntry{first, second, between, third}, true},
		{"one missing", []model.JournalEntry{first, between, third}, false},
		{"wrong order", []model.JournalEntry{second, first, third}, false},
		{"of another model", []model.JournalEntry{first, second, happened("n", model.EventSuccess, 3)}, false},
		{"nothing", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := b.seen(journal(test.entries...)); got != test.want {
				t.Errorf("seen = %t, want %t", got, test.want)
			}
		})
	}
}

// behaviourOf returns the behaviour of a model whose text has a word.
func behaviourOf(t *testing.T, uid, word string) *behaviour {
	t.Helper()
	for i := range behaviours {
		if b := &behaviours[i]; b.uid == uid && strings.Contains(b.text, word) {
			return b
		}
	}
	t.Fatalf("no behaviour of %s says %q", uid, word)
	return nil
}

func TestABusyFeedCountsAsNotAskedAgainOnlyAfterTheWholePause(t *testing.T) {
	asked := happened(uidBusy, model.EventFailure, 1)
	asked.Why = "retry 1/2 +2s as asked"
	for wait, want := range map[time.Duration]bool{busyFor: true, busyFor - time.Millisecond: false} {
		again := happened(uidBusy, model.EventStart, 2)
		again.At = asked.At.Add(wait)
		if got := behaviourOf(t, uidBusy, "not asked again").seen(journal(asked, again, happened(uidBusy, model.EventSuccess, 2))); got != want {
			t.Errorf("not asked again for %s = %t, want %t", wait, got, want)
		}
	}
}

func TestTakenBackIsNotCountedOnlyWhenTheAttemptKeepsItsNumber(t *testing.T) {
	b := behaviourOf(t, uidManual, "taken back")
	for no, want := range map[int]bool{2: true, 3: false} {
		seen := b.seen(journal(happened(uidManual, model.EventWithdrawn, 2), happened(uidManual, model.EventStart, no), happened(uidManual, model.EventSuccess, no)))
		if seen != want {
			t.Errorf("start as attempt %d after attempt 2 was withdrawn: seen = %t, want %t", no, seen, want)
		}
	}
}

func TestGivingUpCountsOnlyWithAReasonForTheOwner(t *testing.T) {
	gave := happened(uidGone, model.EventFailure, 1)
	gave.Final = true
	unexplained := journal(gave)
	unexplained.notices[uidGone] = []policy.Notice{policy.NoticeDisabled}
	if behaviourOf(t, uidGone, "disabled").seen(unexplained) {
		t.Error("a final failure without a reason was accepted")
	}
	gave.DisabledReason = "The feed is gone"
	if behaviourOf(t, uidGone, "disabled").seen(journal(gave)) {
		t.Error("a final failure of which nobody was told was accepted")
	}
	told := journal(gave)
	told.notices[uidGone] = []policy.Notice{policy.NoticeDisabled}
	if !behaviourOf(t, uidGone, "disabled").seen(told) {
		t.Error("a final failure with reason and notification was not accepted")
	}
}

func TestRecoveryCountsOnlyWhenTheOwnerIsTold(t *testing.T) {
	gave := happened(uidMoved, model.EventFailure, 1)
	gave.Final, gave.DisabledReason = true, "The feed was not found"
	ev := journal(gave, happened(uidMoved, model.EventUpdate, 0), happened(uidMoved, model.EventSuccess, 1))
	ev.notices[uidMoved] = []policy.Notice{policy.NoticeDisabled}
	if behaviourOf(t, uidMoved, "recovers").seen(ev) {
		t.Error("a recovery of which nobody was told was accepted")
	}
	ev.notices[uidMoved] = append(ev.notices[uidMoved], policy.NoticeDisabled)
	if behaviourOf(t, uidMoved, "recovers").seen(ev) {
		t.Error("a second final failure was accepted as a recovery")
	}
	ev.notices[uidMoved][1] = policy.NoticeRecovered
	if !behaviourOf(t, uidMoved, "recovers").seen(ev) {
		t.Error("a recovery with its notification was not accepted")
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
	c.transition(happened("m", model.EventStart, 1))
	c.notice(model.Notification{UID: "m"})
	if len(c.evidence.journal)+len(c.evidence.notices) != 0 {
		t.Error("a complete checklist keeps on collecting, for ever in a demo without end")
	}
}
