package health

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Report is the answer to a question about health: one JSON object.
type Report struct {
	Status string  `json:"status"` // ok or failing
	Why    string  `json:"why,omitempty"`
	Loops  []State `json:"loops"`
}

// Desk answers for all loops of a process. It is safe for concurrent use.
type Desk struct {
	// Patience is how long a process stays live while Redis fails it.
	patience time.Duration
	clock    func() time.Time
	stopping atomic.Bool

	mu    sync.Mutex
	loops []*Progress // guarded by mu
}

// NewDesk returns a desk that knows no loop yet: it is live and not ready.
func NewDesk(patience time.Duration, clock func() time.Time) *Desk {
	return &Desk{patience: patience, clock: clock}
}

// Loop adds a loop, see NewProgress. A nil desk returns a nil Progress.
func (d *Desk) Loop(name string, tick time.Duration, rests bool) *Progress {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := NewProgress(name, tick, rests, d.clock)
	d.loops = append(d.loops, p)
	return p
}

// Stop notes that the process has been told to end: it is not ready from now on, and live whatever its loops do.
func (d *Desk) Stop() {
	if d != nil {
		d.stopping.Store(true)
	}
}

// ServeHTTP answers GET and HEAD of /livez (would a restart help?) and /readyz (does it do its work?): 200 or 503.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET or HEAD", http.StatusMethodNotAllowed)
	case r.URL.Path == "/livez":
		d.answer(w, d.live())
	case r.URL.Path == "/readyz":
		d.answer(w, d.ready())
	default:
		http.Error(w, "expected /livez or /readyz", http.StatusNotFound)
	}
}

func (d *Desk) live() Report {
	if d.stopping.Load() {
		return Report{Status: ok, Why: "stopping", Loops: d.states()}
	}
	return d.report(func(s State) bool { return s.Live })
}

func (d *Desk) ready() Report {
	if d.stopping.Load() {
		return Report{Status: failing, Why: "stopping", Loops: d.states()}
	}
	r := d.report(func(s State) bool { return s.Ready })
	if len(r.Loops) == 0 {
		r.Status, r.Why = failing, "starting"
	}
	return r
}

const (
	ok      = "ok"
	failing = "failing"
)

func (d *Desk) report(good func(State) bool) Report {
	r := Report{Status: ok, Loops: d.states()}
	var why []string
	for _, state := range r.Loops {
		if !good(state) {
			why = append(why, state.Loop+": "+state.Why)
		}
	}
	if len(why) > 0 {
		r.Status, r.Why = failing, strings.Join(why, "; ")
	}
	return r
}

func (d *Desk) states() []State {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := make([]State, len(d.loops))
	for i, loop := range d.loops {
		states[i] = loop.State(d.patience)
	}
	return states
}

func (d *Desk) answer(w http.ResponseWriter, r Report) {
	w.Header().Set("Content-Type", "application/json")
	if r.Status != ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(r) // whoever asked has gone
}
