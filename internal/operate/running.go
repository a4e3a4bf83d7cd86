package operate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/hint"
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
}

// RunningAttempt is an attempt that a worker has in hand.
type RunningAttempt struct {
	UID, Worker      string    // the worker as it has told its name; empty: it has not
	Since, ExpiresAt time.Time // since when it is worked on, or else started; when it fails if nothing is heard
	HeardAt          time.Time // last sign of life; zero: the worker has announced none
	Status           string
	Progress         int
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

// maxRunning is how many attempts are read of all pools in a part, and as many of other workers: there may be a million.
const maxRunning = 300

// ReadRunning reads who works for a queue, and some of the attempts. With the name of a host, a process or a pool it is about that alone.
func ReadRunning(ctx context.Context, queue *store.Queue, name string) (r Running, err error) {
	if r.Now, err = queue.Parts[0].Now(ctx); err != nil {
		return r, err
	}
	err = r.readPools(ctx, queue, name, func(part *store.Store, held *held) error {
		liveness, err := part.Report().Liveness(ctx)
		if err != nil {
			return err
		}
		r.InHand += liveness.Held
		return r.readAttempts(ctx, part, held, name == "")
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

// held is what worker pools have in hand in one part, as far as it was read.
type held struct {
	by   map[string]*WorkerPool // by the uid of the attempt
	uids []string               // of the models
	cut  bool                   // there is more
}

// readPools reads the pools of a name, in the order of their names. each is told what they have in hand in each part.
func (r *Running) readPools(ctx context.Context, queue *store.Queue, name string, each func(*store.Store, *held) error) (err error) {
	if r.Processes, err = ReadProcesses(ctx, queue); err != nil {
		return err
	}
	workers := slices.DeleteFunc(slices.Clone(r.Processes.Workers), func(p Process) bool { return !Calls(name, p.Name) })
	slices.SortFunc(workers, func(a, b Process) int { return cmp.Compare(a.Name, b.Name) })
	return queue.Each(func(part *store.Store) error {
		var owners []string
		var pools []*WorkerPool
		for _, p := range workers {
			if p.Part == "" || p.Part == part.Keys.Queue {
				owners, pools = append(owners, p.Name), append(pools, r.pool(p))
			}
		}
		states, err := part.Report().PoolStates(ctx, owners, max(2, maxRunning/max(1, len(owners))))
		if err != nil {
			return err
		}
		held := &held{by: map[string]*WorkerPool{}}
		for i, state := range states {
			pool := pools[i]
			pool.Taken, held.cut = pool.Taken+state.Taken, held.cut || state.Taken > int64(len(state.Entries))
			if state.Order.Verb != "" {
				pool.Order, pool.OrderBy = state.Order.Verb, state.Order.By
			}
			for _, entry := range state.Entries {
				held.by[entry.AttemptUID], held.uids = pool, append(held.uids, entry.UID)
			}
		}
		return each(part, held)
	})
}

// pool is the one of a process, which has a heartbeat in each part.
func (r *Running) pool(p Process) *WorkerPool {
	p.Name = store.PoolName(p.Name)
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

// readAttempts reads the attempts of pools in one part, and of others those that end first. These are only told apart from those of pools, which may
// be at work under the same name, where all of the latter were read; and from queued ones as the input list is first in, first out.
func (r *Running) readAttempts(ctx context.Context, part *store.Store, held *held, others bool) error {
	uids, front := held.uids, []store.InputEntry(nil)
	if others = others && !held.cut; others {
		page, err := part.Report().Behind(ctx, part.Keys.Running, store.Scored{}, maxRunning)
		if err != nil {
			return err
		}
		if front, err = part.InputPart(ctx, 0, 1); err != nil {
			return err
		}
		for _, scored := range page {
			uids = append(uids, scored.UID)
		}
		for _, entry := range front {
			uids = append(uids, entry.UID)
		}
	}
	snapshot, err := part.Read(ctx, uids, nil)
	if err != nil {
		return err
	}
	queued := math.MaxInt // from this ticket on
	for _, entry := range front {
		if queued = 0; snapshot.Records[entry.UID].AttemptUID == entry.AttemptUID { // otherwise it is over, and does not tell
			queued = snapshot.Records[entry.UID].Ticket
		}
	}
	for _, record := range snapshot.Records {
		a := RunningAttempt{record.UID, record.Worker, record.ProcessingAt, record.ExpiresAt(), time.Time{}, record.UserFriendlyStatus, record.Progress}
		if record.ExpectsSigns() {
			a.HeardAt = record.HeardAt
		}
		begun := !a.Since.IsZero()
		if !begun {
			a.Since = record.StartedAt
		}
		if pool := held.by[record.AttemptUID]; pool != nil {
			pool.Attempts = append(pool.Attempts, a)
		} else if others && record.Running() && (begun || record.Ticket < queued) {
			r.Others = append(r.Others, a)
		}
	}
	return nil
}

// Calls reports whether a name, of a host, a process or a worker, is that of a worker; none calls all.
func Calls(name, worker string) bool {
	owner := store.ReadOwner(worker)
	return name == "" || name == worker || name == store.PoolName(worker) || owner.Host != "" && (name == owner.Host || name == owner.Host+":"+owner.PID)
}

// ReadPools reads the worker pools of a queue.
func ReadPools(ctx context.Context, queue *store.Queue, name string) ([]*WorkerPool, error) {
	var r Running
	err := r.readPools(ctx, queue, name, func(*store.Store, *held) error { return nil })
	return r.Pools, err
}

// OrderPools asks worker pools for something, by the name of a host, a process or a pool: store.PoolQuiet, store.PoolStop, or nothing any more.
func OrderPools(ctx context.Context, o Operator, verb, name string) ([]*WorkerPool, error) {
	asked, err := ReadPools(ctx, o.Queue, name)
	if err == nil && (len(asked) == 0 || name == "") {
		err = fmt.Errorf("%s: expected the name of a worker, or its HOST or HOST:PID, found none of that name", document.OneLine(name))
		err = hint.For(err, hint.ListWorkers, name)
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(asked))
	for i, pool := range asked {
		names[i], pool.Order, pool.OrderBy = pool.Name, verb, o.By
	}
	return asked, o.Queue.Fleet().OrderPools(ctx, names, store.PoolOrder{Verb: verb, By: o.By})
}
