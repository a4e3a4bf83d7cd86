package doctor

import (
	"context"

	"github.com/refreshd/refreshd/scripts"
)

// orphans returns a check of uids of which the walk came by a part: one without a model is an orphan.
func (c *checker) orphans(part kind) func(context.Context, []string) error {
	return func(ctx context.Context, uids []string) error {
		without, err := c.store.WithoutModel(ctx, uids)
		if err != nil {
			return err
		}
		return c.reread(ctx, without, func(m *scripts.Inspection) []Finding { return orphanParts(m, part) })
	}
}

// orphanParts lists what there is of a model that does not exist: all parts together, when the walk comes by the first of them.
func orphanParts(m *scripts.Inspection, comeBy kind) (findings []Finding) {
	if m.Record.Exists {
		return nil
	}
	for _, part := range []struct {
		kind  kind
		what  string
		there bool
	}{ // in the order of the walk
		{payloadOrphan, "a payload", m.Payload},
		{historyOrphan, "a history", m.History},
		{dueOrphan, "a place in the due set", m.Due.In},
		{urgentOrphan, "a place in the urgent set", m.Urgent.In},
		{runningOrphan, "a place in the running set", m.Running.In},
	} {
		if part.there {
			findings = append(findings, part.kind.at(m.Record.UID, "none, but "+part.what))
		}
	}
	if len(findings) > 0 && findings[0].Code != comeBy.code {
		return nil
	}
	return findings
}

// sets checks that what stands in the due and running sets exists. What models say about the sets is checked with the models.
func (c *checker) sets(ctx context.Context) error {
	for key, part := range map[string]kind{c.store.Keys.Due(): dueOrphan, c.store.Keys.Urgent(): urgentOrphan, c.store.Keys.Running(): runningOrphan} {
		if c.wrongType[key] {
			continue
		}
		check := c.orphans(part)
		if err := c.store.EachMember(ctx, key, func(uids []string) error { return check(ctx, uids) }); err != nil {
			return err
		}
	}
	return nil
}
