// Package health tells whether loops get on, by what they have done and not by their being alive.
//
// A loop gets on when it has done a round: it claimed something, or verified with Redis that nothing is due. Without one for
// three ticks it is not ready. There are two reasons, and a restart mends only the first: the loop is stuck, it has neither ended a
// round nor met an error for three ticks; or Redis fails, which the loop meets again and again. So a stuck loop is not live at
// once, and one that Redis fails stays live for as long as the patience.
package health

import (
	"fmt"
	"sync"
	"time"
)

// leastTick is the tick of a loop that promises a shorter one. A single call to Redis may take seconds to fail.
const leastTick = 5 * time.Second

// ticks is how many ticks without progress are too many.
const ticks = 3

// Progress is how one loop gets on. It is safe for concurrent use, and a nil one notes nothing.
type Progress struct {
	name  string
	limit time.Duration
	rests bool
	clock func() time.Time

	mu       sync.Mutex
	begun    map[int]time.Time // guarded by mu: the rounds under way
	count    int               // guarded by mu: rounds begun
	sign     time.Time         // guarded by mu: the end of the last round, however it ended
	last     time.Time         // guarded by mu: the end of the last round that did its work; at first the start
	failures int               // guarded by mu: in a row
	failing  time.Time         // guarded by mu: since when
	fault    string            // guarded by mu: of the last failure
	proven   bool              // guarded by mu: a round has done its work
}

// NewProgress returns the progress of a loop that starts now and promises a round every tick, which counts as at least 5 s. A
// loop that rests has nothing to do for any time: it is stuck only inside a round.
func NewProgress(name string, tick time.Duration, rests bool, clock func() time.Time) *Progress {
	now := clock()
	return &Progress{
		name: name, limit: ticks * max(tick, leastTick), rests: rests, clock: clock,
		begun: map[int]time.Time{}, sign: now, last: now,
	}
}

// Begin notes that a round begins, and returns what notes how it ended.
func (p *Progress) Begin() (end func(error)) {
	if p == nil {
		return func(error) {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	number := p.count
	p.begun[number] = p.clock()
	if number == 1 {
		p.sign = p.begun[number]
	}
	return func(err error) { p.end(number, err) }
}

func (p *Progress) end(number int, err error) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, number)
	p.sign = now
	if err == nil {
		p.proven, p.last, p.failures, p.failing, p.fault = true, now, 0, time.Time{}, ""
		return
	}
	if p.failures == 0 {
		p.failing = now
	}
	p.failures++
	p.fault = err.Error()
}

// State is how a loop gets on at one instant.
type State struct {
	Loop  string `json:"loop"`
	Live  bool   `json:"live"`
	Ready bool   `json:"ready"`
	// Why it is not ready; empty: it is.
	Why string `json:"why,omitempty"`
	// IdleMS is how long ago the last round did its work, in ms.
	IdleMS   int64  `json:"since_progress_ms"`
	Failures int    `json:"failures,omitempty"` // in a row
	Fault    string `json:"fault,omitempty"`
}

// State judges the loop. It is live while it fails for no longer than patience.
func (p *Progress) State(patience time.Duration) State {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := now.Sub(p.last)
	s := State{Loop: p.name, Live: true, Ready: true, IdleMS: idle.Milliseconds(), Failures: p.failures, Fault: p.fault}
	quiet := p.quiet(now)
	switch {
	case p.count == 0 && !p.rests:
		s.Live, s.Ready, s.Why = idle <= patience, false, "starting: no round has begun yet"
	case quiet > p.limit:
		s.Live, s.Ready = false, false
		s.Why = fmt.Sprintf("stuck: no round has ended for %s, expected one within %s", round(quiet), p.limit)
	case p.failures > 0 && now.Sub(p.failing) > patience:
		s.Live, s.Ready = false, false
		s.Why = fmt.Sprintf("fails for %s, longer than the patience of %s", round(now.Sub(p.failing)), patience)
	case p.failures > 0 && p.unproven(now, idle):
		s.Ready = false
		s.Why = fmt.Sprintf("fails: no progress for %s, expected some within %s", round(idle), p.limit)
	case !p.rests && !p.proven:
		s.Ready, s.Why = false, "starting: no round has done its work yet"
	}
	return s
}

// quiet is how long the loop has given no sign.
func (p *Progress) quiet(now time.Time) time.Duration {
	if !p.rests {
		return now.Sub(p.sign)
	}
	longest := time.Duration(0)
	for _, begun := range p.begun {
		longest = max(longest, now.Sub(begun))
	}
	return longest
}

// unproven reports whether failures have lasted too long. A loop that rests may have had nothing to do before them.
func (p *Progress) unproven(now time.Time, idle time.Duration) bool {
	if p.rests {
		return now.Sub(p.failing) > p.limit
	}
	return idle > p.limit
}

func round(d time.Duration) time.Duration { return d.Round(time.Second / 10) }
