package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refreshd/refreshd/model/policy"
)

// EachPolicy hands over all stored policies under the names that they are stored by. problem says why one cannot be read; empty: it can. One may
// come twice.
func (s Report) EachPolicy(ctx context.Context, visit func(name string, p policy.Policy, problem string)) error {
	return s.eachField(ctx, "walk over the policies", s.Keys.Policies(), func(name, text string) {
		problem := ""
		p, err := s.policies.parse(text)
		if err != nil {
			problem = err.Error()
		}
		visit(name, p, problem)
	})
}

// PolicyNames lists the policies that were stored under a name of their own, sorted.
func (s Report) PolicyNames(ctx context.Context) ([]string, error) {
	names, err := s.Clients.Read.HKeys(ctx, s.Keys.Policies()).Result()
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	names = slices.DeleteFunc(names, policy.IsInline)
	if !slices.Contains(names, DefaultPolicyName) {
		names = append(names, DefaultPolicyName)
	}
	slices.Sort(names)
	return names, nil
}

// PolicyText reads the canonical JSON of a stored policy; false: there is none of that name. The built-in default policy counts
// as stored until another is.
func (s Report) PolicyText(ctx context.Context, name string) (text string, found bool, err error) {
	text, err = s.Clients.Read.HGet(ctx, s.Keys.Policies(), name).Result()
	switch {
	case err == nil:
		return text, true, nil
	case !Missing(err):
		return "", false, fmt.Errorf("read policy: %w", err)
	case name != DefaultPolicyName:
		return "", false, nil
	}
	canonical, _ := json.Marshal(policy.Default()) // what is built in can be written
	return string(canonical), true, nil
}
