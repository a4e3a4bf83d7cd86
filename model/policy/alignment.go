package policy

import "time"

// Alignment is how a retry is joined with the schedule.
type Alignment string

// The alignments. Without a planned refresh the retry runs after its delay, whatever the alignment.
const (
	// AlignPlanned lets a retry run only when it ends before the planned refresh begins.
	AlignPlanned Alignment = "align_planned"
	// UntilSuccess lets every retry run; planned refreshes that pass meanwhile are skipped.
	UntilSuccess Alignment = "until_success"
	// PlannedOnly lets no retry run: the planned refresh is the retry.
	PlannedOnly Alignment = "planned_only"
	// WhicheverFirst takes what starts first.
	WhicheverFirst Alignment = "whichever_first"
	// BetweenPlanned is AlignPlanned, but a planned refresh begins a new cycle of attempts.
	BetweenPlanned Alignment = "between_planned"
)

// Overlap is how the time of a retry lies to that of the planned refresh.
type Overlap string

// The overlaps of a retry [start, start+timeout) with a planned refresh of the same length.
const (
	NonePlanned   Overlap = "none planned"
	Before        Overlap = "before"         // ends before planned begins, or exactly then
	OverlapsStart Overlap = "overlaps start" // starts before planned and would end after its beginning
	Same          Overlap = "same"           // starts exactly with planned
	OverlapsEnd   Overlap = "overlaps end"   // starts while planned would run
	After         Overlap = "after"          // starts when planned would have ended
)

// OverlapOf compares a retry with the planned refresh. A timeout of zero is an unknown length: only the starts count.
func OverlapOf(retryAt, planned time.Time, timeout time.Duration) Overlap {
	switch {
	case retryAt.Equal(planned):
		return Same
	case retryAt.Before(planned) && retryAt.Add(timeout).After(planned):
		return OverlapsStart
	case retryAt.Before(planned):
		return Before
	case retryAt.Before(planned.Add(timeout)):
		return OverlapsEnd
	default:
		return After
	}
}

// PrefersPlanned reports whether the planned refresh takes the place of a retry.
func (a Alignment) PrefersPlanned(overlap Overlap) bool {
	switch {
	case overlap == NonePlanned || a == UntilSuccess:
		return false
	case a == PlannedOnly:
		return true
	case a == WhicheverFirst:
		return overlap != Before && overlap != OverlapsStart
	default:
		return overlap != Before
	}
}

// WhyJoined says how a retry was joined with the schedule.
func WhyJoined(overlap Overlap, plannedFirst bool) string {
	switch {
	case overlap == NonePlanned:
		return ", none planned"
	case plannedFirst:
		return ", planned first: " + string(overlap)
	case overlap == Before:
		return ", before planned"
	default:
		return ", retry first: " + string(overlap)
	}
}
