package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var modelPage = page{path: "model", title: "Model", under: "models", file: "model", read: readModel, live: []string{"model-state", "model-do", "model-next", "model-past"}}

type modelView struct {
	*explain.Explanation
	*store.Record

	Past  []pastRow
	zone  *time.Location // the zone of the times on the page
	Holds []model.Hold   // that pick the model and have not ended
}

func (m *modelView) heading() (title string, zone *time.Location) { return m.UID, m.zone }

func (m *modelView) Zone() string { return explain.ZoneOf(&m.Model).String() }

// ByHand: somebody has disabled it, and a run is refused.
func (m *modelView) ByHand() bool { return m.DisabledBy == model.StoppedByHand }

// Sentences are the policy in English.
func (m *modelView) Sentences() []string {
	text := strings.TrimPrefix(definitions.EnglishBeside(m.Policy, policy.Default()), "- ")
	return strings.Split(strings.TrimSpace(text), "\n- ")
}

// InForce is the policy, as JSON.
func (m *modelView) InForce() string {
	text, _ := json.Marshal(m.Policy) // which always marshals
	return indented(string(text))
}

type pastRow struct {
	*model.Attempt

	Ended, Wait, Length string // how it ended; lengths of time
	Failed              bool
}

func readExplanation(ctx context.Context, req *request) (*explain.Explanation, error) {
	uid, err := req.uid()
	if err != nil {
		return nil, err
	}
	e, err := explain.Read(ctx, req.queue.Of(uid), uid)
	if err == nil {
		e.In(req.zoneOf(&e.Record.Model), hint.Dashboard)
	}
	return e, err
}

func readModel(ctx context.Context, req *request) (any, error) {
	e, err := readExplanation(ctx, req)
	if err != nil {
		return nil, err
	}
	view := &modelView{Explanation: e, Record: e.Record, zone: req.zoneOf(&e.Record.Model)}
	view.Past = redis.Map(e.Attempts, func(a model.Attempt) pastRow { return rowOf(&a) })
	holds, problem, err := flow.Of(req.queue.Of(e.Record.UID)).Holds(ctx)
	view.Holds = slices.DeleteFunc(holds, func(h model.Hold) bool {
		return h.Ended(e.Now) || !h.Selector.Matches(&e.Record.Model, e.Status)
	})
	return view, cmp.Or(err, problem)
}

func rowOf(a *model.Attempt) pastRow {
	wait, took, known := a.Lengths()
	row := pastRow{a, strings.ReplaceAll(string(a.Outcome), "_", " "), "–", took.String(), a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout}
	if known {
		row.Wait = wait.String()
	}
	if a.Final {
		row.Ended += " (final)"
	}
	if a.Times > 1 {
		row.Ended += fmt.Sprintf(" (%d in a row)", a.Times)
	}
	return row
}

// indented formats JSON for people. Other text stays as it is.
func indented(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

func drawPast(ctx context.Context, req *request, w io.Writer) error {
	uid, err := req.uid()
	if err != nil {
		return err
	}
	found, attempts, err := explain.ReadPast(ctx, req.queue.Of(uid), uid)
	if err != nil {
		return err
	}
	drawing := explain.Picture(found, attempts)
	drawing.Location = req.zoneOf(&found.Record.Model)
	return chart.SVG(w, drawing)
}

// drawNext draws the branches of the next attempt.
func drawNext(ctx context.Context, req *request, w io.Writer) error {
	e, err := readExplanation(ctx, req)
	if err != nil {
		return err
	}
	return e.Tree().SVG(w)
}

func writeLog(ctx context.Context, req *request, w io.Writer) error {
	uid, err := req.uid()
	if err != nil {
		return err
	}
	log, err := report.Of(req.queue.Of(uid)).Log(ctx, req.get("attempt"))
	switch {
	case err != nil:
		return err
	case log == nil || log.UID != uid:
		_, err = io.WriteString(w, "The log is not kept any more.")
	default:
		_, err = io.WriteString(w, log.Text)
	}
	return err
}

// picture is an SVG or a text at an address of its own.
type picture struct {
	path, kind string // below the base of the queue; of its content
	draw       func(ctx context.Context, req *request, w io.Writer) error
}

var pictures = []picture{
	{"model/past.svg", "image/svg+xml", drawPast}, {"model/next.svg", "image/svg+xml", drawNext},
	{"model/log.txt", "text/plain; charset=utf-8", writeLog},
}

// policyOfPicture lets a picture use only its own style sheet.
const policyOfPicture = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"

func (d *Dashboard) draw(w http.ResponseWriter, r *http.Request, req *request, picture *picture) {
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	var text bytes.Buffer
	if err := picture.draw(ctx, req, &text); err != nil {
		http.Error(w, inWords(err), statusOf(err))
		return
	}
	w.Header().Set("Content-Security-Policy", policyOfPicture)
	w.Header().Set("Content-Type", picture.kind)
	_, _ = w.Write(text.Bytes()) // the browser has gone
}

// outcomes follow the uid in a flash.
var outcomes = map[model.CommandType]string{
	model.CommandRun: " was asked for.", model.CommandEnable: " is enabled.", model.CommandAccept: " counts as refreshed.", model.CommandReject: " counts as failed.", model.CommandDisable: " is disabled until somebody enables it.",
}

// change returns the action that carries out a command about one model.
func change(kind model.CommandType) func(context.Context, *request) (outcome, error) {
	return func(ctx context.Context, req *request) (outcome, error) {
		uid, err := req.uid()
		if err != nil {
			return outcome{}, err
		}
		request := &operate.Request{Command: model.Command{Type: kind, UID: uid, By: req.operator.By, Force: req.get("force") != "", Reason: req.get("reason")}}
		if err := operate.Execute(ctx, req.queue, []*operate.Request{request}); err != nil {
			return outcome{}, err
		}
		done := outcome{next: req.Link("model", "uid", uid)}
		if errors.Is(request.Refused, explain.ErrUnknownModel) {
			done.next = req.Link("models")
		}
		if request.Refused != nil {
			return done, fmt.Errorf("%s: %w", uid, request.Refused)
		}
		done.text = uid + outcomes[kind]
		if request.Result == operate.ResultUnchanged {
			done.text = uid + ": nothing had to be changed."
		}
		return done, nil
	}
}
