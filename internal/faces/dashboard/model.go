package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

var modelPage = page{path: "model", title: "Model", under: "models", file: "model", read: readModel, live: []string{"model-state", "model-why", "model-past"}}

// modelView is one model.
type modelView struct {
	UID       string
	Status    string // in words
	Worker    string // what it says, for the owner
	Progress  int
	Bad       bool
	Story     []string
	Next      []string
	Branches  bool // there is a picture of what comes next
	Past      []pastRow
	Version   string // changes with each transition, so that browsers load the pictures anew
	Rule      string
	Zone      string
	Policy    string
	InForce   string // the policy, as JSON
	Payload   string
	Labels    []label
	CanEnable bool
	Running   bool
	Holds     []holdRow // that pick the model
}

// heading takes the place of the title of the page.
func (m *modelView) heading() string { return m.UID }

func (m *modelView) zone() string { return m.Zone }

// pastRow is an attempt that has ended.
type pastRow struct {
	At, Ended, Attempt, Outcome, Wait, Took, Next, Why, Reason string
	Bad                                                        bool
}

// holdRow is a hold that keeps the model from starting.
type holdRow struct{ ID, Text string }

// uidOf is the uid that an address or a form names.
func (v *visit) uidOf() (string, error) {
	uid := v.get("uid")
	return uid, document.ValidateUID(uid)
}

func (v *visit) explanation(ctx context.Context) (*explain.Explanation, error) {
	uid, err := v.uidOf()
	if err != nil {
		return nil, err
	}
	return explain.Read(ctx, v.queue.Of(uid), uid)
}

func readModel(ctx context.Context, v *visit) (any, error) {
	e, err := v.explanation(ctx)
	if err != nil {
		return nil, err
	}
	r := e.Record
	view := &modelView{
		UID: r.UID, Status: e.StatusText(), Worker: r.UserFriendlyStatus, Progress: r.Progress, Bad: r.Disabled || r.Broken || !r.FailingSince.IsZero(),
		Story: e.Story(), Next: e.Next(), Branches: e.Forecast.Success.Possible(), Version: r.Rev(), Zone: explain.ZoneOf(&r.Model).String(),
		Rule: cmp.Or(r.Rule, r.Policy.Rule, "none: refreshed when it is saved or run"), Policy: cmp.Or(r.PolicyName, store.DefaultPolicyName),
		Payload: indented(r.Payload), CanEnable: r.Disabled, Running: r.Running(),
	}
	if text, err := json.Marshal(r.Policy); err == nil {
		view.InForce = indented(string(text))
	}
	for _, term := range model.LabelTerms(r.Labels) {
		view.Labels = append(view.Labels, label{term, v.link("models", "l", term)})
	}
	for _, attempt := range e.Attempts {
		view.Past = append(view.Past, rowOf(&attempt, explain.ZoneOf(&r.Model)))
	}
	view.Holds, err = v.holdsOn(ctx, e)
	return view, err
}

// holdsOn are the holds that pick a model and have not ended.
func (v *visit) holdsOn(ctx context.Context, e *explain.Explanation) (rows []holdRow, err error) {
	holds, problem, err := v.queue.Of(e.Record.UID).Fleet().Holds(ctx)
	if err := cmp.Or(err, problem); err != nil {
		return nil, err
	}
	for i := range holds {
		hold := &holds[i]
		if hold.Ended(e.Now) || !hold.Selector.Matches(&e.Record.Model, e.Status, e.Now) {
			continue
		}
		picks := hold.Selector.String()
		rows = append(rows, holdRow{hold.ID, fmt.Sprintf("%s, by %s: %s", cmp.Or(picks, "all models"), cmp.Or(hold.By, "somebody"), cmp.Or(hold.Reason, "no reason given"))})
	}
	return rows, nil
}

func rowOf(a *model.Attempt, zone *time.Location) pastRow {
	wait, took, told := a.Lengths()
	row := pastRow{
		At: model.FormatTime(a.EndedAt), Ended: clock(a.EndedAt, zone), Outcome: strings.ReplaceAll(string(a.Outcome), "_", " "), Wait: "–", Took: took.String(),
		Next: cmp.Or(clock(a.RefreshAt, zone), "–"), Why: a.Why, Reason: a.Reason, Attempt: fmt.Sprint(a.AttemptNo),
		Bad: a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout,
	}
	if told {
		row.Wait = wait.String()
	}
	if a.Final {
		row.Outcome += " (final)"
	}
	if a.Times > 1 {
		row.Outcome += fmt.Sprintf(" (%d in a row)", a.Times)
	}
	return row
}

// indented is a JSON document for people. What is none stays as it is.
func indented(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

// drawPast draws the attempts of a model that ended last.
func drawPast(ctx context.Context, v *visit, w io.Writer) error {
	uid, err := v.uidOf()
	if err != nil {
		return err
	}
	found, attempts, err := explain.ReadPast(ctx, v.queue.Of(uid), uid)
	if err != nil {
		return err
	}
	return chart.SVG(w, explain.Picture(found, attempts))
}

// drawNext draws what follows if the next attempt succeeds, fails or is lost.
func drawNext(ctx context.Context, v *visit, w io.Writer) error {
	e, err := v.explanation(ctx)
	if err != nil {
		return err
	}
	return chart.SVG(w, e.Branches()...)
}
