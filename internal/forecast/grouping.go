package forecast

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Grouping names the group of a model.
type Grouping func(m *model.Model) string

// none is the group of models that have nothing to be grouped by.
const none = "(none)"

// ParseGrouping reads "policy", "label:NAME", "host:FIELD" (the host of a URL in that field of the payload) or "host", which is that of
// input_url. An error names no field.
func ParseGrouping(text string) (Grouping, error) {
	kind, name, named := strings.Cut(text, ":")
	switch {
	case text == "policy":
		return func(m *model.Model) string { return cmp.Or(m.PolicyName, policy.DefaultName) }, nil
	case kind == "label" && name != "":
		return func(m *model.Model) string { return cmp.Or(m.Labels[name], none) }, nil
	case kind == "host" && (!named || name != ""):
		return func(m *model.Model) string { return cmp.Or(Host(m, cmp.Or(name, "input_url")), none) }, nil
	}
	return nil, document.Refuse("", "host, host:FIELD, label:NAME or policy", document.Found(text))
}

// Host is the host of the URL in a field of the payload; empty: there is none.
func Host(m *model.Model, field string) string {
	var fields map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(m.Payload), &fields) != nil || json.Unmarshal(fields[field], &text) != nil {
		return ""
	}
	address, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(address.Hostname())
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
