package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestABulkRunStartsWhatWasNotStartedSinceItBegan(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	before, now := began.Add(-time.Minute), began.Add(time.Minute)
	waits := Model{UID: "a", Policy: policy.Default(), State: State{RefreshAt: now.Add(time.Hour), Ticket: 7}}
	for name, c := range map[string]struct {
		change func(*Model)
		want   Outcome
	}{
		"it waits":                        {func(*Model) {}, Applied},
		"it never ran":                    {func(m *Model) { m.Ticket = 0 }, Applied},
		"it is due":                       {func(m *Model) { m.RefreshAt = before }, Applied},
		"a hand has asked before":         {func(m *Model) { m.RefreshAt, m.Trigger = before, TriggerHand }, Applied},
		"a hand has asked since":          {func(m *Model) { m.RefreshAt, m.Trigger = began, TriggerHand }, Already},
		"it was parked then":              {func(m *Model) { m.RefreshAt, m.Trigger, m.ParkedBy = began, TriggerHand, "hold:h" }, Already},
		"it runs since before":            {func(m *Model) { m.AttemptUID, m.StartedAt = "x", before }, Busy},
		"it runs since then":              {func(m *Model) { m.AttemptUID, m.StartedAt, m.Ticket = "x", began, 8 }, Already},
		"it was started since and failed": {func(m *Model) { m.Ticket, m.FailingSince = 8, now }, Already},
		"a hand has disabled it":          {func(m *Model) { m.Disabled, m.DisabledBy, m.RefreshAt = true, StoppedByHand, time.Time{} }, Stopped},
		"a failure has disabled it":       {func(m *Model) { m.Disabled, m.DisabledBy, m.RefreshAt = true, StoppedByPolicy, time.Time{} }, Applied},
	} {
		m := waits
		c.change(&m)
		bulk := Bulk{Action: BulkRun, Since: began, Ticket: 7, By: "ann"}
		decision, outcome, picked := bulk.Decide(&m, m.Status(now, false), now)
		if outcome != c.want || !picked || outcome == Applied && (decision.Event != EventRun || decision.By != "ann" || decision.Next.Trigger != TriggerHand) {
			t.Errorf("%s: %q (picked: %v) of %+v, want %q", name, outcome, picked, decision, c.want)
		}
	}
}

func TestABulkPicksOnlyWhatItsSelectorDoes(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	m := Model{UID: "a", Policy: policy.Default()}
	for _, action := range bulkActions {
		bulk := Bulk{Action: BulkAction(action), Selector: selectorOf(t, "uid=b")}
		if _, outcome, picked := bulk.Decide(&m, m.Status(now, false), now); picked || outcome == Applied {
			t.Errorf("%s: picked %v, %q", action, picked, outcome)
		}
		bulk.Selector = Selector{}
		if _, outcome, picked := bulk.Decide(&m, StatusBroken, now); !picked || outcome != Broken {
			t.Errorf("%s of what is no model: picked %v, %q", action, picked, outcome)
		}
	}
	if err := (&Bulk{Action: "polish"}).Validate(); err == nil {
		t.Error("an unknown action is accepted")
	}
}
