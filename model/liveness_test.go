package model

import (
	"strings"
	"testing"
	"time"
)

// TestTheMissingRoleIsNamed judges signs of life by what waits: it must call nobody missing who lives, also with the longest tick.
func TestTheMissingRoleIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	due := func(seconds int) State { return State{RefreshAt: ago(seconds)} }
	running := func(deadline int) State {
		return State{AttemptUID: "a", AttemptNo: 1, StartedAt: ago(120), DeadlineAt: ago(deadline)}
	}
	const unknown = -1
	for name, test := range map[string]struct {
		dispatcher, poller, pool int // seconds since the last heartbeat
		model                    State
		queued                   bool // the model is in the input list
		front                    int  // seconds since the attempt at the front was started; 0: nothing is in line
		held, messages           int64
		want                     string // what the model misses
		certain                  string // who is missing for certain
	}{
		"nobody ever ran":                           {unknown, unknown, unknown, due(59), false, 0, 0, 0, "no dispatcher is running", "dispatcher"},
		"due within a few ticks":                    {unknown, unknown, unknown, due(5), false, 0, 0, 0, "", ""},
		"processing past its deadline":              {unknown, unknown, 1, running(59), false, 0, 1, 3, "no dispatcher is running", "dispatcher poller"},
		"scheduled, and nobody is there":            {unknown, unknown, unknown, due(-3600), false, 0, 0, 0, "", ""},
		"a dispatcher that has died":                {59, unknown, unknown, due(59), false, 0, 0, 0, "no dispatcher has given a sign of life for 59 seconds", ""},
		"one that is dead for certain":              {100, unknown, unknown, due(100), false, 0, 0, 0, "no dispatcher has given a sign of life for 1 minute 40 seconds", "dispatcher"},
		"one that lives":                            {2, unknown, unknown, due(59), false, 0, 0, 0, "", ""},
		"one from the future":                       {-3600, unknown, unknown, due(59), false, 0, 0, 0, "no dispatcher is running", "dispatcher"},
		"the list is full and nobody takes":         {1, 1, unknown, due(59), false, 59, 0, 0, "no worker has taken anything for 59 seconds", ""},
		"the list is full and workers are busy":     {1, 1, unknown, due(59), false, 3600, 1, 0, "", ""},
		"the list is full and a pool lives":         {1, 1, 3, due(59), false, 3600, 0, 0, "", ""},
		"queued, and nobody takes":                  {1, 1, unknown, running(-3600), true, 59, 0, 0, "no worker has taken anything for 59 seconds", ""},
		"queued, and the pool is dead":              {1, 1, 7200, running(-3600), true, 3720, 0, 0, "no worker has taken anything for 1 hour 2 minutes", "worker"},
		"queued past its deadline":                  {unknown, 1, 1, running(59), true, 120, 0, 0, "no dispatcher is running", "dispatcher"},
		"processing, and its result waits":          {1, unknown, 1, running(-3600), false, 0, 1, 3, "no poller is running", "poller"},
		"processing, and the poller lives":          {1, 1, 1, running(-3600), false, 0, 1, 3, "", ""},
		"disabled, and the command to enable waits": {1, unknown, unknown, State{Disabled: true}, false, 0, 0, 1, "no poller is running", "poller"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Liveness{Now: now, Held: test.held, Messages: test.messages, OldestDue: test.model.Scores().Due, OldestDeadline: test.model.DeadlineAt}
			for role, seconds := range map[Role]int{RoleDispatcher: test.dispatcher, RolePoller: test.poller, RoleWorker: test.pool} {
				if seconds != unknown {
					s.Heartbeat(role, ago(seconds))
				}
			}
			if test.front > 0 {
				s.Queued, s.HeadStartedAt = 1, ago(test.front)
			}
			absence, misses := s.MissingFor(&test.model, test.model.Status(now, test.queued))
			failIf(t, misses != (test.want != "") || misses && absence.String() != test.want, "expected the model to miss %q, found %q", test.want, absence)
			var certain []string
			for _, absence := range s.Missing() {
				if absence.Certain {
					certain = append(certain, string(absence.Role))
				}
			}
			found := strings.Join(certain, " ")
			failIf(t, found != test.certain, "expected %q to be missing for certain, found %q", test.certain, found)
		})
	}
}

func TestWhoMayLiveOrNotIsDoubtfulWhileSomethingWaits(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	for name, test := range map[string]struct {
		role          Role
		silent        int // seconds since its heartbeat; -1: it gives none
		front         int // seconds since the attempt at the front was started
		held          int64
		due           int
		want, certain int
	}{
		"a worker that lives":                           {RoleWorker, 5, 90, 0, 0, 0, 0},
		"a worker that has died, and nothing waits":     {RoleWorker, 6, 0, 0, 0, 0, 0},
		"a worker that has died, and what waits is new": {RoleWorker, 6, 5, 0, 0, 0, 0},
		"a worker that has died":                        {RoleWorker, 6, 6, 0, 0, 1, 0},
		"a worker that is dead for certain":             {RoleWorker, 90, 90, 0, 0, 0, 1},
		"a worker that has died with an attempt":        {RoleWorker, 90, 90, 1, 0, 1, 0},
		"workers without heartbeats are busy":           {RoleWorker, -1, 90, 1, 0, 0, 0},
		"workers without heartbeats take none":          {RoleWorker, -1, 59, 0, 0, 1, 0},
		"a dispatcher that has died":                    {RoleDispatcher, 6, 0, 0, 6, 1, 0},
		"a dispatcher that is dead for certain":         {RoleDispatcher, 90, 0, 0, 90, 0, 1},
	} {
		s := Liveness{Now: now, Held: test.held}
		for _, role := range Roles {
			s.Heartbeat(role, now)
		}
		if delete(s.Last, test.role); test.silent >= 0 {
			s.Heartbeat(test.role, ago(test.silent))
		}
		if test.front > 0 {
			s.Queued, s.HeadStartedAt = 1, ago(test.front)
		}
		if test.due > 0 {
			s.OldestDue = ago(test.due)
		}
		doubtful, dead := s.Doubtful(), s.Dead()
		failIf(t, len(doubtful) != test.want || len(dead) != test.certain, "%s: want %d doubtful and %d dead, found %v, %v", name, test.want, test.certain, doubtful, dead)
	}
}

func TestAModelThatADispatcherLeavesDueLacksRoom(t *testing.T) {
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	m := State{RefreshAt: now.Add(-time.Minute)}
	s := Liveness{Now: now, Queued: 1}
	failIf(t, s.LacksRoom(&m), "expected a dispatcher to be missing, not room")
	s.Heartbeat(RoleDispatcher, now)
	failIf(t, !s.LacksRoom(&m), "expected no room")
	if s.Queued = 0; s.LacksRoom(&m) {
		t.Error("expected room in an empty list")
	}
}
