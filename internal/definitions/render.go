package definitions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/policy/english"
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

// WriteYAML prints the canonical form of a policy with its fields in their order.
func WriteYAML(to io.Writer, p policy.Policy) error { return writeYAML(to, canonicalJSON(p), 1) }

// writeYAML prints JSON as YAML: objects down to a depth lose their braces.
func writeYAML(to io.Writer, text []byte, depth int) error {
	var escaped bytes.Buffer // YAML does not allow some characters, and takes others for the end of a line
	for _, r := range string(text) {
		if unicode.IsPrint(r) || r < ' ' {
			escaped.WriteRune(r)
		} else {
			fmt.Fprintf(&escaped, `\U%08X`, r)
		}
	}
	var node yaml.Node
	if err := yaml.Unmarshal(escaped.Bytes(), &node); err != nil {
		return fmt.Errorf("render YAML: %w", err)
	}
	blockStyle(&node, depth+1)
	encoder := yaml.NewEncoder(to)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return fmt.Errorf("render YAML: %w", err)
	}
	return encoder.Close()
}

// blockStyle gives the fields down to a depth their own lines.
func blockStyle(node *yaml.Node, depth int) {
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) } // which the encoder may write so that it is not read back
	if node.Kind == yaml.ScalarNode && !strings.ContainsFunc(node.Value, odd) {
		node.Style &^= yaml.DoubleQuotedStyle // the encoder adds the quotes that are needed
	}
	if node.Kind == yaml.DocumentNode || depth > 0 && node.Kind == yaml.MappingNode && len(node.Content) > 0 {
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child, depth-1)
	}
}

// English renders a policy in English. ReadPolicies reads it back.
func English(p policy.Policy) string { return english.Print(p) }

// EnglishBeside is English for a queue whose default policy is known: it leaves out what both have not.
func EnglishBeside(p, known policy.Policy) string { return english.PrintBeside(p, known) }

func canonicalJSON(p policy.Policy) []byte {
	text, _ := json.Marshal(p.Explicit()) // a policy always marshals
	return text
}

func canonicalFields(p policy.Policy) (fields map[string]any) {
	_ = json.Unmarshal(canonicalJSON(p), &fields) // it was just marshalled
	return fields
}

// Difference is one field in which two policies differ.
type Difference struct {
	Field string `json:"field"`
	Old   any    `json:"old"` // as canonical JSON has it, decoded; nil: absent
	New   any    `json:"new"`
}

// Compare lists the fields of the canonical forms that differ, but for the name.
func Compare(before, after policy.Policy) []Difference {
	old, changed := canonicalFields(before), canonicalFields(after)
	delete(old, "name")
	delete(changed, "name")
	return CompareFields("", old, changed)
}

// CompareFields lists the fields that differ, sorted, with a prefix before their names.
func CompareFields(prefix string, before, after map[string]any) []Difference {
	names := make(map[string]any, len(before)+len(after))
	maps.Copy(names, before)
	maps.Copy(names, after)
	differences := []Difference{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if Text(before[name]) != Text(after[name]) {
			differences = append(differences, Difference{prefix + name, before[name], after[name]})
		}
	}
	return differences
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

// Text renders a value of a Difference on one line; "-" is an absent one.
func Text(value any) string {
	if value == nil {
		return "-"
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, _ := json.Marshal(value) // it was decoded from JSON
	return string(text)
}

// Brief is a policy in a line of a list: its timeout, how often it retries, and its rule; "-": none.
func Brief(p policy.Policy) (timeout, retries, rule string) {
	timeout, retries, rule = "none", "-", "-"
	if p.Timeout > 0 {
		timeout = document.FormatDuration(p.Timeout)
	}
	switch count := p.MaxRetries(); count {
	case 0:
	case policy.Unlimited:
		retries = "unlimited"
	default:
		retries = strconv.Itoa(count)
	}
	if p.Rule != "" {
		rule = strings.ReplaceAll(p.Rule, "\n", " ")
	}
	return timeout, retries, rule
}
