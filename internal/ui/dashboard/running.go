package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

var runningPage = page{path: "running", title: "Running", nav: true, file: "running", read: readRunning, live: []string{"running-processes", "running-attempts"}}

const maxProcesses = 200

type running struct {
	Name       string // of the host, process or worker that the page is about; "": of all
	Now        time.Time
	Rows       []runningRow
	Workers    int // processes that can be asked for something
	More       int // processes that are not shown
	InHand     []operate.RunningAttempt
	MoreInHand int64 // attempts that are not shown
	Total      int64
}

type runningRow struct {
	*operate.WorkerPool
	Role string
	Ask  bool // it can be asked for something, as it is a worker
}

func readRunning(ctx context.Context, req *request) (any, error) {
	name := strings.TrimSpace(req.get("name"))
	read, err := operate.ReadRunning(ctx, req.queue, name)
	if err != nil {
		return nil, err
	}
	r := &running{Name: name, Now: read.Now, Workers: len(read.Pools)}
	for _, role := range []model.Role{model.RoleDispatcher, model.RolePoller} {
		for _, p := range latest(*read.Processes.Of(role)) {
			if operate.Calls(name, p.Name) {
				r.Rows = append(r.Rows, runningRow{WorkerPool: &operate.WorkerPool{Process: p, Owner: store.ReadOwner(p.Name)}, Role: string(role)})
			}
		}
	}
	for _, pool := range read.Pools {
		r.Rows = append(r.Rows, runningRow{WorkerPool: pool, Role: string(model.RoleWorker), Ask: true})
	}
	slices.SortStableFunc(r.Rows, func(a, b runningRow) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(len(a.PID), len(b.PID)), cmp.Compare(a.PID, b.PID))
	})
	for i, row := range r.Rows {
		if i >= maxProcesses {
			r.MoreInHand += row.Taken
			continue
		}
		r.MoreInHand += row.More()
		for _, attempt := range row.Attempts {
			attempt.Worker = row.calls(attempt.Worker)
			r.InHand = append(r.InHand, attempt)
		}
	}
	shown := min(len(r.Rows), maxProcesses)
	r.Rows, r.More = r.Rows[:shown], len(r.Rows)-shown
	if name == "" {
		r.InHand, r.MoreInHand = append(r.InHand, read.Others...), r.MoreInHand+read.MoreOthers()
	}
	r.Total = r.MoreInHand + int64(len(r.InHand))
	return r, nil
}

// Label is a process as its host knows it.
func (r *runningRow) Label() string {
	if r.Host == "" || r.PID == "" {
		return r.Name
	}
	return r.Host + ":" + r.PID
}

// calls names the worker of an attempt, as it has announced itself, and its process.
func (r *runningRow) calls(worker string) string {
	if worker == "" || worker == r.Name || worker == r.Label() {
		return r.Label()
	}
	return worker + " of " + r.Label()
}

// latest keeps the latest heartbeat of each process, which sends one to each part.
func latest(processes []operate.Process) (each []operate.Process) {
	known := map[string]bool{}
	for _, p := range processes { // the latest heartbeat is first
		if !known[p.Name] {
			each = append(each, p)
		}
		known[p.Name] = true
	}
	return each
}

// order returns the action that orders workers. did describes it, behind their name.
func order(verb, did string) func(ctx context.Context, req *request) (outcome, error) {
	return func(ctx context.Context, req *request) (outcome, error) {
		name := req.get("name")
		asked, err := operate.OrderPools(ctx, req.operator, verb, name)
		return outcome{text: name + " (" + words.Count(len(asked), "worker", "workers") + ") " + did + "."}, err
	}
}
