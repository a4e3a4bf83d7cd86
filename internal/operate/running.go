package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/remedy"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

// Running is who works for a queue, and on what.
type Running struct {
	Now       time.Time
	Processes Processes
	Pools     []*WorkerPool
	Others    []RunningAttempt // in hand of workers that send no heartbeat
	InHand    int64            // attempts of all workers
}

// WorkerPool is a worker pool of ours, in all parts of a queue.
type WorkerPool struct {
	Process
	store.Owner
	Order    string           `json:"order"` // what an operator asks of it: quiet or stop; empty: it works as usual
	OrderBy  string           `json:"order_by,omitempty"`
	Taken    int64            `json:"taken"` // attempts in hand
	Attempts []RunningAttempt `json:"-"`     // the first of them

	cut bool // it has taken more than was read
}

// RunningAttempt is an attempt that a worker has in hand.
type RunningAttempt struct {
	UID, Worker       string    // the worker as it has told its name; empty: it has not
	Since, DeadlineAt time.Time // since when it is worked on, or else started
	Status            string
	Progress          int
}

// State is what the pool does.
func (p *WorkerPool) State() string {
	switch {
	case !p.Lives:
		return "silent"
	case p.Order == store.PoolStop:
		return "stopping"
	case p.Order != "":
		return "quiet"
	default:
		return "working"
	}
}

// More is how many of its attempts are not listed.
func (p *WorkerPool) More() int64 { return max(0, p.Taken-int64(len(p.Attempts))) }

// MoreOthers is how many attempts of other workers are not listed.
func (r *Running) MoreOthers() int64 {
	more := r.InHand - int64(len(r.Others))
	for _, pool := range r.Pools {
		more -= pool.Taken
	}
	return max(0, more)
}

const (
	maxRunning = 300   // attempts that are read of all pools, and as many of other workers: there may be a million
	maxTaken   = 5_000 // entries that are read of all pools, to tell their attempts from those of others
)

// ReadRunning reads who works for a queue, and some of the attempts. With the name of a host, a process or a pool it is about that alone.
func ReadRunning(ctx context.Context, queue *store.Queue, name string) (r Running, err error) {
	if r.Now, err = queue.Parts[0].Now(ctx); err != nil {
		return r, err
	}
	err = r.readPools(ctx, queue, name, func(part *store.Store, entries map[string]*WorkerPool, uids []string) error {
		liveness, err := part.Report().Liveness(ctx)
		if err != nil {
			return err
		}
		r.InHand += liveness.Held
		others := max(10, maxRunning/len(queue.Parts))
		if name != "" {
			others = 0
		}
		return r.readAttempts(ctx, part, entries, uids, others)
	})
	slices.SortFunc(r.Others, func(a, b RunningAttempt) int { return cmp.Or(cmp.Compare(a.Worker, b.Worker), a.compare(b)) })
	for _, pool := range r.Pools {
		slices.SortFunc(pool.Attempts, RunningAttempt.compare)
	}
	return r, err
}

func (a RunningAttempt) compare(b RunningAttempt) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID))
}

// readPools reads the pools of a name, in the order of their names. each is told for each part which pool has which attempt, of those that were
// read, and the models of the first.
func (r *Running) readPools(ctx context.Context, queue *store.Queue, name string, each func(*store.Store, map[string]*WorkerPool, []string) error) (err error) {
	if r.Processes, err = ReadProcesses(ctx, queue); err != nil {
		return err
	}
	workers := slices.DeleteFunc(slices.Clone(r.Processes.Workers), func(p Process) bool { return !Calls(name, p.Name) })
	slices.SortFunc(workers, func(a, b Process) int { return cmp.Compare(a.Name, b.Name) })
	rows, limit := max(2, maxRunning/max(1, len(workers))), min(maxRunning, max(2, maxTaken/max(1, len(workers))))
	return queue.Each(func(part *store.Store) error {
		var names []string
		var pools []*WorkerPool
		for _, p := range workers {
			if p.Part == "" || p.Part == part.Keys.Queue {
				names, pools = append(names, p.Name), append(pools, r.pool(p))
			}
		}
		states, err := part.Report().PoolStates(ctx, names, limit)
		if err != nil {
			return err
		}
		entries, uids := map[string]*WorkerPool{}, []string(nil)
		for i, state := range states {
			pool := pools[i]
			pool.Taken, pool.cut = pool.Taken+state.Taken, pool.cut || state.Taken > int64(len(state.Entries))
			if state.Order.Verb != "" {
				pool.Order, pool.OrderBy = state.Order.Verb, state.Order.By
			}
			for n, entry := range state.Entries {
				if entries[entry.AttemptUID] = pool; n < rows {
					uids = append(uids, entry.UID)
				}
			}
		}
		return each(part, entries, uids)
	})
}

// pool is the one of a process, which has a heartbeat in each part.
func (r *Running) pool(p Process) *WorkerPool {
	for _, pool := range r.Pools {
		if pool.Name == p.Name {
			if p.LastSignAt.After(pool.LastSignAt) {
				pool.Process = p
			}
			return pool
		}
	}
	r.Pools = append(r.Pools, &WorkerPool{Process: p, Owner: store.ReadOwner(p.Name)})
	return r.Pools[len(r.Pools)-1]
}

// readAttempts reads the attempts of models in one part, and of others so many of those that end first.
func (r *Running) readAttempts(ctx context.Context, part *store.Store, entries map[string]*WorkerPool, uids []string, others int) error {
	var queued map[string]string
	if others > 0 {
		page, err := part.Report().Behind(ctx, part.Keys.Running, store.Scored{}, others)
		if err != nil {
			return err
		}
		for _, scored := range page {
			uids = append(uids, scored.UID)
		}
		if queued, err = part.Queued(ctx); err != nil {
			return err
		}
	}
	snapshot, err := part.Read(ctx, uids, nil)
	if err != nil {
		return err
	}
	cut := map[string]bool{} // names of workers of which not all attempts are known
	var rest []RunningAttempt
	for _, record := range snapshot.Records {
		a := RunningAttempt{record.UID, record.Worker, record.ProcessingAt, record.DeadlineAt, record.UserFriendlyStatus, record.Progress}
		if a.Since.IsZero() {
			a.Since = record.StartedAt
		}
		if pool := entries[record.AttemptUID]; pool != nil {
			pool.Attempts, cut[a.Worker] = append(pool.Attempts, a), cut[a.Worker] || pool.cut
		} else if others > 0 && record.Running() && queued[record.AttemptUID] == "" {
			rest = append(rest, a)
		}
	}
	r.Others = append(r.Others, slices.DeleteFunc(rest, func(a RunningAttempt) bool { return cut[a.Worker] })...)
	return nil
}

// Calls reports whether a name, of a host, a process or a worker, is that of a worker; none calls all.
func Calls(name, worker string) bool {
	owner := store.ReadOwner(worker)
	return name == "" || name == worker || owner.Host != "" && (name == owner.Host || name == owner.Host+":"+owner.PID)
}

// ReadPools reads the worker pools of a queue.
func ReadPools(ctx context.Context, queue *store.Queue, name string) ([]*WorkerPool, error) {
	var r Running
	err := r.readPools(ctx, queue, name, func(*store.Store, map[string]*WorkerPool, []string) error { return nil })
	return r.Pools, err
}

// OrderPools asks worker pools for something, by the name of a host, a process or a pool: store.PoolQuiet, store.PoolStop, or nothing any more.
func OrderPools(ctx context.Context, o Operator, verb, name string) ([]*WorkerPool, error) {
	if err := o.Queue.RequireWhole(); err != nil {
		return nil, err
	}
	asked, err := ReadPools(ctx, o.Queue, name)
	if err == nil && (len(asked) == 0 || name == "") {
		err = fmt.Errorf("%s: expected the name of a worker, or its HOST or HOST:PID, found none of that name", document.OneLine(name))
		err = remedy.For(err, remedy.ListWorkers, name)
	}
	if err != nil {
		return nil, err
	}
	known := false // by any part: a pool hears of it from there
	err = o.Queue.Each(func(part *store.Store) error {
		now, err := part.Now(ctx)
		for _, pool := range asked {
			if err == nil {
				var is bool
				is, err = part.Fleet().OrderPool(ctx, pool.Name, store.PoolOrder{Verb: verb, By: o.By}, now)
				known = known || is
			}
		}
		return err
	})
	if err == nil && !known {
		err = fmt.Errorf("%s: expected a worker that is there, found that it has gone", document.OneLine(name))
		return nil, remedy.For(err, remedy.ListWorkers, name)
	}
	for _, pool := range asked {
		pool.Order, pool.OrderBy = verb, o.By
	}
	return asked, err
}
