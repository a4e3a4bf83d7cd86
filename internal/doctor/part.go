package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

// samePolicies checks that this part has the stored policies that the first has. What differs is read again before it is reported, the
// first part last: whoever stores a policy begins there.
func (c *checker) samePolicies(ctx context.Context) error {
	if c.first == nil || c.wrongType[c.store.Keys.Policies()] || c.first.wrongType[c.first.store.Keys.Policies()] {
		return nil
	}
	names := maps.Clone(c.stored)
	maps.Copy(names, c.first.stored)
	maps.DeleteFunc(names, func(name string, _ bool) bool { return policy.IsInline(name) })
	differ := slices.Sorted(maps.Keys(names))
	for range 2 {
		var err error
		if differ, err = c.differing(ctx, differ); err != nil {
			return err
		}
	}
	for _, name := range differ {
		if err := c.policyDiffers(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// differing picks the policies that are not the same here and in the first part. One that is stored nowhere is the same.
func (c *checker) differing(ctx context.Context, names []string) (differ []string, err error) {
	here, err := c.store.Policies(ctx, names)
	if err != nil {
		return nil, err
	}
	there, err := c.first.store.Policies(ctx, names)
	for _, name := range names {
		p, found := here[name]
		if q, is := there[name]; found != is || found && !p.Equal(q) {
			differ = append(differ, name)
		}
	}
	return differ, err
}

func (c *checker) policyDiffers(ctx context.Context, name string) error {
	found := "another one"
	switch {
	case !c.stored[name]:
		found = "none"
	case !c.first.stored[name]:
		found = "one, which is not stored there"
	}
	f := policyDiffers.wanting(c.first.store.Keys.Policies()).at(c.policy(name), found)
	return c.tryRepair(f, func() (left string, err error) { return c.copyPolicy(ctx, name) })
}

// copyPolicy makes a policy of this part what it is in the first one.
func (c *checker) copyPolicy(ctx context.Context, name string) (left string, err error) {
	text, stored, err := c.first.store.PolicyText(ctx, name)
	if err != nil {
		return "", err
	}
	policies, err := c.first.store.Policies(ctx, []string{name})
	p, readable := policies[name]
	switch {
	case err != nil:
	case readable:
		p.Name = name
		err = c.store.PutPolicy(ctx, p)
	case stored:
		return "that of the first part cannot be read", nil
	default: // the first part may have lost it
		return "the first part has none; by hand: refreshd policy put, or policy rm", nil
	}
	if err != nil {
		return "", err
	}
	if now, _, err := c.first.store.PolicyText(ctx, name); err != nil || now != text {
		return "it changed while it was mended; run --repair again", err
	}
	return "", nil
}

// sameBrake checks that the brake of this part has the settings of the first. What differs is read again, as somebody may be setting it.
func (c *checker) sameBrake(ctx context.Context) error {
	if c.first == nil || !c.brakeReadable() || !c.first.brakeReadable() {
		return nil
	}
	var here, there model.Brake
	for range 2 {
		var err error
		if here, err = brakeOf(ctx, c.store); err != nil {
			return err
		}
		if there, err = brakeOf(ctx, c.first.store); err != nil || here == there {
			return err
		}
	}
	f := brakeDiffers.wanting(c.first.store.Keys.Brake()+": "+brakeText(there)).at(c.store.Keys.Brake(), brakeText(here))
	return c.repair(f, func() error { return c.store.SetBrake(ctx, there) })
}

func (c *checker) brakeReadable() bool {
	return !c.wrongType[c.store.Keys.Brake()] && !c.wrongType[c.store.Keys.Stats()]
}

// brakeOf reads the settings of a brake. Whether it is engaged is the own affair of each part.
func brakeOf(ctx context.Context, part *scripts.Store) (model.Brake, error) {
	status, err := part.Brake(ctx)
	status.Engaged = false
	return status.Brake, err
}

func brakeText(b model.Brake) string {
	state := map[bool]string{true: "on", false: "off"}[b.On]
	return fmt.Sprintf("%s, %.0f%% of at least %d attempts within %s", state, b.Share*100, b.Min, document.FormatDuration(b.Window))
}
