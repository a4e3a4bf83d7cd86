package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/alerts"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/model/zones"
)

// Stats are what a queue holds, who serves it, and its counters.
type Stats struct {
	// Findings are what is stopped or wrong, the most important first.
	Findings []alerts.Finding `json:"findings"`
	Calm     string           `json:"-"` // stands for none

	Queue string `json:"queue"`
	Parts int    `json:"parts,omitempty"` // of a queue that has several
	report.Stats
	Freshness FreshnessShare `json:"freshness"`
	// Replanning are changed policies whose models get a new plan.
	Replanning []Replan `json:"replanning"`

	Processes Processes `json:"living"`
	// ZoneData is that of this program.
	ZoneData zones.Origin `json:"zone_data"`

	RetryStats
}

// RetryStats count retries, of a model or of all models of a queue.
type RetryStats struct {
	TotalRetries      int64 `json:"total_retries"`      // attempts that were not the first of their cycle and have ended
	SuccessfulRetries int64 `json:"successful_retries"` // those of them that succeeded
	RetriedCycles     int64 `json:"retried_cycles"`     // cycles that needed a retry
	// RetrySuccessRate is the share of these cycles that a retry saved, 0 to 1; null: none needed one.
	RetrySuccessRate *float64 `json:"retry_success_rate"`
}

// NewRetryStats counts retries, and the share of cycles that they saved.
func NewRetryStats(total, successful, cycles int64) RetryStats {
	stats := RetryStats{TotalRetries: total, SuccessfulRetries: successful, RetriedCycles: cycles}
	if cycles > 0 {
		stats.RetrySuccessRate = new(float64(successful) / float64(cycles))
	}
	return stats
}

// Summary describes them in a line; empty: no cycle needed a retry.
func (s RetryStats) Summary() string {
	if s.RetrySuccessRate == nil {
		return ""
	}
	return fmt.Sprintf("%d, %d of %d cycles that needed one were saved (%.0f%%)", s.TotalRetries, s.SuccessfulRetries, s.RetriedCycles, *s.RetrySuccessRate*100)
}

// Stats reads the statistics of the queue.
func (o Operator) Stats(ctx context.Context) (Stats, error) {
	s, err := alerts.Read(ctx, o.Queue)
	if err != nil {
		return Stats{}, err
	}
	v := Stats{
		Findings: s.Findings(), Calm: s.Calm(), Queue: o.Queue.Name, Stats: s.Stats, RetryStats: NewRetryStats(s.Retries()), Freshness: newFreshnessShare(s.Freshness),
		ZoneData: zones.InUse().Origin,
	}
	if len(o.Queue.Parts) > 1 {
		v.Parts = len(o.Queue.Parts)
	}
	if v.Processes, err = ReadProcesses(ctx, o.Queue); err != nil {
		return v, err
	}
	v.Replanning, err = o.replans(ctx)
	return v, err
}

// Replan is how far the models of a changed policy are planned anew; in a queue of several parts, in all of them.
type Replan struct {
	Policy  string    `json:"policy"`
	Since   time.Time `json:"since"`   // when it was changed
	Seen    int64     `json:"seen"`    // models that were looked at
	Changed int64     `json:"changed"` // those of them that start at another time now
}

// String describes it in a line.
func (v Replan) String() string {
	return fmt.Sprintf("%s: %s seen, %d changed, since %s", v.Policy, words.Count(int(v.Seen), "model", "models"), v.Changed, model.FormatTime(v.Since))
}

func (o Operator) replans(ctx context.Context) (views []Replan, err error) {
	err = o.Queue.Each(func(part *store.Store) error {
		bulks, err := flow.Of(part).Bulks(ctx)
		for i := range bulks {
			bulk := &bulks[i]
			policy := bulk.Policy()
			if policy == "" {
				continue
			}
			place, found := slices.BinarySearchFunc(views, policy, func(v Replan, name string) int { return cmp.Compare(v.Policy, name) })
			if !found {
				views = slices.Insert(views, place, Replan{Policy: policy, Since: bulk.Since})
			}
			v := &views[place]
			v.Seen, v.Changed = v.Seen+bulk.Seen, v.Changed+bulk.Done
			if bulk.Since.Before(v.Since) {
				v.Since = bulk.Since
			}
		}
		return err
	})
	return views, err
}

// Processes serve a queue. Workers are our pools: other programs send no heartbeat.
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
	// ZoneData is that of a dispatcher or poller; nil: unknown.
	ZoneData *zones.Origin `json:"zone_data,omitempty"`
	Lives    bool          `json:"lives"` // false: it has been silent for longer than any settings allow, and is not forgotten yet
}

// ReadProcesses reads who serves the parts of the queue, the latest heartbeat first.
func ReadProcesses(ctx context.Context, queue *store.Queue) (v Processes, err error) {
	err = queue.Each(func(part *store.Store) error {
		heartbeats, now, failed := part.Report().Heartbeats(ctx)
		notes, err := store.ZoneNotes(ctx, part.Report())
		for _, h := range heartbeats {
			age := max(0, now.Sub(h.At))
			member := Process{Name: h.Owner, LastSignAt: h.At, AgeMS: age.Milliseconds(), Lives: age <= model.LongestSilence}
			if origin, noted := notes.Daemons[h.Owner]; noted {
				member.ZoneData = &origin
			}
			if len(queue.Parts) > 1 {
				member.Part = part.Keys.Queue
			}
			members := v.Of(h.Of)
			*members = append(*members, member)
		}
		return cmp.Or(failed, err)
	})
	for _, role := range model.Roles {
		slices.SortFunc(*v.Of(role), func(a, b Process) int {
			return cmp.Or(cmp.Compare(a.AgeMS, b.AgeMS), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Part, b.Part))
		})
	}
	return v, err
}

// Of are the processes of a role.
func (v *Processes) Of(role model.Role) *[]Process {
	switch role {
	case model.RoleDispatcher:
		return &v.Dispatchers
	case model.RolePoller:
		return &v.Pollers
	default:
		return &v.Workers
	}
}
