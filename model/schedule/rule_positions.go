package schedule

import "slices"

// positions are the numbers of BYSETPOS. They choose among the times of one period, the days of which are seen as a whole.
type positions []int

// longestPeriod is a year.
const longestPeriod = 366

// reach tells whether any of them lies within a set that large.
func (p positions) reach(size int) bool {
	return slices.ContainsFunc(p, func(position int) bool { return max(position, -position) <= size })
}

// from returns the first wall time, not before another, that the positions choose; the search ends with the period of the last day.
func (p positions) from(wall, last int64, days *dayRule, clock *dayClock, b *budget) (int64, bool) {
	day, ok := days.from(floorDiv(wall, daySeconds), last, b)
	for ok {
		begin, end := days.period(day)
		var set [longestPeriod]int64
		if chosen, found := p.choose(days.list(set[:0], begin, end, b), wall, clock, b); found {
			return chosen, true
		}
		day, ok = days.from(end+1, last, b)
	}
	return 0, false
}

// list appends the days of the rule from first to last to a list.
func (d *dayRule) list(to []int64, first, last int64, b *budget) []int64 {
	for day, ok := d.from(first, last, b); ok; day, ok = d.from(day+1, last, b) {
		to = append(to, day)
	}
	return to
}

// choose returns the first chosen time of a period that is not before a wall time.
func (p positions) choose(days []int64, wall int64, clock *dayClock, b *budget) (int64, bool) {
	b.take(len(p))
	best, times := int64(endless), clock.count()
	for _, position := range p {
		index := position - 1
		if position < 0 {
			index = len(days)*times + position
		}
		if index < 0 || index >= len(days)*times {
			continue
		}
		if at := days[index/times]*daySeconds + clock.at(index%times); at >= wall {
			best = min(best, at)
		}
	}
	return best, best != endless
}
