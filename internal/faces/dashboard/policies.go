package dashboard

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	policiesPage = page{path: "policies", title: "Policies", nav: true, file: "policies", read: readPolicies}
	policyPage   = page{path: "policy", title: "Policy", under: "policies", file: "policy", read: readPolicy, drawn: true}
)

// policies are the policies that were stored under a name.
type policies struct {
	Policies []policyRow
	Counted  int  // models that were looked at
	All      bool // which are all there are
	Inline   int  // of them have a policy of their own
}

// policyRow is one of them.
type policyRow struct {
	Name, Timeout, Retries, Rule string
	Readable                     bool
	Link, ModelsLink             string
	Models                       int
}

// mostCounted is how many models are looked at for the count of those that use a policy.
const mostCounted = 2000

func readPolicies(ctx context.Context, v *visit) (any, error) {
	store := v.queue.Parts[0]
	names, err := store.Report().PolicyNames(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := store.Policies(ctx, names)
	if err != nil {
		return nil, err
	}
	uses, counted, all, err := v.queue.Report().CountPolicies(ctx, mostCounted)
	if err != nil {
		return nil, err
	}
	page := &policies{Counted: counted, All: all}
	for name, count := range uses {
		if policy.IsInline(name) {
			page.Inline += count
		}
	}
	for _, name := range names {
		row := policyRow{Name: name, Models: uses[name], Link: v.link("policy", "name", name), ModelsLink: v.link("models", "l", "policy="+name)}
		if p, readable := stored[name]; readable {
			row.Readable = true
			row.Timeout, row.Retries, row.Rule = definitions.Brief(p)
		}
		page.Policies = append(page.Policies, row)
	}
	return page, nil
}

// storedPolicy is one policy with what it would do.
type storedPolicy struct {
	*played

	Name       string
	Models     int
	Counted    int
	All        bool
	ModelsLink string
	EditLink   string
}

func readPolicy(ctx context.Context, v *visit) (any, error) {
	name := v.get("name")
	text, found, err := v.queue.Parts[0].Report().PolicyText(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("policy %q: %w", name, errAbsent)
	}
	if err != nil {
		return nil, err
	}
	doc := definitions.Document{Position: func(string) string { return "stored policy " + name }}
	page := &storedPolicy{Name: name, ModelsLink: v.link("models", "l", "policy="+name), EditLink: v.link("playground", "policy", name)}
	if err := json.Unmarshal([]byte(text), &doc.Value); err != nil {
		page.played = &played{Problem: doc.At(fmt.Errorf("expected JSON: %w", err)).Error()}
		return page, nil
	}
	uses, counted, all, err := v.queue.Report().CountPolicies(ctx, mostCounted)
	if err != nil {
		return nil, err
	}
	page.Models, page.Counted, page.All = uses[name], counted, all
	page.played, err = v.play(ctx, doc, name, true, "")
	return page, err
}

// storedNow reads a policy that must be stored.
func storedNow(ctx context.Context, store *store.Store, name string) (policy.Policy, error) {
	found, err := store.Policies(ctx, []string{name})
	p, is := found[name]
	if err == nil && !is {
		err = fmt.Errorf("policy %q: %w", name, errAbsent)
	}
	return p, err
}
