// Package health checks whether the loops of a process make progress.
//
// A round makes progress when it handles a batch, or Redis answers that nothing is due. A loop without progress for three ticks is
// not ready. A restart helps against the first of two reasons only:
//
//   - The loop is stuck: for three ticks no round has ended, with or without an error. It is not live.
//   - Redis fails: rounds end with errors. The loop stays live for as long as the patience of its Checks.
package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// minTick is the shortest tick that counts. A single call to Redis may take seconds to fail.
const minTick = 5 * time.Second

// ticks without progress are too many.
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
	return func(err error) {
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

// kind is the common name of the loops of all parts.
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
	stuck, failing := now.Sub(p.lastEnd), idle
	if p.onDemand { // it may have had nothing to do before the first failure, and no round in flight
		stuck, failing = 0, now.Sub(p.failingSince)
		for _, begun := range p.begun {
			stuck = max(stuck, now.Sub(begun))
		}
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

func round(d time.Duration) time.Duration { return d.Round(time.Second / 10) }

// Report is the answer to /livez and /readyz.
type Report struct {
	Status string  `json:"status"` // ok or failing
	Why    string  `json:"why,omitempty"`
	Loops  []State `json:"loops"`
}

// Checks is the HTTP handler of the health checks of a process, over all of its loops. It is safe for concurrent use.
type Checks struct {
	// How long a process stays live while every call to Redis fails.
	patience time.Duration
	clock    func() time.Time
	stopping atomic.Bool

	mu    sync.Mutex
	loops []*Progress // guarded by mu
}

// NewChecks returns the checks of a process without loops: it is live and not ready.
func NewChecks(patience time.Duration, clock func() time.Time) *Checks {
	return &Checks{patience: patience, clock: clock}
}

// Loop adds a loop that starts now and promises a round every tick, which counts as at least 5 s. A loop that works on demand may
// begin no round for any time: it is stuck only inside a round. Nil checks return a nil Progress.
func (c *Checks) Loop(name string, tick time.Duration, onDemand bool) *Progress {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	p := &Progress{
		name: name, limit: ticks * max(tick, minTick), onDemand: onDemand, clock: c.clock,
		begun: map[int]time.Time{}, lastEnd: now, lastSuccess: now,
	}
	c.loops = append(c.loops, p)
	return p
}

// Drop forgets loops that have done their work.
func (c *Checks) Drop(done ...*Progress) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops = slices.DeleteFunc(c.loops, func(loop *Progress) bool { return slices.Contains(done, loop) })
}

// Stop marks the end of the process: it is not ready from now on, and live whatever its loops do.
func (c *Checks) Stop() {
	if c != nil {
		c.stopping.Store(true)
	}
}

// ServeHTTP answers GET and HEAD of /livez (503: a restart would help) and /readyz (503: it does not do its work).
func (c *Checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET or HEAD", http.StatusMethodNotAllowed)
	case r.URL.Path == "/livez":
		// A process is alive if its loops fail in some parts of a queue only: a restart would harm the others.
		well := map[string]bool{} // by the kind of the loop
		c.report(func(s State) bool { well[s.kind()] = well[s.kind()] || s.Live; return true })
		report := c.report(func(s State) bool { return s.Live || well[s.kind()] && !s.stuck })
		if c.stopping.Load() {
			report.Status, report.Why = ok, "stopping"
		}
		c.answer(w, report)
	case r.URL.Path == "/readyz":
		report := c.report(func(s State) bool { return s.Ready })
		if c.stopping.Load() {
			report.Status, report.Why = failing, "stopping"
		} else if len(report.Loops) == 0 {
			report.Status, report.Why = failing, "starting"
		}
		c.answer(w, report)
	default:
		http.Error(w, "expected /livez, /readyz or /metrics", http.StatusNotFound)
	}
}

const (
	ok      = "ok"
	failing = "failing"
)

func (c *Checks) report(good func(State) bool) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Status: ok, Loops: []State{}}
	var why []string
	for _, loop := range c.loops {
		state := loop.State(c.patience)
		r.Loops = append(r.Loops, state)
		if !good(state) {
			why = append(why, state.Loop+": "+state.Why)
		}
	}
	if len(why) > 0 {
		r.Status, r.Why = failing, strings.Join(why, "; ")
	}
	return r
}

func (c *Checks) answer(w http.ResponseWriter, r Report) {
	w.Header().Set("Content-Type", "application/json")
	if r.Status != ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(r) // The client has gone.
}
