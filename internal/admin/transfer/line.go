package transfer

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// The kinds of lines. A reader refuses those that it does not know.
const (
	kindCalendar = "calendar"
	kindLimit    = "limit"
	kindPolicy   = "policy"
	kindModel    = "model"
)

var kinds = []string{kindModel, kindPolicy, kindCalendar, kindLimit}

type policyLine struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Policy any    `json:"policy"` // whole, so that nothing completes it
}

// modelLine is a model: its definition as `model put` takes it, and with it, or not, all that the queue knows.
type modelLine struct {
	Kind string `json:"kind"`
	definitions.Definition
	// LeftBehind names for people the parts of the state that cannot be moved.
	LeftBehind string            `json:"left_behind,omitempty"`
	State      any               `json:"state,omitempty"`   // the other fields of its hash; nil: not exported
	History    []json.RawMessage `json:"history,omitempty"` // newest first, as it is stored
}

// newModelLine is the line of a model. own are the policies that belong to one model each, by their names.
func newModelLine(one *store.Export, own map[string]policy.Policy, state bool) modelLine {
	m := &one.Record.Model
	l := modelLine{Kind: kindModel, Definition: definitions.NewDefinition(m)}
	if p, found := own[m.PolicyName]; found {
		l.Policy = p.Explicit()
	}
	if !state {
		return l
	}
	l.LeftBehind, l.State = m.LeftBehind(), store.StateFields(m)
	l.History = redis.Map(one.Past, func(a model.Attempt) json.RawMessage { return json.RawMessage(a.Entry()) })
	return l
}

type entry struct {
	definitions.Document

	kind     string
	calendar schedule.Calendar // of a calendar
	limit    model.Limit       // of a limit
	policy   policy.Policy     // of a policy
	moved    model.Moved       // of a model
	hasState bool
}

func readEntry(doc definitions.Document) (e entry, err error) {
	e.Document = doc
	if doc.Err != nil {
		return e, doc.Err
	}
	fields, is := doc.Value.(map[string]any)
	if !is {
		return e, document.Refuse("", "an object", document.Found(doc.Value))
	}
	kind := document.Reader{Fields: fields}
	if e.kind = kind.OneOf("kind", "", kinds...); kind.Err() != nil {
		return e, kind.Err()
	}
	switch e.kind {
	case kindCalendar:
		err = e.readCalendar(fields)
	case kindLimit:
		err = e.readLimit(fields)
	case kindPolicy:
		err = e.readPolicy(fields)
	case kindModel:
		err = e.readModel(fields)
	default:
		err = document.Refuse("kind", strings.Join(kinds, " or "), "nothing")
	}
	return e, err
}

func (e *entry) readCalendar(fields map[string]any) (err error) {
	doc := document.Read(fields, "kind", "calendar")
	e.calendar, err = schedule.ParseCalendar(doc.Fields["calendar"])
	doc.Fail(document.Place(err, "calendar"))
	return doc.Err()
}

func (e *entry) readPolicy(fields map[string]any) (err error) {
	doc := document.Read(fields, "kind", "name", "policy")
	name := doc.Text("name")
	doc.Fail(policy.ValidateName(name))
	e.policy, err = policy.ParseStored(doc.Fields["policy"])
	doc.Fail(document.Place(err, "policy"))
	e.policy.Name = name
	doc.Fail(document.Place(e.policy.CheckSize(), "policy"))
	return doc.Err()
}

func (e *entry) readModel(fields map[string]any) (err error) {
	definition := maps.Clone(fields)
	for _, name := range []string{"kind", "state", "history", "left_behind"} {
		delete(definition, name)
	}
	if e.moved.Definition, err = model.ParseDefinition(definition); err != nil {
		return err
	}
	_, e.hasState = fields["state"]
	switch {
	case !e.hasState && fields["history"] != nil:
		return document.Refuse("history", "a state beside it", "none")
	case !e.hasState:
		return nil
	case fields["refresh"] != nil:
		return document.Refuse("refresh", "nothing, as the state says when the model is refreshed", document.Found(fields["refresh"]))
	}
	if e.moved.State, err = store.ReadState(fields["state"]); err != nil {
		return document.Place(err, "state")
	}
	attempts, is := fields["history"].([]any)
	if !is && fields["history"] != nil {
		return document.Refuse("history", "a list of attempts", document.Found(fields["history"]))
	}
	for i, value := range attempts {
		text, err := json.Marshal(value)
		attempt := model.Attempt{}
		if err == nil {
			attempt, err = model.ParseAttempt(string(text))
		}
		if err != nil {
			return document.Refuse(fmt.Sprintf("history[%d]", i), "an attempt, as the history of a model has it", document.Found(value))
		}
		e.moved.Past = append(e.moved.Past, attempt.Entry())
	}
	return nil
}
