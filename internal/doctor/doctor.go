// Package doctor checks what must hold of a queue whatever happens, and the Redis that it lives in, and mends what is safe to mend.
//
// It may run beside busy daemons. It reads in chunks between which Redis serves others. What changes while it is read may look broken
// and is read again, at one instant, before it is told.
package doctor

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// Options tune an examination. The zero value is usable, but for the clock.
type Options struct {
	// Now is the clock of this machine, to compare with that of Redis. Nil: they are not compared.
	Now func() time.Time
	// Repair mends what is safe.
	Repair bool
	// Limit is how many findings of one code are told one by one. Defaults to 20.
	Limit int
	// Progress is called now and then with the number of keys looked at so far. Defaults to nobody.
	Progress func(keys int)
}

// defaultLimit is how many findings of one code a person may want to read.
const defaultLimit = 20

// examination is one run of the doctor.
type examination struct {
	store   *scripts.Store
	options Options
	report  *Report
	now     time.Time // of the queue, when the examination began

	types map[string]string // of the queue's own keys
	used  map[string]usage  // names of policies that models use

	policies map[string]bool // name of each stored policy: it can be read
	looked   int             // keys
	broken   bool            // a key of the queue has the wrong type: nothing can be applied
}

// usage is how a policy is used.
type usage struct {
	models  int
	example string // uid of one of them
}

func begin(store *scripts.Store, options Options) *examination {
	if options.Limit <= 0 {
		options.Limit = defaultLimit
	}
	return &examination{
		store: store, options: options, report: &Report{Counts: make(map[string]Count)},
		types: make(map[string]string), used: make(map[string]usage), policies: make(map[string]bool),
	}
}

// Examine checks a queue and the Redis that it lives in. An error means that the examination could not be finished; what was found
// until then is in the report.
func Examine(ctx context.Context, store *scripts.Store, options Options) (*Report, error) {
	e := begin(store, options)
	var err error
	if e.now, err = store.Now(ctx); err != nil {
		return e.report, err
	}
	for _, step := range []func(context.Context) error{
		e.surroundings, e.queueKeys, e.storedPolicies, e.manyKeys, e.sets, e.input, e.backlog, e.usedPolicies,
	} {
		if err := step(ctx); err != nil {
			return e.report, err
		}
	}
	return e.report, nil
}

// Surroundings checks only the Redis that a queue lives in, for daemons that begin.
func Surroundings(ctx context.Context, store *scripts.Store, options Options) (*Report, error) {
	e := begin(store, options)
	return e.report, e.surroundings(ctx)
}

func (e *examination) note(f Finding) { e.report.note(f, e.options.Limit) }

func (e *examination) look(keys int) {
	e.looked += keys
	if e.options.Progress != nil {
		e.options.Progress(e.looked)
	}
}
