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
		if chosen, found := p.choose(begin, end, wall, days, clock, b); found {
			return chosen, true
		}
		day, ok = days.from(end+1, last, b)
	}
	return 0, false
}

// choose returns the first chosen time of a period that is not before a wall time.
func (p positions) choose(begin, end, wall int64, days *dayRule, clock *dayClock, b *budget) (int64, bool) {
	b.take(len(p))
	var list [longestPeriod]int64
	best, times := int64(endless), clock.count()
	first := days.first(list[:0], begin, end, daysOf(slices.Max(p), times), b)
	last := days.last(first[len(first):], begin, end, daysOf(-slices.Min(p), times), b)
	for _, position := range p {
		set, index := first, position-1
		if position < 0 {
			set, index = last, len(last)*times+position
		}
		if index < 0 || index >= len(set)*times {
			continue
		}
		if at := set[index/times]*daySeconds + clock.at(index%times); at >= wall {
			best = min(best, at)
		}
	}
	return best, best != endless
}

// daysOf returns how many days have so many times, if each has some; none, if less than one is wanted.
func daysOf(wanted, times int) int { return (max(wanted, 0) + times - 1) / times }

// first appends at most so many days of the rule to a list: the first ones of a period.
func (d *dayRule) first(to []int64, begin, end int64, most int, b *budget) []int64 {
	for len(to) < most {
		day, ok := d.from(begin, end, b)
		if !ok {
			break
		}
		to, begin = append(to, day), day+1
	}
	return to
}

// last appends the last ones, and perhaps some before them. It looks farther and farther back, as they mostly are among the last days.
func (d *dayRule) last(to []int64, begin, end int64, want int, b *budget) []int64 {
	if want == 0 {
		return to
	}
	for from := end - int64(8*want); ; from = end - 4*(end-from) {
		found := d.first(to, max(from, begin), end, longestPeriod, b)
		if from <= begin || len(found) >= want {
			return found
		}
	}
}
