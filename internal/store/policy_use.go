package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model/policy"
)

var recountPolicy = Load("recount-policy.lua")

// PolicyUse is how an inline policy is used.
type PolicyUse struct {
	Name   string
	Models int  // that use it
	Stored bool // its text is
	// Counted is how many models the queue believes to use it; -1: they are not counted.
	Counted int

	recorded string // as it stands in <queue>:policy_uses; empty: it does not
}

// Known reports whether the queue holds anything of the policy.
func (u PolicyUse) Known() bool { return u.Stored || u.recorded != "" }

// newPolicyUse reads an entry of <queue>:policy_uses: "<models> <number of the last change>".
func newPolicyUse(name, recorded string) PolicyUse {
	models, _, _ := strings.Cut(recorded, " ")
	counted, err := strconv.Atoi(models)
	if err != nil {
		counted = -1
	}
	return PolicyUse{Name: name, Counted: counted, recorded: recorded}
}

// EachPolicyUse hands over what is written down about the use of inline policies, without Models and Stored. One may come twice.
func (s *Store) EachPolicyUse(ctx context.Context, visit func(PolicyUse)) error {
	return s.eachField(ctx, "walk over the uses of policies", s.Keys.PolicyUses(), func(name, recorded string) {
		if policy.IsInline(name) {
			visit(newPolicyUse(name, recorded))
		}
	})
}

// CountPolicyUses counts the models that use these inline policies. It walks over all models. A policy that a model has begun or ceased to
// use meanwhile is left out.
func (s *Store) CountPolicyUses(ctx context.Context, names []string) ([]PolicyUse, error) {
	uses, err := s.policyUses(ctx, names)
	if err != nil {
		return nil, err
	}
	models := make(map[string]int, len(names))
	if err = s.Report().EachModel(ctx, "", func(uids []string) error { return s.countPolicies(ctx, uids, models) }); err != nil {
		return nil, err
	}
	again, err := s.policyUses(ctx, names)
	var sure []PolicyUse
	for i, use := range uses {
		if err == nil && use == again[i] {
			use.Models = models[use.Name]
			sure = append(sure, use)
		}
	}
	return sure, err
}

// policyUses reads what is written down about inline policies, in their order.
func (s *Store) policyUses(ctx context.Context, names []string) (uses []PolicyUse, err error) {
	for chunk := range slices.Chunk(names, ScanCount) {
		pipe := s.Clients.Read.Pipeline()
		recorded := SendEach(chunk, func(name string) *redis.StringCmd { return pipe.HGet(ctx, s.Keys.PolicyUses(), name) })
		stored := SendEach(chunk, func(name string) *redis.BoolCmd { return pipe.HExists(ctx, s.Keys.Policies(), name) })
		if err := ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read the uses of policies: %w", err)
		}
		for i, name := range chunk {
			use := newPolicyUse(name, recorded[i].Val())
			use.Stored = stored[i].Val()
			uses = append(uses, use)
		}
	}
	return uses, nil
}

// countPolicies adds the models with these uids to those that use their policies.
func (s *Store) countPolicies(ctx context.Context, uids []string, models map[string]int) error {
	names, err := s.Report().PoliciesOf(ctx, uids)
	if err != nil {
		return err
	}
	for _, name := range names {
		if policy.IsInline(name) {
			models[name]++
		}
	}
	return nil
}

// Recount writes down how many models use an inline policy, or forgets a policy that none uses; false: a model has begun or ceased to
// use it since they were counted, and nothing changes.
func (s *Store) Recount(ctx context.Context, use PolicyUse) (bool, error) {
	is := ""
	if use.Models > 0 {
		_, change, _ := strings.Cut(use.recorded, " ")
		is = fmt.Sprintf("%d %d", use.Models, parseInt(change))
	}
	keys := []string{s.Keys.Policies(), s.Keys.PolicyUses()}
	written, err := Run(ctx, s.Clients.Write, recountPolicy, keys, use.Name, use.recorded, is).Bool()
	return written, Wrap(err, "recount the models of a policy")
}
