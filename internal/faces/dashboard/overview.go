package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/attention"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

var overviewPage = page{
	path: "", title: "Overview", nav: true, file: "overview", read: readOverview,
	live: []string{"overview-findings", "overview-numbers", "overview-rates", "overview-causes", "overview-processes"},
}

// overview is a queue at a glance.
type overview struct {
	At       string
	Clock    string // the same in the zone of the page
	Findings []link // of which some have no page
	Stats    store.Stats
	Oldest   string // how long the oldest due model waits

	Never, Fresh, Late, Stale       int64
	Starts, Results, Line, Lateness graph

	Groups    []operate.Failures // largest first
	Unnamed   int                // how many more there are
	Processes []process
}

// process are the daemons and workers of one role.
type process struct {
	Name    string
	Missing bool
	Alive   int
	Members []string
	Unnamed int
}

const maxMembers = 5

func readOverview(ctx context.Context, req *request) (any, error) {
	queue, err := attention.Read(ctx, req.queue)
	if err != nil {
		return nil, err
	}
	stats := queue.Stats
	o := &overview{
		At: model.FormatTime(stats.At.Truncate(time.Second)), Clock: clock(stats.At, req.zone), Stats: stats, Oldest: words.Roughly(oldestWait(&queue.Stats)), Never: stats.Freshness[model.FreshnessNever],
		Fresh: stats.Freshness[model.Fresh], Late: stats.Freshness[model.FreshnessLate], Stale: stats.Freshness[model.FreshnessStale],
	}
	for _, one := range queue.Findings() {
		found := link{Text: one.Text}
		if one.Page != "" {
			found.Address = req.Link(one.Page, one.Fields...)
		}
		o.Findings = append(o.Findings, found)
	}
	if stats.Failing > 0 {
		groups, err := req.operator.Failures(ctx, operate.FailuresRequest{By: model.SelectError})
		if err != nil {
			return nil, err
		}
		o.Groups = groups[:min(len(groups), 5)]
		o.Unnamed = len(groups) - len(o.Groups)
	}
	if o.Processes, err = readProcesses(ctx, req.queue); err != nil {
		return nil, err
	}
	for i := range o.Processes {
		o.Processes[i].Missing = slices.ContainsFunc(queue.Gone, func(gone attention.Gone) bool { return string(gone.Role) == o.Processes[i].Name })
	}
	o.draw(req.sampler.all(), stats.At)
	return o, nil
}

// draw makes the graphs of the last hour.
func (o *overview) draw(samples []sample, now time.Time) {
	all := rates(samples, now)
	starts, results := all[0], all[1:]
	o.Starts = newGraph(fmt.Sprintf("Starts: %d in the last full minute, %d in the last hour.", starts.last(), starts.total()))
	o.Starts.stack([]string{"start"}, starts)
	o.Results = newGraph(fmt.Sprintf("Results in the last full minute: %s; in the last hour: %s.",
		resultText(results, perMinute.last), resultText(results, perMinute.total)))
	o.Results.stack(counted[1:], results...)
	for _, name := range counted[1:] {
		o.Results.Legend = append(o.Results.Legend, key{name, name})
	}
	points, most := line(samples, now, func(s sample) float64 { return float64(s.line) })
	o.Line = newGraph(fmt.Sprintf("Attempts in line for a worker: %d now, %.0f at most in the last hour.", o.Stats.Input, most))
	o.Line.Line, o.Line.Most = points, number(max(most, 1))
	points, most = line(samples, now, func(s sample) float64 { return s.late.Seconds() })
	o.Lateness = newGraph(fmt.Sprintf("Longest wait of a model that is due: %s now, %s at most in the last hour.", o.Oldest, words.Roughly(time.Duration(most)*time.Second)))
	o.Lateness.Line, o.Lateness.Most = points, words.Roughly(time.Duration(max(most, 1))*time.Second)
}

func resultText(results []perMinute, count func(perMinute) int64) string {
	return fmt.Sprintf("%d succeeded, %d failed, %d timed out", count(results[0]), count(results[1]), count(results[2]))
}

// readProcesses reads the heartbeats of a queue by their roles. In a queue of several parts a process counts by its last one.
func readProcesses(ctx context.Context, queue *store.Queue) ([]process, error) {
	read, err := operate.ReadProcesses(ctx, queue)
	processes := make([]process, len(model.Roles))
	for i, role := range model.Roles {
		p, known := &processes[i], map[string]bool{}
		p.Name = string(role)
		members := slices.DeleteFunc(*read.Of(role), func(m operate.Process) bool {
			again := known[m.Name]
			known[m.Name] = true
			return again
		})
		slices.SortStableFunc(members, func(a, b operate.Process) int {
			return cmp.Or(cmp.Compare(a.AgeMS/time.Minute.Milliseconds(), b.AgeMS/time.Minute.Milliseconds()), cmp.Compare(a.Name, b.Name))
		})
		p.Unnamed = max(0, len(members)-maxMembers)
		for i, m := range members {
			text := m.Name
			if m.Lives {
				p.Alive++
			} else {
				text += " (silent for " + words.Roughly(time.Duration(m.AgeMS)*time.Millisecond) + ")"
			}
			if i < maxMembers {
				p.Members = append(p.Members, text)
			}
		}
	}
	return processes, err
}
