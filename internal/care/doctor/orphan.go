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
	note := func(k kind, there bool, what string) {
		if there {
			findings = append(findings, k.at(m.Record.UID, "none, but "+what))
		}
	}
	note(payloadOrphan, m.Payload, "a payload") // in the order of the walk
	note(historyOrphan, m.History, "a history")
	for _, set := range timeSets {
		is, _ := set.place(m)
		note(set.orphan, is.In, "a place in the "+set.name+" set")
	}
	if len(findings) > 0 && findings[0].Code != comeBy.code {
		return nil
	}
	return findings
}
