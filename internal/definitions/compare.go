package definitions

import (
	"encoding/json"
	"io"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// definition is a stored definition, in the order in which people write it.
type definition struct {
	UID      string            `json:"uid"`
	Rule     string            `json:"rrule,omitempty"`
	Timezone string            `json:"timezone,omitempty"`
	Dtstart  string            `json:"dtstart,omitempty"`
	Policy   any               `json:"policy,omitempty"` // the name of a stored one, or the model's own
	Labels   map[string]string `json:"labels,omitempty"`
	Payload  any               `json:"payload,omitempty"` // the text, where it is no JSON
}

func newDefinition(m *model.Model) definition {
	d := definition{m.UID, m.Rule, m.Timezone, m.Dtstart, nil, m.Labels, nil}
	if policy.IsInline(m.PolicyName) {
		d.Policy = canonicalFields(m.Policy)
	} else if m.PolicyName != "" {
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

// WriteModel prints the definition of a model in YAML. ReadModels reads it back.
func WriteModel(to io.Writer, m *model.Model) error {
	text, _ := json.Marshal(newDefinition(m)) // what was read can be written
	return writeYAML(to, text, 2)
}

// CompareModels lists the fields in which a definition differs from what is stored, field by field also in labels, in a payload and in a policy that a
// model has alone.
func CompareModels(before, after *model.Model) (changes []Difference) {
	var both [2]map[string]any
	for i, m := range []*model.Model{before, after} {
		text, _ := json.Marshal(newDefinition(m))
		_ = json.Unmarshal(text, &both[i])
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
