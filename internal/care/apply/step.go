package apply

import (
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Action is what a step does.
type Action string

// The actions. A policy is never deleted.
const (
	Create Action = "create"
	Change Action = "change"
	Delete Action = "delete"
)

// Step is one thing that a plan does.
type Step struct {
	Action Action
	Policy bool   // it is about a policy; otherwise about a model
	Name   string // of the policy, or the uid
	// Changes are the fields that become others, of Change alone.
	Changes []definitions.Difference
	// StartsAtOnce: the model is not due, and will be as soon as the step is carried out.
	StartsAtOnce bool
	RefreshAt    time.Time // of a model, what follows; zero: none
	Err          error     // why it was not carried out; nil: it was, or nobody has tried

	position   func(field string) string // nil: it stands in no document
	policy     policy.Policy
	definition model.Definition
	rev        string // as the plan has read it; empty: there was no such model
	applied    bool
}

// Applied reports whether the step was carried out.
func (s *Step) Applied() bool { return s.applied }

// Problem is why the step was not carried out, with the position of its document.
func (s *Step) Problem() string { return problem(s.position, s.Name, s.Err) }

func problem(position func(field string) string, name string, err error) string {
	if position == nil {
		return name + ": " + err.Error()
	}
	return definitions.Document{Position: position}.At(err).Error()
}

// changesOf lists the fields in which a definition differs from what is stored, field by field also in a payload and in a policy that a model
// has alone.
func changesOf(before *model.Model, after *model.Model) (changes []definitions.Difference) {
	differ := func(field string, was, is any) {
		if definitions.Text(was) != definitions.Text(is) {
			changes = append(changes, definitions.Difference{Field: field, Old: was, New: is})
		}
	}
	differ("rrule", text(before.Rule), text(after.Rule))
	differ("timezone", text(before.Timezone), text(after.Timezone))
	differ("dtstart", text(before.Dtstart), text(after.Dtstart))
	if policy.IsInline(before.PolicyName) && policy.IsInline(after.PolicyName) {
		for _, d := range definitions.Compare(before.Policy, after.Policy) {
			differ("policy."+d.Field, d.Old, d.New)
		}
	} else {
		differ("policy", before.PolicyKey(), after.PolicyKey())
	}
	changes = append(changes, definitions.CompareFields("labels.", labels(before.Labels), labels(after.Labels))...)
	return append(changes, definitions.CompareFields("payload.", payload(before.Payload), payload(after.Payload))...)
}

// text is a field of a definition as a difference has it.
func text(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func labels(of map[string]string) map[string]any {
	fields := make(map[string]any, len(of))
	for name, value := range of {
		fields[name] = value
	}
	return fields
}

func payload(canonical string) (fields map[string]any) {
	_ = json.Unmarshal([]byte(canonical), &fields) // what is stored by hand and no object differs in all fields
	return fields
}
