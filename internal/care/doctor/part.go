package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
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
	return each(c.policyDiffers)(ctx, differ)
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
	text, stored, err := c.first.store.Report().PolicyText(ctx, name)
	if err != nil {
		return "", err
	}
	policies, err := c.first.store.Policies(ctx, []string{name})
	p, readable := policies[name]
	switch {
	case err != nil:
	case readable:
		p.Name = name
		err = c.store.Fleet().PutPolicy(ctx, p)
	case stored:
		return "that of the first part cannot be read", nil
	default: // the first part may have lost it
		return "the first part has none; by hand: refreshd policy put, or policy rm", nil
	}
	if err != nil {
		return "", err
	}
	if now, _, err := c.first.store.Report().PolicyText(ctx, name); err != nil || now != text {
		return "it changed while it was mended; run --repair again", err
	}
	return "", nil
}

// sameQueueCircuit checks that the circuit of the queue has the settings of the first part. What differs is read again, as somebody may be
// setting it.
func (c *checker) sameQueueCircuit(ctx context.Context) error {
	if c.first == nil || !c.queueCircuitReadable() || !c.first.queueCircuitReadable() {
		return nil
	}
	var here, there model.QueueCircuit
	for range 2 {
		var err error
		if here, err = queueCircuitOf(ctx, c.store); err != nil {
			return err
		}
		if there, err = queueCircuitOf(ctx, c.first.store); err != nil || here == there {
			return err
		}
	}
	f := circuitDiffers.wanting(c.first.store.Keys.QueueCircuit()+": "+queueCircuitText(there)).at(c.store.Keys.QueueCircuit(), queueCircuitText(here))
	return c.repair(f, func() error { return c.store.Fleet().SetQueueCircuit(ctx, there, "doctor") })
}

func (c *checker) queueCircuitReadable() bool {
	k := c.store.Keys
	return !c.wrongType[k.QueueCircuit()] && !c.wrongType[k.FormerCircuit()] && !c.wrongType[k.Stats()]
}

// queueCircuitOf reads the settings of the circuit of the queue. Whether it is open is the own affair of each part.
func queueCircuitOf(ctx context.Context, part *store.Store) (model.QueueCircuit, error) {
	status, err := part.QueueCircuit(ctx)
	status.Open = false
	return status.QueueCircuit, err
}

func queueCircuitText(set model.QueueCircuit) string {
	state := map[bool]string{true: "on", false: "off"}[set.On]
	return fmt.Sprintf("%s, %.0f%% of at least %d attempts within %s", state, set.Share*100, set.Min, document.FormatDuration(set.Window))
}
