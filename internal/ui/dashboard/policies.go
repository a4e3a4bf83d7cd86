package dashboard

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/playground"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	policiesPage = page{path: "policies", title: "Policies", nav: true, file: "policies", read: readPolicies}
	policyPage   = page{path: "policy", title: "Policy", under: "policies", file: "policy", read: readPolicy}
)

type policies struct {
	Policies []policyRow
	Counted  int  // models, if all were
	All      bool // they were counted
	Inline   int  // of them have a policy of their own
}

type policyRow struct {
	operate.StoredPolicy

	Timeout, Retries, Rule string
	Models                 int
}

// maxCounted bounds the models that are counted by policy: more would take thousands of calls of Redis.
const maxCounted = 2000

func readPolicies(ctx context.Context, req *request) (any, error) {
	stored, err := req.operator.Policies(ctx)
	if err != nil {
		return nil, err
	}
	uses, counted, all, err := req.queue.Report().CountPolicies(ctx, maxCounted)
	if err != nil {
		return nil, err
	}
	page := &policies{Counted: counted, All: all}
	for name, count := range uses {
		if policy.IsInline(name) {
			page.Inline += count
		}
	}
	for _, one := range stored {
		row := policyRow{StoredPolicy: one, Models: uses[one.Name]}
		if one.Readable {
			row.Timeout, row.Retries, row.Rule = definitions.Brief(*one.Policy)
		}
		page.Policies = append(page.Policies, row)
	}
	return page, nil
}

type storedPolicy struct {
	*playground.Result

	Name string
}

func readPolicy(ctx context.Context, req *request) (any, error) {
	name := req.get("name")
	text, found, err := req.queue.Parts[0].Report().PolicyText(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("policy %q: %w", name, playground.ErrNotStored)
	}
	if err != nil {
		return nil, err
	}
	doc := definitions.Document{Position: func(string) string { return "stored policy " + name }}
	page := &storedPolicy{Name: name}
	if err := json.Unmarshal([]byte(text), &doc.Value); err != nil {
		page.Result = &playground.Result{Problem: doc.At(fmt.Errorf("expected JSON: %w", err)).Error()}
		return page, nil
	}
	return page, play(ctx, req, func(in playground.Setting) (err error) {
		page.Result, err = in.PlayStored(doc, name)
		return err
	})
}

func readStored(ctx context.Context, store *store.Store, name string) (policy.Policy, error) {
	found, err := store.Policies(ctx, []string{name})
	p, is := found[name]
	if err == nil && !is {
		err = fmt.Errorf("policy %q: %w", name, playground.ErrNotStored)
	}
	return p, err
}
