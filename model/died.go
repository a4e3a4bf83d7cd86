package model

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

const (
	// killerFrom is from how many deaths on a model is a killer: its attempt is deferred, and begun alone. One death may be chance.
	killerFrom = 2
	// killerDelay is how long it is deferred.
	killerDelay = 10 * time.Second
	// workerDied is the type of the failure that the next death is.
	workerDied = "worker_died"
)

// kills reports whether workers keep dying over the model.
func (s *State) kills() bool { return s.Deaths >= killerFrom }

// WorkerDied notes that a worker has died over the attempt that it had begun. First the attempt is handed out again. The second death ends it,
// uncounted. Each further one is a failure, until a living worker reports an end.
func (m *Model) WorkerDied(now time.Time) (decision Decision) {
	deaths := m.Deaths + 1
	switch {
	case deaths < killerFrom:
		decision = Decision{Event: EventWorkerDied, Next: m.State}
		m.returnToLine(&decision.Next, now)
	case deaths == killerFrom:
		decision = m.deferAttempt(EventWorkerDied, killerDelay, fmt.Sprintf("%d workers died over it: alone%s", deaths, afterText(killerDelay)), now)
	default:
		reason := fmt.Sprintf("%s died over it, the last one while it did nothing else", words.Count(deaths, "worker", "workers"))
		decision = m.fail(EventFailure, policy.Failure{ErrorType: workerDied, Reason: reason, Ours: true}, now)
	}
	if decision.Event != EventOutdated {
		decision.Next.Deaths = deaths
	}
	return decision
}

// returnToLine makes an attempt one that nobody has begun.
func (m *Model) returnToLine(next *State, now time.Time) {
	next.ProcessingAt, next.Worker = time.Time{}, ""
	next.SilentAfter, next.HeardAt = 0, time.Time{}
	next.UserFriendlyStatus, next.Progress = "", 0
	m.offer(next, now)
}
