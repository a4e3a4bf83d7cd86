package doctor

import (
	"context"

	"github.com/refreshd/refreshd/scripts"
)

const mendRest = "--repair removes it"

// remains are what may be left of a model that does not exist, in the order in which the doctor comes by. Each is told, together with
// those behind it, where the first is found.
var remains = []struct {
	code, what string
	there      func(*scripts.Inspection) bool
}{
	{"payload-orphan", "a payload", func(c *scripts.Inspection) bool { return c.Payload }},
	{"history-orphan", "a history", func(c *scripts.Inspection) bool { return c.History }},
	{"due-orphan", "a place in the due set", func(c *scripts.Inspection) bool { return c.Due.In }},
	{"running-orphan", "a place in the running set", func(c *scripts.Inspection) bool { return c.Running.In }},
}

// orphans returns a check of uids of which the doctor has found one of the remains.
func (e *examination) orphans(code string) func(context.Context, []string) error {
	return func(ctx context.Context, uids []string) error {
		without, err := e.store.WithoutModel(ctx, uids)
		if err != nil {
			return err
		}
		return e.closely(ctx, without, func(c *scripts.Inspection) []Finding { return diagnoseRest(c, code) })
	}
}

// diagnoseRest lists what is left of a model that does not exist, unless it was told where another part was found.
func diagnoseRest(c *scripts.Inspection, foundBy string) []Finding {
	d := diagnosis{uid: c.Record.UID}
	if c.Record.Exists {
		return nil
	}
	for _, part := range remains {
		if part.there(c) {
			d.add(Error, part.code, "a model for it", "none, but "+part.what, mendRest)
		}
	}
	if len(d.findings) > 0 && d.findings[0].Code != foundBy {
		return nil
	}
	return d.findings
}

// sets checks that what stands in the due and running sets exists. What models say about the sets is checked with the models.
func (e *examination) sets(ctx context.Context) error {
	for code, key := range map[string]string{"due-orphan": e.store.Keys.Due(), "running-orphan": e.store.Keys.Running()} {
		if !e.readable(key) {
			continue
		}
		check := e.orphans(code)
		err := e.store.EachMember(ctx, key, func(uids []string) error { e.look(len(uids)); return check(ctx, uids) })
		if err != nil {
			return err
		}
	}
	return nil
}
