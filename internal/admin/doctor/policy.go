package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// storedPolicies reads every stored policy before the models, so that one that is stored with its model is known.
func (c *checker) storedPolicies(ctx context.Context) error {
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

// usedPolicies compares the names that models use with the stored ones.
func (c *checker) usedPolicies(ctx context.Context) error {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(c.used)), func(name string) bool {
		return c.stored[name] || name == "" || name == store.DefaultPolicyName
	})
	for _, name := range unknown {
		u := c.used[name]
		// It may have been stored since the check began.
		lacks, err := c.in.LacksPolicy(ctx, u.example, name)
		if err != nil {
			return err
		}
		if lacks {
			c.note(policyMissing, c.policy(name), fmt.Sprintf("none of that name, but %s it, such as %s", words.Count(u.models, "model that uses", "models that use"), u.example))
		}
	}
	return nil
}

// unusedPolicies checks that each inline policy is used by a model, or was within a day.
func (c *checker) unusedPolicies(ctx context.Context) error {
	uses, err := c.store.Fleet().PolicyUses(ctx)
	if err != nil {
		return err
	}
	for name := range c.stored {
		if _, is := uses[name]; policy.IsInline(name) && !is {
			uses[name] = store.PolicyUse{Name: name}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		use := uses[name]
		if c.used[name].models > 0 || c.now.Sub(use.Saved) < 24*time.Hour {
			continue
		}
		err := c.repairUnless("a model began to use it", policyUnused.at(c.policy(name), "none for a day"), func() (bool, error) {
			return c.store.Fleet().ForgetPolicy(ctx, use)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
