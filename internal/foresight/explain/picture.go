package explain

import (
	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
)

// Picture draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func Picture(s Shown, attempts []model.Attempt) chart.Chart {
	drawing := chart.Chart{Title: s.Record.UID, Location: ZoneOf(&s.Record.Model), Events: chart.FromHistory(attempts)}
	if count := len(drawing.Events); count > 0 {
		drawing.End = drawing.Events[count-1].At
	}
	switch r := s.Record; {
	case r.Running():
		event := chart.Begin(r.StartedAt, r.AttemptNo)
		event.RefreshAt, event.DeadlineAt, event.Why = r.RefreshAt, r.DeadlineAt, r.Why
		drawing.Events = append(drawing.Events, event)
		drawing.End = s.Now
	case r.Disabled && r.FinalFailureAt.After(drawing.End):
		// The give-up window ended while the model waited.
		drawing.Events = append(drawing.Events, chart.Event{At: r.FinalFailureAt, Kind: chart.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
		drawing.End = r.FinalFailureAt
	}
	if len(drawing.Events) > 0 {
		drawing.Start = drawing.Events[0].At
		drawing.Planned = simulate.Planned(&s.Record.Model, drawing.Start, drawing.End)
	}
	return drawing
}

// Tree draws what follows if the next attempt, or the one that runs, succeeds, fails or is lost.
func (s *Explanation) Tree() chart.Tree {
	f := &s.Forecast
	tree := chart.Tree{Title: s.m.UID, Location: s.zone, Now: s.Now, Start: f.StartAt, Begins: "starts at " + s.clock(f.StartAt)}
	switch {
	case f.StartAt.IsZero():
		tree.Start, tree.Begins = s.m.StartedAt, "runs since "+s.clock(s.m.StartedAt)
	case s.Gate != "":
		tree.Begins = "starts when " + string(s.Gate) + " lets it go"
	}
	for _, way := range []struct {
		kind   chart.Kind
		ends   string
		branch model.Branch
	}{
		{chart.Success, "succeeds", f.Success}, {chart.Failure, "fails", f.Failure}, {chart.Timeout, "no answer by " + s.clock(f.TimedOut.At), f.TimedOut},
	} {
		if b := way.branch; b.Possible() && b.At.Sub(s.Now) < forever {
			tree.Branches = append(tree.Branches, chart.Branch{Kind: way.kind, At: b.At, Ends: way.ends, Next: b.RefreshAt, Disabled: b.Disabled, Follows: s.follows(b)})
		}
	}
	return tree
}

func (s *Explanation) follows(b model.Branch) string {
	switch {
	case b.Disabled:
		return "gives up, until somebody acts"
	case b.RefreshAt.IsZero():
		return "nothing more is planned"
	case b.AttemptNo > 0:
		return "tries again at " + s.clock(b.RefreshAt)
	default:
		return "next refresh at " + s.clock(b.RefreshAt)
	}
}
