package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/zones"
)

func TestABulkCancelsWhatRunsSinceBeforeIt(t *testing.T) {
	running := State{AttemptUID: "x", AttemptNo: 2, StartedAt: monday, DeadlineAt: monday.Add(time.Hour), Ticket: 7, Trigger: TriggerPlanned}
	for name, test := range map[string]struct {
		change func(*State)
		want   Outcome
	}{
		"it runs":              {func(*State) {}, Applied},
		"it was started since": {func(s *State) { s.Ticket = 8 }, Already},
		"it waits":             {func(s *State) { *s = State{RefreshAt: monday, Ticket: 7} }, Unchanged},
	} {
		m := Model{UID: "a", Policy: policy.Default(), State: running}
		test.change(&m.State)
		now := monday.Add(time.Minute)
		decision, outcome, picked := (&Bulk{Action: BulkCancel, Since: monday, Ticket: 7, By: "ann"}).Decide(&m, m.Status(now, false), now)
		failIf(t, outcome != test.want || !picked, "%s: got %q, picked: %t", name, outcome, picked)
		next := decision.Next
		failIf(t, outcome == Applied && (decision.Event != EventCancel || decision.By != "ann" || next.Running() || !next.RefreshAt.Equal(now) || next.AttemptNo != 1 || decision.Ended == nil),
			"%s: got %+v", name, decision)
	}
}

func TestABulkOfZonesLeavesModelsAloneWhoseClocksTheNewDataKeeps(t *testing.T) {
	now, bulk := monday, Bulk{Action: BulkZones, Zones: zones.ReadNotes(map[string]string{"planned_by": "2026f", "Europe/Berlin": "2026e"})}
	m := Model{UID: "a", Timezone: "Europe/Berlin", Policy: policy.Default(), State: State{RefreshAt: now.Add(time.Hour)}}
	_, outcome, picked := bulk.Decide(&m, m.Status(now, false), now)
	failIf(t, outcome != Unchanged || !picked, "got %q, picked: %t", outcome, picked)
}

func TestEveryActionOfABulkIsValid(t *testing.T) {
	for _, action := range []BulkAction{BulkReplan, BulkRun, BulkEnable, BulkDisable, BulkRemove, BulkCancel, BulkZones} {
		must(t, (&Bulk{Action: action}).Validate())
	}
	err := (&Bulk{Action: BulkRun, Selector: Selector{terms: []term{{name: SelectStatus, values: []string{"sad"}}}}}).Validate()
	failIf(t, err == nil, "a selector that picks nothing is accepted")
}
