package worker

import "github.com/refreshd/refreshd/model"

// Stats counts what a pool has done since it was made.
type Stats struct {
	Taken       int64 // entries taken from the input list, but for those put back
	Unreadable  int64 // of these, entries dropped because they hold no uids
	Stale       int64 // superseded while they waited in line: not worked on
	Succeeded   int64
	Failed      int64
	Postponed   int64
	Interrupted int64 // handed back: at a stop, or because the deadline passed in line
	Cancelled   int64 // deadline passed or fence lost during the work: nothing was told
	Requeued    int64 // attempts of dead pools that this one returned to the input list
}

// Stats returns the counters at one instant.
func (p *Pool) Stats() Stats {
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	return p.stats
}

// count adds to one of the counters.
func (p *Pool) count(counter *int64, n int) {
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	*counter += int64(n)
}

// counter is where the end of an attempt is counted; no type: nothing was told.
func (s *Stats) counter(kind model.MessageType) *int64 {
	switch kind {
	case model.MessageSuccess:
		return &s.Succeeded
	case model.MessageFailure:
		return &s.Failed
	case model.MessagePostponed:
		return &s.Postponed
	case model.MessageInterrupted:
		return &s.Interrupted
	default:
		return &s.Cancelled
	}
}
