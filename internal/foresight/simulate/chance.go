package simulate

import (
	"math/rand/v2"
	"time"
)

// Chance decides by random numbers how attempts end. The same seed gives the same outcomes, whatever else changes: attempt 5 of
// one policy ends like attempt 5 of another.
type Chance struct {
	Seed              uint64
	Fail, Lost        float64 // shares of the attempts, from 0 to 1, together at most 1
	Shortest, Longest time.Duration
}

// Outcomes are an endless list. Answers come after whole seconds where the range allows.
func (c Chance) Outcomes() Outcomes {
	random := rand.New(rand.NewPCG(c.Seed, 0))
	return func() (Outcome, bool) {
		share, length := random.Float64(), random.Float64() // both each time: an attempt must not depend on the one before
		after := c.Shortest + time.Duration(length*float64(c.Longest-c.Shortest))
		outcome := Outcome{Result: Success, After: max(c.Shortest, after.Truncate(time.Second))}
		switch {
		case share < c.Lost:
			outcome = Outcome{Result: Lost}
		case share < c.Lost+c.Fail:
			outcome.Result = Failure
		}
		return outcome, true
	}
}
