package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/attention"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

var overviewPage = page{
	path: "", title: "Overview", nav: true, file: "overview", read: readOverview,
	live: []string{"overview-findings", "overview-numbers", "overview-rates", "overview-causes", "overview-parties"},
}

// overview is a queue at a glance.
type overview struct {
	At       string
	Clock    string // the same in UTC
	Findings []finding
	Stats    store.Stats
	Oldest   string // how long the model waits that is due for longest

	Never, Fresh, Late, Stale       int64
	Starts, Results, Line, Lateness graph

	Causes  []store.FailureGroup // that of most models first
	Unnamed int                  // how many more there are
	Parties []party
}

// finding is what is stopped or wrong, with the page that shows more; "": this one does.
type finding struct{ Text, Address string }

// party are those of one kind that serve the queue.
type party struct {
	Name    string
	Gone    bool // it is missed
	Living  int
	Members []string
	Unnamed int
}

const (
	mostCauses  = 5
	mostMembers = 5
)

func readOverview(ctx context.Context, v *visit) (any, error) {
	queue, err := attention.Read(ctx, v.queue)
	if err != nil {
		return nil, err
	}
	stats := queue.Stats
	o := &overview{
		At: model.FormatTime(stats.At.Truncate(time.Second)), Clock: clock(stats.At, time.UTC), Stats: stats, Oldest: words.Roughly(waits(&queue.Gauges)), Never: stats.Freshness[model.FreshnessNever],
		Fresh: stats.Freshness[model.Fresh], Late: stats.Freshness[model.FreshnessLate], Stale: stats.Freshness[model.FreshnessStale],
	}
	for _, one := range queue.Findings() {
		told := finding{Text: one.Text}
		if one.Page != "" {
			told.Address = v.link(one.Page, one.Fields...)
		}
		o.Findings = append(o.Findings, told)
	}
	if stats.Failing > 0 {
		causes, err := v.queue.Report().SumFailureGroups(func(part *store.Store) ([]store.FailureGroup, error) { return part.Report().FailureGroups(ctx) })
		if err != nil {
			return nil, err
		}
		o.Causes = causes[:min(len(causes), mostCauses)]
		o.Unnamed = len(causes) - len(o.Causes)
	}
	if o.Parties, err = readParties(ctx, v.queue); err != nil {
		return nil, err
	}
	for i := range o.Parties {
		o.Parties[i].Gone = slices.ContainsFunc(queue.Gone, func(gone attention.Gone) bool { return string(gone.Role) == o.Parties[i].Name })
	}
	o.draw(v.sampler.all(), stats.At)
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

// readParties reads who gives signs of life.
func readParties(ctx context.Context, queue *store.Queue) ([]party, error) {
	type sign struct {
		name string
		age  time.Duration
	}
	signs := map[model.Role]map[string]time.Duration{}
	err := queue.Each(func(part *store.Store) error {
		heartbeats, now, err := part.Report().Heartbeats(ctx)
		for _, one := range heartbeats {
			if signs[one.Of] == nil {
				signs[one.Of] = map[string]time.Duration{}
			}
			age, known := signs[one.Of][one.Owner]
			if newer := max(0, now.Sub(one.At)); !known || newer < age {
				signs[one.Of][one.Owner] = newer
			}
		}
		return err
	})
	parties := make([]party, len(model.Roles))
	for i, of := range model.Roles {
		var members []sign
		for name, age := range signs[of] {
			members = append(members, sign{name, age})
			if age <= model.LongestSilence {
				parties[i].Living++
			}
		}
		slices.SortFunc(members, func(a, b sign) int {
			return cmp.Or(cmp.Compare(a.age/time.Minute, b.age/time.Minute), cmp.Compare(a.name, b.name))
		})
		parties[i].Name = string(of)
		for _, one := range members[:min(len(members), mostMembers)] {
			text := one.name
			if one.age > model.LongestSilence {
				text += " (silent for " + words.Roughly(one.age) + ")"
			}
			parties[i].Members = append(parties[i].Members, text)
		}
		parties[i].Unnamed = len(members) - len(parties[i].Members)
	}
	return parties, err
}
