package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Processes are who serves a queue. Workers are our pools: those of other programs send no heartbeat.
type Processes struct {
	Dispatchers []Process `json:"dispatchers"`
	Pollers     []Process `json:"pollers"`
	Workers     []Process `json:"workers"`
}

// Process is a daemon or a pool that sends heartbeats, in one part of a queue.
type Process struct {
	Name       string    `json:"name"`
	Part       string    `json:"part,omitempty"` // of a queue that has several
	LastSignAt time.Time `json:"last_sign_at"`
	AgeMS      int64     `json:"age_ms"` // of that sign
	Lives      bool      `json:"lives"`  // false: it has been silent for longer than any settings allow, and is not forgotten yet
}

// Processes reads who serves the parts of the queue, the latest heartbeat first.
func (o Operator) Processes(ctx context.Context) (v Processes, err error) {
	err = o.Queue.Each(func(part *store.Store) error {
		heartbeats, now, err := part.Report().Heartbeats(ctx)
		for _, h := range heartbeats {
			age := max(0, now.Sub(h.At))
			member := Process{Name: h.Owner, LastSignAt: h.At, AgeMS: age.Milliseconds(), Lives: age <= model.LongestSilence}
			if len(o.Queue.Parts) > 1 {
				member.Part = part.Keys.Queue
			}
			members := v.of(h.Of)
			*members = append(*members, member)
		}
		return err
	})
	for _, role := range model.Roles {
		slices.SortFunc(*v.of(role), func(a, b Process) int {
			return cmp.Or(cmp.Compare(a.AgeMS, b.AgeMS), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Part, b.Part))
		})
	}
	return v, err
}

func (v *Processes) of(role model.Role) *[]Process {
	switch role {
	case model.RoleDispatcher:
		return &v.Dispatchers
	case model.RolePoller:
		return &v.Pollers
	default:
		return &v.Workers
	}
}
