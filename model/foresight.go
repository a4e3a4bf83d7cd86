package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Foresight is what the definition in force makes of a model: of two policies it tells whether they decide alike.
type Foresight struct {
	Planned  time.Time // the next planned refresh
	Deadline time.Time // of an attempt that begins now
	Next     time.Time // after a failure now: of that attempt, or of the one that is running
	Why      string
}

// Foresee asks the definition in force about the running attempt, or about one that would start at now.
func (m *Model) Foresee(now time.Time) Foresight {
	probe := m.State
	if !probe.Running() {
		probe.AttemptNo++
		probe.AttemptUID = "foreseen"
	}
	after := m.afterFailure(&probe, policy.Failure{}, now)
	return Foresight{Planned: m.Planned(now), Deadline: m.deadline(&probe, now), Next: after.at, Why: after.why.String()}
}
