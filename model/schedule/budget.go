package schedule

import (
	"strconv"
	"time"
)

// A step is one look at a day, at a time of a day, at a line, or at the clocks of a zone: some tens of nanoseconds. Rules are bounded
// by steps and not by time, so that the same rule is refused on each machine and on each day. What was found before is remembered and
// costs nothing, so that a search may be cut short in a daemon that has just begun, and not in one that has asked before.
const (
	// maxCost is how many steps the lines of a rule set may take together to find their next occurrences. Lines in use take ten, the first
	// and the last working day of a year take 25, the hundredth takes 250.
	maxCost = 500

	// maxSteps is how many steps one question for the next occurrence may take: some times what is foreseen, for what EXDATE lines
	// and a spread add, and for lines that become dearer than they began.
	maxSteps = 4_000

	// maxAdmission is how many steps the compilation of a rule set may take: it counts a COUNT out, and it searches for a
	// first occurrence up to the horizon.
	maxAdmission = 60_000

	// probes is how many occurrences of each line are looked at when a rule set is compiled.
	probes = 8
)

// budget is how many steps are left. Below zero the search was cut short, and what it found means nothing.
type budget int

// step takes one step; false: none is left.
func (b *budget) step() bool { return b.take(1) }

func (b *budget) take(steps int) bool {
	*b -= budget(steps)
	return *b >= 0
}

func (b *budget) cut() bool { return *b < 0 }

// within asks for what comes after an instant. The error says that it took too many steps.
func within(after time.Time, ask func(*budget) (time.Time, bool)) (time.Time, bool, error) {
	b := budget(maxSteps)
	next, found := ask(&b)
	if b.cut() {
		return time.Time{}, false, tooManySteps(after)
	}
	return next, found, nil
}

func tooManySteps(after time.Time) error {
	return refuseRule(wantSteps(maxSteps), "more steps after "+after.UTC().Format(time.RFC3339))
}

func wantSteps(steps int) string {
	return "rules that find their next occurrence in at most " + strconv.Itoa(steps) + " steps"
}
