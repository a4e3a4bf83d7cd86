package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

// storedPolicies reads every stored policy before the models, so that one that is stored with its model is known.
func (c *checker) storedPolicies(ctx context.Context) error {
	if c.wrongType[c.store.Keys.Policies()] {
		return nil
	}
	return c.store.EachPolicy(ctx, func(name, problem string) {
		if problem != "" && !c.stored[name] { // a scan may come by twice
			c.note(policyUnreadable, name, problem)
		}
		c.stored[name] = true
	})
}

// usedPolicies compares the names that models use with what is stored.
func (c *checker) usedPolicies(ctx context.Context) error {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(c.used)), func(name string) bool {
		return c.stored[name] || name == "" || name == scripts.DefaultPolicyName
	})
	for chunk := range slices.Chunk(unknown, inputPart) {
		stored, err := c.store.Policies(ctx, chunk) // some may have been stored since the check began
		if err != nil && !c.wrongType[c.store.Keys.Policies()] {
			return err
		}
		for _, name := range chunk {
			if _, found := stored[name]; !found {
				u := c.used[name]
				c.note(policyMissing, name, fmt.Sprintf("none of that name, but %d models that use it, such as %s", u.models, u.example))
			}
		}
	}
	unused := 0
	for name := range c.stored {
		if policy.IsInline(name) && c.used[name].models == 0 {
			unused++
		}
	}
	if unused > 0 {
		c.note(policyUnused, c.store.Keys.Policies(), fmt.Sprintf("%d that none uses any more", unused))
	}
	return nil
}
