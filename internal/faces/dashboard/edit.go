package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/faces/playground"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

var (
	policyEditPage = page{path: "policy/edit", title: "New policy", under: "policies", file: "edit", read: readPolicyEdit, form: true, drawn: true, edits: true}
	modelEditPage  = page{path: "model/edit", title: "New model", under: "models", file: "edit", read: readModelEdit, form: true, drawn: true, edits: true}
)

// edit is a form in which a policy or a model is edited, and what it would do to save what was typed.
type edit struct {
	*playground.Form

	Title, Path, Save string // Save is the path of the action

	Back        string // the address of the page that leads here
	Fields      []*editField
	Was         string // what is stored now, for the form
	Changed     bool   // that is not what was there when somebody began
	Checked     bool   // it can be saved
	Problem     string // that belongs to no field
	Differences []definitions.Difference
	Impact      []string

	zone *time.Location
}

func (e *edit) heading() (title string, zone *time.Location) { return e.Title, e.zone }

type editField struct {
	Name, Label, Hint, Text string
	Rows                    int    // 0: one line; -1: it is not shown
	Wrong                   string // why it was refused
}

// newEdit is a form for what is stored under a name, or for a new one, with what was typed.
func (req *request) newEdit(kind, list, key, name string, fields ...*editField) *edit {
	e := &edit{Title: "New " + kind, Path: kind + "/edit", Save: kind + "/save", Back: req.Link(list), Fields: fields, zone: req.zone}
	if name != "" {
		e.Title, e.Back = "Edit "+name, req.Link(kind, key, name)
	}
	answers := cmp.Or(req.get("answers"), "succeeds")
	e.Form = playground.ReadForm(func(field string) string { return map[string]string{"answers": answers}[field] })
	for _, field := range fields {
		if req.typed() {
			field.Text = strings.ReplaceAll(req.get(field.Name), "\r\n", "\n")
		}
	}
	return e
}

// typed reports whether somebody has typed into a form.
func (req *request) typed() bool { return req.query.Has("was") }

// compare says whether what is stored has changed since somebody began.
func (e *edit) compare(req *request, stored string) {
	e.Was, e.Changed = stored, req.typed() && req.get("was") != stored
}

// refuse puts a reason beside its field.
func (e *edit) refuse(err error) {
	name := "text"
	if refused, is := errors.AsType[*document.Error](err); is {
		name = refused.Field[:len(refused.Field)-len(strings.TrimLeft(refused.Field, "abcdefghijklmnopqrstuvwxyz_"))]
	}
	at := slices.IndexFunc(e.Fields, func(f *editField) bool { return f.Rows >= 0 && (f.Name == name || f.Name == "text") })
	if at < 0 {
		e.Problem = inWords(err)
		return
	}
	e.Fields[at].Wrong = inWords(err)
}

func readPolicyEdit(ctx context.Context, req *request) (any, error) {
	name := req.get("name")
	text := &editField{Name: "text", Label: "A policy, in English, YAML or JSON", Rows: 20}
	e := req.newEdit("policy", "policies", "name", name, text, &editField{Name: "name", Rows: -1, Text: name})
	stored, _, err := req.queue.Parts[0].Report().PolicyText(ctx, name)
	if err != nil {
		return nil, err
	}
	if e.compare(req, stored); name != "" && !req.typed() {
		p, err := readStored(ctx, req.queue.Parts[0], name)
		text.Text = yamlOf(p)
		return e, err
	}
	if !req.typed() {
		return e, nil
	}
	would, err := operate.PutEdited(ctx, req.operator, operate.PolicyEdit{Name: name, Text: text.Text}, true)
	if refusal, is := errors.AsType[operate.Refusal](err); is {
		e.refuse(refusal)
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.Differences, e.Checked, e.Text, e.Impact = would.Differences, true, text.Text, e.impact(would.Plan)
	return e, e.playWeek(ctx, req, e.Play)
}

// playWeek shows the next week under what was typed.
func (e *edit) playWeek(ctx context.Context, req *request, run func(playground.Setting) error) error {
	return play(ctx, req, func(in playground.Setting) error {
		in.Week = true
		return run(in)
	})
}

// impact tells what a policy would change for the models that use it.
func (e *edit) impact(i *operate.Impact) (lines []string) {
	for _, line := range []struct {
		count     int
		one, many string
	}{
		{i.Models, "model uses it", "models use it"}, {i.Changed, "model would decide otherwise", "models would decide otherwise"},
		{i.Replanned, "next refresh moves", "next refreshes move"}, {i.DueAtOnce, "model is due and starts under it at once", "models are due and start under it at once"},
		{i.Running, "model runs and decides when its attempt ends", "models run and decide when their attempts end"},
		{i.Disabled, "model is disabled and decides nothing", "models are disabled and decide nothing"},
	} {
		if line.count > 0 || len(lines) == 0 {
			lines = append(lines, words.Count(line.count, line.one, line.many)+".")
		}
	}
	for _, text := range i.FirstStarts[:min(1, len(i.FirstStarts))] {
		at, _ := time.Parse(time.RFC3339, text) // as it was written
		lines = append(lines, "The first of them moves to "+clock(at, e.zone)+".")
	}
	return lines
}

// yamlOf is a policy as somebody would write it.
func yamlOf(p policy.Policy) string {
	var text bytes.Buffer
	_ = definitions.WriteYAML(&text, p) // it was stored
	return text.String()
}

func savePolicy(ctx context.Context, req *request) (outcome, error) {
	saved, err := operate.PutEdited(ctx, req.operator, operate.PolicyEdit{Name: req.get("name"), Text: req.get("text"), Was: req.get("was")}, false)
	return outcome{text: "The policy " + saved.Name + " is saved: " + saved.Result + ".", next: req.Link("policy", "name", saved.Name)}, err
}

func removePolicy(ctx context.Context, req *request) (outcome, error) {
	name := req.get("name")
	_, err := req.operator.RemovePolicy(ctx, name, false)
	done := outcome{text: "The policy " + name + " is removed.", next: req.Link("policies")}
	if err != nil {
		done.next = req.Link("policy", "name", name)
	}
	return done, err
}

func readModelEdit(ctx context.Context, req *request) (any, error) {
	uid, stored := req.get("uid"), req.get("uid")
	if req.get("new") != "" {
		stored = ""
	}
	e := req.newEdit("model", "models", "uid", stored,
		&editField{Name: "uid", Label: "uid", Text: uid, Rows: -1}, &editField{Name: "rrule", Label: "Rule", Rows: 2, Hint: "in English, cron or RRULE; empty: that of its policy"},
		&editField{Name: "timezone", Label: "Zone", Hint: "such as Europe/Berlin"}, &editField{Name: "dtstart", Label: "From", Hint: "such as 2026-01-31T06:00:00; empty: as it is, or today"},
		&editField{Name: "policy", Label: "Policy", Rows: 2, Hint: "the name of a stored one, or one of its own; empty: default"},
		&editField{Name: "labels", Label: "Labels", Hint: "such as tenant=t1, team=shop"}, &editField{Name: "payload", Label: "Payload, in JSON", Rows: 12},
	)
	if stored == "" {
		e.Fields[0].Rows, e.Was = 0, operate.DefinitionDigest(&store.Record{})
		e.Fields = append(e.Fields, &editField{Name: "new", Text: "yes", Rows: -1})
	} else {
		found, err := explain.ReadModel(ctx, req.queue.Of(stored), stored)
		if err != nil {
			return nil, err
		}
		e.compare(req, operate.DefinitionDigest(found.Record))
		if !req.typed() {
			e.fill(&found.Record.Model)
		}
	}
	if req.typed() {
		return e, e.checkModel(ctx, req)
	}
	return e, nil
}

func (e *edit) fill(m *model.Model) {
	own := m.PolicyName
	if policy.IsInline(own) {
		own = yamlOf(m.Policy)
		e.Fields[4].Rows = 12
	}
	for i, text := range []string{m.UID, m.Rule, m.Timezone, m.Dtstart, own, strings.Join(model.LabelTerms(m.Labels), ", "), indented(m.Payload)} {
		e.Fields[i].Text = text
	}
}

// checkModel tells what it would do to save the model.
func (e *edit) checkModel(ctx context.Context, req *request) error {
	doc, put, err := req.readPut()
	if err != nil {
		e.refuse(err)
		return nil
	}
	before, err := operate.ReviewModel(ctx, req.queue, put)
	if err != nil {
		return err
	}
	if put.Refused != nil {
		e.refuse(put.Refused)
		return nil
	}
	if e.Fields[0].Rows == 0 && before.Exists {
		e.refuse(document.Refuse("uid", "one that is not stored yet", document.Found(put.Command.UID)))
		return nil
	}
	e.Checked, e.Impact = true, []string{"Nothing changes."}
	if put.Saved != nil {
		e.Differences = definitions.CompareModels(&before.Model, put.Saved)
		e.Impact = []string{"The next refresh is at " + cmp.Or(clock(put.Next, e.zone), "no time") + ". Without the change it is at " + cmp.Or(clock(before.RefreshAt, e.zone), "no time") + "."}
	}
	return e.playWeek(ctx, req, func(in playground.Setting) error { return in.PlayModel(doc, e.Form) })
}

// readPut reads the form of a model.
func (req *request) readPut() (doc definitions.Document, put *operate.Request, err error) {
	fields := map[string]any{}
	inPolicy := func(string) string { return "policy" }
	doc = definitions.Document{Value: fields, Position: func(field string) string {
		if inside, is := strings.CutPrefix(field, "policy."); is {
			return inPolicy(inside)
		}
		return "definition"
	}}
	for _, name := range []string{"uid", "rrule", "timezone", "dtstart"} {
		if text := strings.TrimSpace(req.get(name)); text != "" {
			fields[name] = text
		}
	}
	labels := map[string]any{}
	for term := range strings.FieldsFuncSeq(req.get("labels"), func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\r' }) {
		name, value, is := strings.Cut(term, "=")
		if !is {
			return doc, nil, document.Refuse("labels", "labels such as tenant=t1, team=shop", document.Found(term))
		}
		labels[name] = value
	}
	fields["labels"] = labels
	if text := req.get("payload"); strings.TrimSpace(text) != "" {
		payload, err := definitions.ReadOne("payload.json", strings.NewReader(text))
		if err != nil {
			return doc, nil, document.Refuse("payload", "a JSON object", err.Error())
		}
		fields["payload"] = payload.Value
	}
	switch text := strings.TrimSpace(req.get("policy")); {
	case document.IsUID(text):
		fields["policy"] = text
	case text != "":
		own, err := definitions.ReadPolicies("policy", strings.NewReader(text))
		if err == nil && len(own) != 1 {
			err = fmt.Errorf("expected one policy, found %d", len(own))
		}
		if err != nil {
			return doc, nil, document.Refuse("policy", "the name of a policy, or a policy", err.Error())
		}
		fields["policy"], inPolicy = own[0].Value, own[0].Position
	}
	put = &operate.Request{Command: model.Command{Type: model.CommandPut, By: req.operator.By}, Position: doc.Position}
	put.Command.Definition, err = model.ParseDefinition(fields)
	put.Command.UID = put.Command.Definition.UID
	if err != nil {
		err = doc.At(err)
	}
	return doc, put, err
}

func saveModel(ctx context.Context, req *request) (outcome, error) {
	_, put, err := req.readPut()
	if err != nil {
		return outcome{}, err
	}
	put.Was = cmp.Or(req.get("was"), "nothing")
	if err := operate.Execute(ctx, req.queue, []*operate.Request{put}); err != nil {
		return outcome{}, err
	}
	return outcome{text: put.Command.UID + " is saved: " + put.Result + ".", next: req.Link("model", "uid", put.Command.UID)}, put.Refused
}
