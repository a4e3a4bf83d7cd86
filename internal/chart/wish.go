package chart

import "time"

// wished tells when the next attempt would run if only its delay counted: a retry that made room for the planned refresh.
// It takes as long as the attempt before was allowed to.
func (a *attempt) wished() (from, to time.Time, found bool) {
	from, to = a.retryAt, a.retryAt
	if a.deadline.After(a.start) {
		to = from.Add(a.deadline.Sub(a.start))
	}
	return from, to, !from.IsZero()
}

// wish draws that retry into the row of the attempt that came instead.
func (s *stairs) wish(y float64, row stair) {
	if row.after == nil {
		return
	}
	from, to, found := row.after.wished()
	if !found {
		return
	}
	left := s.axis.x(from)
	right := max(left+stairMin, s.axis.x(to))
	s.rect("wish", left, y+4, right-left, stairBar+4, "")
	label := "would run " + s.clock(from) + " – " + s.clock(to)
	if own := s.axis.x(row.at); to.After(from) && left+widthOf(label)+10 < min(own, right) {
		s.text("bad", anchorStart, left+6, y+stairBar+4, label)
	}
}
