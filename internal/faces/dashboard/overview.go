package dashboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/attention"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
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

	Never, Fresh, Late, Stale int64
	Periods                   []link
	Known                     string // of how much of the period anything is known; "": of all
	Graphs                    []graph
	Values                    table

	Groups    []operate.Failures // largest first
	Unnamed   int                // how many more there are
	Processes []process
}

// process are the daemons and workers of one role.
type process struct {
	Name    string
	Missing bool
	Alive   int
}

func readOverview(ctx context.Context, req *request) (any, error) {
	queue, err := attention.Read(ctx, req.queue)
	if err != nil {
		return nil, err
	}
	stats := queue.Stats
	o := &overview{
		At: model.FormatTime(stats.At.Truncate(time.Second)), Clock: clock(stats.At, req.zone), Stats: stats, Oldest: valueText(stats.Sample().Values[store.MetricWait], true), Never: stats.Freshness[model.FreshnessNever],
		Fresh: stats.Freshness[model.Fresh], Late: stats.Freshness[model.FreshnessLate], Stale: stats.Freshness[model.FreshnessStale],
	}
	for _, one := range queue.Findings() {
		found := link{Text: one.Text + " " + one.Do}
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
	return o, o.draw(ctx, req)
}

// charts are those of the overview, with their metrics from the lowest up.
var charts = []struct {
	name    string
	metrics []store.Metric
	legend  []key
}{
	{"Starts", []store.Metric{store.MetricStarts}, []key{{"start", "started"}}},
	{"Results", []store.Metric{store.MetricSuccesses, store.MetricFailures, store.MetricTimeouts}, []key{{"success", "succeeded"}, {"failure", "failed"}, {"timeout", "timed out"}}},
	{"In line for a worker", []store.Metric{store.MetricInput}, []key{{"start", "in line"}}},
	{"Longest wait of a due model", []store.Metric{store.MetricWait}, []key{{"start", "longest wait"}}},
	{"Failing models", []store.Metric{store.MetricFailing}, []key{{"failure", "failing"}}},
	{"Fresh, late and stale models", []store.Metric{store.MetricFresh, store.MetricNever, store.MetricLate, store.MetricStale}, []key{{"success", "fresh"}, {"other", "never yet"}, {"timeout", "late"}, {"failure", "stale"}}},
}

// draw makes the charts of the period that is asked for.
func (o *overview) draw(ctx context.Context, req *request) error {
	p, err := findPeriod(req.get("period"))
	if err != nil {
		return err
	}
	for _, other := range periods {
		o.Periods = append(o.Periods, link{other.text, req.Link("", "period", other.name), other.name == p.name})
	}
	now := o.Stats.Sample()
	samples, err := p.samples(ctx, req, now)
	if err != nil {
		return err
	}
	slots := p.fill(samples, o.Stats.At)
	o.Known = p.known(slots)
	for _, c := range charts {
		g, spans, told := graph{Name: c.name, Legend: c.legend}, make([]span, len(slots)), []string{}
		waits := c.metrics[0] == store.MetricWait
		for i := range slots {
			spans[i].from = slots[i].from
			for _, m := range c.metrics {
				spans[i].values = append(spans[i].values, slots[i].values[m])
			}
		}
		for i, m := range c.metrics {
			sum, most := total(slots, m)
			switch held, text := now.Values[m], c.legend[i].Text; {
			case m.Counts():
				told = append(told, numberText(sum)+" "+text)
			case len(c.metrics) > 1:
				told = append(told, numberText(held)+" "+text)
			default:
				told = append(told, "Now "+valueText(held, waits)+", at most "+valueText(most, waits))
			}
		}
		g.About = strings.Join(told, ", ") + " in the last " + strings.ToLower(p.text) + "."
		if len(told) > 1 && !c.metrics[0].Counts() {
			g.About = strings.Join(told, ", ") + " now."
		}
		g.draw(spans, p.step, req.zone, waits, 0)
		o.Graphs = append(o.Graphs, g)
		o.Values.add(&g)
	}
	return nil
}

// readProcesses counts the processes of each role that send heartbeats.
func readProcesses(ctx context.Context, queue *store.Queue) ([]process, error) {
	read, err := operate.ReadProcesses(ctx, queue)
	processes := make([]process, len(model.Roles))
	for i, role := range model.Roles {
		processes[i].Name = string(role)
		for _, p := range latest(*read.Of(role)) {
			if p.Lives {
				processes[i].Alive++
			}
		}
	}
	return processes, err
}
