// Package health tells whether the loops of a process make progress, by the rounds that they have done.
//
// A loop makes progress when a round has done its work: it took a batch, or Redis answered that nothing is due. A loop without
// progress for three ticks is not ready. There are two causes, and a restart helps against the first only:
//
//   - The loop is stuck: for three ticks no round has ended, with or without an error. It is not live at once.
//   - Redis fails: rounds end with errors. The loop stays live for as long as the patience of its Checks.
package health

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// minTick is the shortest tick that counts. A single call to Redis may take seconds to fail.
const minTick = 5 * time.Second

// ticks is how many ticks without progress are too many.
const ticks = 3

// Progress is the health of one loop. It is safe for concurrent use, and a nil one does nothing.
type Progress struct {
	name     string
	limit    time.Duration // without progress
	onDemand bool
	clock    func() time.Time

	mu           sync.Mutex
	begun        map[int]time.Time // guarded by mu: the rounds in flight
	count        int               // guarded by mu: rounds begun
	lastEnd      time.Time         // guarded by mu: of a round, however it ended; at first the start of the loop
	lastSuccess  time.Time         // guarded by mu: of a round; at first the start of the loop
	succeeded    bool              // guarded by mu: a round has succeeded
	failures     int               // guarded by mu: in a row
	failingSince time.Time         // guarded by mu
	lastError    string            // guarded by mu: of the failures in a row
}

// Begin is called when a round begins; the caller calls end when it has ended.
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
		p.lastEnd = p.begun[number]
	}
	return func(err error) { p.end(number, err) }
}

func (p *Progress) end(number int, err error) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, number)
	p.lastEnd = now
	if err == nil {
		p.succeeded, p.lastSuccess, p.failures, p.failingSince, p.lastError = true, now, 0, time.Time{}, ""
		return
	}
	if p.failures == 0 {
		p.failingSince = now
	}
	p.failures++
	p.lastError = err.Error()
}

// State is how healthy a loop is at one instant.
type State struct {
	Loop  string `json:"loop"`
	Live  bool   `json:"live"`
	Ready bool   `json:"ready"`
	// Why it is not ready; empty if it is.
	Why string `json:"why,omitempty"`
	// IdleMS is how long ago a round succeeded, in ms.
	IdleMS   int64  `json:"since_progress_ms"`
	Failures int    `json:"failures,omitempty"` // in a row
	Fault    string `json:"fault,omitempty"`

	stuck bool // a restart may help
}

// kind is what all loops of the parts of a queue are called, before the name of their part.
func (s State) kind() string {
	kind, _, _ := strings.Cut(s.Loop, " ")
	return kind
}

// State judges the loop. It is live while it fails for no longer than patience.
func (p *Progress) State(patience time.Duration) State {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := now.Sub(p.lastSuccess)
	s := State{Loop: p.name, Live: true, Ready: true, IdleMS: idle.Milliseconds(), Failures: p.failures, Fault: p.lastError}
	stuck, failing := p.stuckFor(now), idle
	if p.onDemand { // it may have had nothing to do before the first failure
		failing = now.Sub(p.failingSince)
	}
	switch {
	case p.count == 0 && !p.onDemand:
		s.Live, s.Ready, s.Why = idle <= patience, false, "starting: no round has begun yet"
	case stuck > p.limit:
		s.Live, s.Ready, s.stuck = false, false, true
		s.Why = fmt.Sprintf("stuck: no round has ended for %s, expected one within %s", round(stuck), p.limit)
	case p.failures > 0 && now.Sub(p.failingSince) > patience:
		s.Live, s.Ready = false, false
		s.Why = fmt.Sprintf("fails for %s, longer than the patience of %s", round(now.Sub(p.failingSince)), patience)
	case p.failures > 0 && failing > p.limit:
		s.Ready = false
		s.Why = fmt.Sprintf("fails: no progress for %s, expected some within %s", round(idle), p.limit)
	case !p.onDemand && !p.succeeded:
		s.Ready, s.Why = false, "starting: no round has done its work yet"
	}
	return s
}

// stuckFor is how long no round has ended; of a loop that works on demand, how long the oldest round has been in flight.
func (p *Progress) stuckFor(now time.Time) time.Duration {
	if !p.onDemand {
		return now.Sub(p.lastEnd)
	}
	longest := time.Duration(0)
	for _, begun := range p.begun {
		longest = max(longest, now.Sub(begun))
	}
	return longest
}

func round(d time.Duration) time.Duration { return d.Round(time.Second / 10) }
