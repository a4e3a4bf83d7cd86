package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// storedPolicies reads every stored policy before the models, so that one that is stored with its model is known.
func (c *checker) storedPolicies(ctx context.Context) error {
	if c.wrongType[c.store.Keys.Policies()] {
		return nil
	}
	return c.store.Report().EachPolicy(ctx, func(name string, p policy.Policy, problem string) {
		if problem != "" && !c.stored[name] { // a scan may come by twice
			c.note(policyUnreadable, c.policy(name), problem)
		}
		c.stored[name] = true
		for _, calendar := range p.Closed {
			c.closedBy[calendar] = append(c.closedBy[calendar], name)
		}
	})
}

func (c *checker) usedPolicies(ctx context.Context) error {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(c.used)), func(name string) bool {
		return c.stored[name] || name == "" || name == store.DefaultPolicyName
	})
	for _, name := range unknown {
		u := c.used[name]
		// It may have been stored since the check began, and an inline one goes with the last model that uses it.
		lacks, err := inspect.Of(c.store).LacksPolicy(ctx, u.example, name)
		if err != nil {
			return err
		}
		if lacks {
			c.note(policyMissing, c.policy(name), fmt.Sprintf("none of that name, but %s it, such as %s", words.Count(u.models, "model that uses", "models that use"), u.example))
		}
	}
	return nil
}

// policyUses checks that each inline policy is used, and counted as often. What the walk has seen of models that changed meanwhile is
// doubtful: it is counted again, exactly.
func (c *checker) policyUses(ctx context.Context) error {
	if c.wrongType[c.store.Keys.Policies()] || c.wrongType[c.store.Keys.PolicyUses()] {
		return nil
	}
	recorded := map[string]store.PolicyUse{}
	err := c.store.EachPolicyUse(ctx, func(use store.PolicyUse) { recorded[use.Name] = use })
	var doubtful []string
	for name, use := range recorded {
		if !c.stored[name] || use.Counted != c.used[name].models {
			doubtful = append(doubtful, name)
		}
	}
	for name := range c.stored {
		if _, is := recorded[name]; policy.IsInline(name) && !is {
			doubtful = append(doubtful, name)
		}
	}
	if err != nil || len(doubtful) == 0 {
		return err
	}
	slices.Sort(doubtful)
	uses, err := c.store.CountPolicyUses(ctx, doubtful)
	if err != nil {
		return err
	}
	return each(c.policyUse)(ctx, uses)
}

func (c *checker) policyUse(ctx context.Context, use store.PolicyUse) error {
	counted := fmt.Sprintf("%d counted", use.Counted)
	if use.Counted < 0 {
		counted = "none counted"
	}
	var f Finding
	switch {
	case use.Models == 0 && use.Known():
		f = policyUnused.at(c.policy(use.Name), "none, "+counted)
	case use.Stored && use.Models != use.Counted:
		f = policyUses.wanting(strconv.Itoa(use.Models)).at(c.policy(use.Name), counted)
	default:
		return nil
	}
	return c.repairUnless("a model began or ceased to use it", f, func() (bool, error) { return c.store.Recount(ctx, use) })
}
