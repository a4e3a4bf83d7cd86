package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Role is one of the kinds of daemons that serve a queue.
type Role string

// The roles.
const (
	RoleDispatcher Role = "dispatcher"
	RolePoller     Role = "poller"
	RoleWorker     Role = "worker"
)

// Roles are all of them, in the order in which a model needs them.
var Roles = []Role{RoleDispatcher, RoleWorker, RolePoller}

const (
	// fewTicks is how long something may wait before anybody is missed: a few ticks as they are by default.
	fewTicks = 5 * time.Second
	// LongestSilence is how old the last heartbeat of a role may be whatever its settings: the longest tick is a minute, and a round takes a while.
	LongestSilence = 70 * time.Second
	// longWait is how long attempts must be queued before it is certain that no worker takes them.
	longWait = time.Minute
	// maxAhead is how far in the future a heartbeat may lie; one further ahead was given before the clock was set back.
	maxAhead = time.Second
)

// Liveness has the last heartbeats of the processes of a queue or a part at one instant, and the work that waits for them.
type Liveness struct {
	Now time.Time
	// Last is the last heartbeat of any process of a role; absent: unknown. Of the workers only our pools send heartbeats.
	Last map[Role]time.Time

	OldestDue, OldestDeadline time.Time // of the due set and the running set; zero: it is empty
	Messages                  int64     // of workers and applications, that no poller has taken
	Queued                    int64     // entries in the input list
	Held                      int64     // running attempts that are not queued: workers hold them
	HeadStartedAt             time.Time // when the attempt at the front of the input list was started; zero: none, or it is over
}

// Heartbeat notes a heartbeat of a process.
func (s *Liveness) Heartbeat(role Role, at time.Time) {
	if at.Sub(s.Now) > maxAhead || !at.After(s.Last[role]) {
		return
	}
	if s.Last == nil {
		s.Last = make(map[Role]time.Time, len(Roles))
	}
	s.Last[role] = at
}

// Missing is a role that something waits for, and that gives no sign of life.
type Missing struct {
	Role  Role
	Known bool // a heartbeat is known
	// Silence is how long there was no sign: no heartbeat of a dispatcher or poller, nothing taken by a worker. 0: there never was one.
	Silence time.Duration
	// Certain: so long a silence has no other cause. Until then it may also be a long tick, or a worker that takes its time.
	Certain bool
}

// String says who is missing in a clause, such as "no worker has taken anything for 59 seconds".
func (a Missing) String() string {
	unit := time.Second
	if a.Silence >= time.Hour {
		unit = time.Minute
	}
	silence := document.FormatDurationInWords(a.Silence.Truncate(unit))
	switch {
	case a.Role == RoleWorker:
		return "no worker has taken anything for " + silence
	case !a.Known:
		return fmt.Sprintf("no %s is running", a.Role)
	default:
		return fmt.Sprintf("no %s has given a sign of life for %s", a.Role, silence)
	}
}

// Missing lists the roles that something has waited for too long.
func (s *Liveness) Missing() (missing []Missing) {
	oldest := s.OldestDeadline
	if oldest.IsZero() || !s.OldestDue.IsZero() && s.OldestDue.Before(oldest) {
		oldest = s.OldestDue
	}
	return slices.Concat(s.dispatcher(oldest), s.worker(), s.poller())
}

// Dead lists the roles that certainly do not live: dispatcher and poller also while nothing waits for them.
func (s *Liveness) Dead() []Missing {
	return slices.DeleteFunc(slices.Concat(s.without(RoleDispatcher), s.worker(), s.without(RolePoller)), func(a Missing) bool { return !a.Certain })
}

// Doubtful lists the roles for which something has waited for too long, and of which nobody knows whether they live.
func (s *Liveness) Doubtful() []Missing {
	doubtful := s.Missing()
	if pool := s.without(RoleWorker); s.Queued > 0 && s.Held > 0 && s.waited(s.HeadStartedAt) && len(pool) > 0 && pool[0].Known {
		doubtful = append(doubtful, Missing{Role: RoleWorker, Known: true, Silence: pool[0].Silence}) // the dead may hold them
	}
	return slices.DeleteFunc(doubtful, func(a Missing) bool { return a.Certain })
}

// MissingFor returns the role that a model of this status misses; false: none. A message that waits for a poller may be about any model.
func (s *Liveness) MissingFor(m *State, status Status) (Missing, bool) {
	var missing []Missing
	switch status {
	case StatusDue:
		missing = s.dispatcher(m.RefreshAt)
		if s.waited(m.RefreshAt) {
			missing = slices.Concat(missing, s.worker()) // a dispatcher that lives and starts nothing has no room
		}
	case StatusQueued:
		missing = slices.Concat(s.worker(), s.dispatcher(m.ExpiresAt()))
	case StatusProcessing:
		missing = s.dispatcher(m.ExpiresAt())
	case StatusScheduled, StatusFinished, StatusDisabled:
	}
	missing = slices.Concat(missing, s.poller())
	if len(missing) == 0 {
		return Missing{}, false
	}
	return missing[0], true
}

// LacksRoom reports whether a model that is due waits for room in the input list: a dispatcher lives, and does not start it.
func (s *Liveness) LacksRoom(m *State) bool {
	return s.Queued > 0 && s.waited(m.RefreshAt) && len(s.dispatcher(m.RefreshAt)) == 0
}

func (s *Liveness) waited(since time.Time) bool {
	return !since.IsZero() && s.Now.Sub(since) > fewTicks
}

func (s *Liveness) dispatcher(since time.Time) []Missing {
	if !s.waited(since) {
		return nil
	}
	return s.without(RoleDispatcher)
}

func (s *Liveness) poller() []Missing {
	if s.Messages == 0 {
		return nil
	}
	return s.without(RolePoller)
}

// without returns the role if it has given no heartbeat for more than a few ticks.
func (s *Liveness) without(role Role) []Missing {
	last, known := s.Last[role]
	silence := s.Now.Sub(last)
	switch {
	case !known:
		return []Missing{{Role: role, Certain: true}}
	case silence <= fewTicks:
		return nil
	default:
		return []Missing{{Role: role, Known: true, Silence: silence, Certain: silence > LongestSilence}}
	}
}

// worker reports that nobody takes from the input list. Some workers give no heartbeat; but if none holds an attempt while the head waits, none
// takes.
func (s *Liveness) worker() []Missing {
	if s.Queued == 0 || s.Held > 0 || !s.waited(s.HeadStartedAt) {
		return nil
	}
	pool := s.without(RoleWorker)
	if len(pool) == 0 {
		return nil // it is between two looks, or has just handed something back
	}
	wait := s.Now.Sub(s.HeadStartedAt)
	return []Missing{{Role: RoleWorker, Known: pool[0].Known, Silence: wait, Certain: pool[0].Certain && wait > longWait}}
}
