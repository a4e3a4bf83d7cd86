package forecast

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Grouping names the group of a model, such as host=example.com.
type Grouping func(m *model.Model) string

const none = "(none)"

const usualField = "input_url"

// ParseGrouping reads "policy", "label:NAME", "host:FIELD" (the host of a URL in that field), "host", which is that of input_url, or a key of limits
// such as {input_format}. An error names no field.
func ParseGrouping(text string) (Grouping, error) {
	kind, name, _ := strings.Cut(text, ":")
	template := text
	switch {
	case text == "host":
		template = "{host(" + usualField + ")}"
	case kind == "host":
		template = "{host(" + name + ")}"
	case kind == "label":
		template = "{label." + name + "}"
	case text == "policy":
		template = "{policy}"
	}
	key, err := policy.ParseKey(template)
	if err != nil {
		return nil, document.Refuse("", "host, host:FIELD, label:NAME, policy or a key such as {FIELD}", document.Found(text))
	}
	return func(m *model.Model) string { return cmp.Or(keyOf(m, key), none) }, nil
}

func keyOf(m *model.Model, key policy.Key) string {
	return key.Of(m.Payload, m.Labels, cmp.Or(m.PolicyName, policy.DefaultName))
}

// hostOf is the group of models of one host; empty: the model has no input_url.
func hostOf(m *model.Model) string {
	return keyOf(m, policy.Key{Kind: policy.KeyHost, Field: usualField})
}

// Group is how many starts models have that belong together.
type Group struct {
	Name   string `json:"name"`
	Starts int    `json:"starts"`
}

// Groups count starts by the group of their model.
type Groups map[string]int

// Largest are at most n groups, those with the most starts first.
func (g Groups) Largest(n int) []Group {
	all := make([]Group, 0, len(g))
	for name, starts := range g {
		all = append(all, Group{name, starts})
	}
	slices.SortFunc(all, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Starts, a.Starts), cmp.Compare(a.Name, b.Name)) })
	return all[:min(n, len(all))]
}
