package health

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

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

// Drop forgets a loop that has done its work.
func (c *Checks) Drop(p *Progress) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loops = slices.DeleteFunc(c.loops, func(loop *Progress) bool { return loop == p })
}

// Stop says that the process has been asked to end: it is not ready from now on, and live whatever its loops do.
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
		c.answer(w, c.live())
	case r.URL.Path == "/readyz":
		c.answer(w, c.ready())
	default:
		http.Error(w, "expected /livez, /readyz or /metrics", http.StatusNotFound)
	}
}

// live takes a process for alive whose loops fail in some parts of a queue only: the others would pay for a restart.
func (c *Checks) live() Report {
	well := map[string]bool{} // by the kind of the loop
	c.report(func(s State) bool { well[s.kind()] = well[s.kind()] || s.Live; return true })
	r := c.report(func(s State) bool { return s.Live || well[s.kind()] && !s.stuck })
	if c.stopping.Load() {
		r.Status, r.Why = ok, "stopping"
	}
	return r
}

func (c *Checks) ready() Report {
	r := c.report(func(s State) bool { return s.Ready })
	switch {
	case c.stopping.Load():
		r.Status, r.Why = failing, "stopping"
	case len(r.Loops) == 0:
		r.Status, r.Why = failing, "starting"
	}
	return r
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
