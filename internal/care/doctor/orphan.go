package doctor

import (
	"context"

	"github.com/refreshd/refreshd/internal/store/inspect"
)

// orphans returns a check of uids of which the walk came by a part: one without a model is an orphan.
func (c *checker) orphans(part kind) func(context.Context, []string) error {
	return func(ctx context.Context, uids []string) error {
		without, err := inspect.Of(c.store).WithoutModel(ctx, uids)
		if err != nil {
			return err
		}
		return c.reread(ctx, without, func(m *inspect.Inspection) []Finding { return orphanParts(m, part) })
	}
}

// orphanParts lists what there is of a model that does not exist: all parts together, when the walk comes by the first of them.
func orphanParts(m *inspect.Inspection, comeBy kind) (findings []Finding) {
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
		{staleAtOrphan, "a place in the stale_at set", m.Ages.In},
		{lateOrphan, "a place in the late set", m.Late.In},
		{staleOrphan, "a place in the stale set", m.Stale.In},
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
	k := c.store.Keys
	for key, part := range map[string]kind{
		k.Due(): dueOrphan, k.Urgent(): urgentOrphan, k.Running(): runningOrphan, k.StaleAt(): staleAtOrphan, k.Late(): lateOrphan, k.Stale(): staleOrphan,
	} {
		if c.wrongType[key] {
			continue
		}
		check := c.orphans(part)
		if err := inspect.Of(c.store).EachMember(ctx, key, func(uids []string) error { return check(ctx, uids) }); err != nil {
			return err
		}
	}
	return nil
}
