package dashboard

import (
	"context"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/alerts"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

var overviewPage = page{
	path: "", title: "Overview", nav: true, file: "overview", read: readOverview,
	live: []string{"overview-findings", "overview-fingerprints", "overview-processes", "overview-numbers", "overview-rates"},
}

type overview struct {
	Findings []link // some have no page
	Calm     string // stands for none
	Stats    report.Stats
	Models   int64 // the sum of those that run, are due, wait, are parked and are disabled

	Never, Fresh, Late, Stale int64
	Periods                   []link
	Unknown                   int // of the columns of a chart
	Graphs                    []graph

	Groups    []operate.Failures // largest first
	Unnamed   int                // how many more there are
	Processes []process
}

type process struct {
	Name    string
	Missing bool
	Alive   int64
}

func readOverview(ctx context.Context, req *request) (any, error) {
	queue, err := alerts.Read(ctx, req.queue)
	if err != nil {
		return nil, err
	}
	stats := queue.Stats
	o := &overview{
		Stats: stats, Calm: queue.Calm(), Models: stats.Sample().Values[report.MetricModels], Never: stats.Freshness[model.FreshnessNever],
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
		groups, err := req.operator.Failures(ctx, operate.FailuresRequest{By: operate.ByFingerprint})
		if err != nil {
			return nil, err
		}
		o.Groups = groups[:min(len(groups), 5)]
		o.Unnamed = len(groups) - len(o.Groups)
	}
	for _, role := range model.Roles {
		missing := slices.ContainsFunc(queue.Missing, func(missing alerts.Missing) bool { return missing.Role == role })
		o.Processes = append(o.Processes, process{string(role), missing, stats.Living[role]})
	}
	return o, o.draw(ctx, req)
}

// charts have their metrics from the lowest up.
var charts = []struct {
	name    string
	metrics []report.Metric
	legend  []key
}{
	{"Starts", []report.Metric{report.MetricStarts}, []key{{"start", "started"}}},
	{"Results", []report.Metric{report.MetricSuccesses, report.MetricFailures, report.MetricTimeouts}, []key{{"success", "succeeded"}, {"failure", "failed"}, {"timeout", "timed out"}}},
	{"In line for a worker", []report.Metric{report.MetricInput}, []key{{"start", "in line"}}},
	{"Longest wait of a due model", []report.Metric{report.MetricWait}, []key{{"start", "of waiting"}}},
	{"Failing models", []report.Metric{report.MetricFailing}, []key{{"failure", "failing"}}},
	{"Fresh, late and stale models", []report.Metric{report.MetricFresh, report.MetricNever, report.MetricLate, report.MetricStale}, []key{{"success", "fresh"}, {"other", "never yet"}, {"timeout", "late"}, {"failure", "stale"}}},
}

// draw draws the charts of the chosen period.
func (o *overview) draw(ctx context.Context, req *request) error {
	p, err := findPeriod(req.get("period"))
	if err != nil {
		return err
	}
	for _, other := range periods {
		o.Periods = append(o.Periods, link{other.text, req.Link("", "period", other.name), other.name == p.name})
	}
	now := o.Stats.Sample()
	samples, err := report.OfQueue(req.queue).Samples(ctx)
	if err != nil {
		return err
	}
	slots := p.fill(append(samples, now), now.At)
	for i := range slots {
		if slots[i].values[report.MetricStarts] < 0 {
			o.Unknown++
		}
	}
	for _, c := range charts {
		g, values, when := graph{Name: c.name, Legend: c.legend}, make([]string, len(c.metrics)), " now."
		for i, m := range c.metrics {
			value := now.Values[m]
			if m.Counts() {
				value, when = total(slots, m), " in the last "+strings.ToLower(p.text)+"."
			}
			values[i] = valueText(value, m == report.MetricWait) + " " + c.legend[i].Text
		}
		g.About = strings.Join(values, ", ") + when
		g.draw(slots, p.step, req.zone, 0, c.metrics...)
		o.Graphs = append(o.Graphs, g)
	}
	return nil
}
