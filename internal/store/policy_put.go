package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// PutPolicy stores a policy in every part. If that ends halfway, the first part has it: to repeat it, and doctor, bring it to the others.
func (q QueueFleet) PutPolicy(ctx context.Context, p policy.Policy) error {
	return q.write(func(part *Store) error { return part.Fleet().PutPolicy(ctx, p) })
}

// RemovePolicy forgets a stored policy in every part; false: there was none of that name.
func (q QueueFleet) RemovePolicy(ctx context.Context, name string) (removed bool, err error) {
	err = q.write(func(part *Store) error {
		is, err := part.Fleet().RemovePolicy(ctx, name)
		removed = removed || is
		return err
	})
	return removed, err
}

// PutPolicy stores a policy under its name. It takes effect at the next decision of each model that uses it; where it plans otherwise than
// what it replaces, a poller plans those anew that wait for a planned refresh.
func (s Fleet) PutPolicy(ctx context.Context, p policy.Policy) error {
	if err := policy.ValidateName(p.Name); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	if err := p.CheckSize(); err != nil {
		return err
	}
	_, err = s.replacePolicy(ctx, p.Name, string(text), p)
	return Wrap(err, "store policy")
}

// RemovePolicy forgets a stored policy; false: there was none of that name. Models that use it run under the default policy,
// with a fault that says so. An inline policy goes with the last model that uses it, and is refused.
func (s Fleet) RemovePolicy(ctx context.Context, name string) (bool, error) {
	if policy.IsInline(name) {
		return false, document.Refuse("name", "that of a policy stored by name; an inline one goes with its last model", document.Found(name))
	}
	removed, err := s.replacePolicy(ctx, name, "", policy.Default())
	return removed, Wrap(err, "remove policy")
}

// replacePolicy changes what is stored under a name, and begins in the same step to plan its models anew if it plans otherwise then, or promises
// another freshness. An empty text: nothing is stored any more. false: it was so before. Two changes at the same instant may be noted as one, which is
// enough: no walk begins so soon.
func (s Fleet) replacePolicy(ctx context.Context, name, text string, after policy.Policy) (bool, error) {
	return s.Fleet().change(ctx, s.Keys.Policies(), order{}, func() (c change, err error) {
		was, err := s.Clients.Read.HGet(ctx, s.Keys.Policies(), name).Result()
		if err = ignoreMissing(err); err != nil || was == text {
			return c, err
		}
		now, err := s.Now(ctx)
		if err != nil {
			return c, err
		}
		before, found := s.compile([]string{name}, []any{was})[name]
		if !found { // its models run under the default policy
			before = policy.Default()
		}
		c.fields = []string{name, text}
		if !before.PlansAlike(after) || !before.WatchesAlike(after) {
			var selector model.Selector
			selector, err = model.ParseSelector(model.SelectPolicy + "=" + name)
			c.bulk = &Bulk{ID: ReplanID(name), Bulk: model.Bulk{Action: model.BulkReplan, Selector: selector, Since: now}}
		}
		return c, err
	})
}
