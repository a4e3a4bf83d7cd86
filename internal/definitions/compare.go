package definitions

import (
	"encoding/json"
	"io"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// Definition is a stored definition, in the order in which people write it.
type Definition struct {
	UID      string            `json:"uid"`
	Rule     string            `json:"rrule,omitempty"`
	Timezone string            `json:"timezone,omitempty"`
	Dtstart  string            `json:"dtstart,omitempty"`
	Policy   any               `json:"policy,omitempty"` // the name of a stored one, or the model's own
	Labels   map[string]string `json:"labels,omitempty"`
	Payload  any               `json:"payload,omitempty"` // the text, where it is no JSON
}

// NewDefinition returns the definition of a model, with the name of its policy.
func NewDefinition(m *model.Model) Definition {
	d := Definition{m.UID, m.Rule, m.Timezone, m.Dtstart, nil, m.Labels, nil}
	if m.PolicyName != "" {
		d.Policy = m.PolicyName
	}
	switch {
	case json.Valid([]byte(m.Payload)):
		d.Payload = json.RawMessage(m.Payload)
	case m.Payload != "": // so that it is seen, and refused
		d.Payload = m.Payload
	}
	return d
}

func definitionText(m *model.Model) []byte {
	d := NewDefinition(m)
	if policy.IsInline(m.PolicyName) {
		d.Policy = m.Policy.Explicit()
	}
	text, _ := json.Marshal(d) // it was decoded from JSON
	return text
}

// WriteModel prints the definition of a model in YAML. ReadModels reads it back.
func WriteModel(to io.Writer, m *model.Model) error {
	return writeYAML(to, definitionText(m), 2)
}

// CompareModels lists the fields in which a definition differs from the stored one, also below labels, the payload and an inline policy.
func CompareModels(before, after *model.Model) (changes []Difference) {
	var both [2]map[string]any
	for i, m := range []*model.Model{before, after} {
		_ = json.Unmarshal(definitionText(m), &both[i])
	}
	if !policy.IsInline(before.PolicyName) || !policy.IsInline(after.PolicyName) {
		both[0]["policy"], both[1]["policy"] = before.PolicyKey(), after.PolicyKey()
	}
	for _, name := range []string{"rrule", "timezone", "dtstart", "policy", "labels", "payload"} {
		was, own := both[0][name].(map[string]any)
		is, too := both[1][name].(map[string]any)
		prefix := name + "."
		if !own && !too {
			prefix, was, is = "", map[string]any{name: both[0][name]}, map[string]any{name: both[1][name]}
		}
		changes = append(changes, CompareFields(prefix, was, is)...)
	}
	return changes
}
