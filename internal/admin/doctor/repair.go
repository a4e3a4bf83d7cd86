package doctor

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
)

// What --repair promises, and what the report says when the promise was kept. People make every other repair.
var (
	repairSets    = promise("writes its places in all sets anew from the model", "its places in all sets written anew")
	repairRev     = promise("gives it one", "it has one now")
	repairOrphan  = promise("removes it", "removed")
	repairInput   = promise("removes it; workers drop it", "removed")
	repairClaimed = promise("lists it again, and the next poller takes over its messages", "listed again; the next poller takes over its messages")
	repairTaken   = promise("hands its attempts back", "attempts that still count are handed back")
	repairAhead   = promise("makes it one of now; an owner that lives gives a new one", "it is one of now")
	repairWake    = promise("leaves one", "one is left")
	repairUses    = promise("writes down how many they are", "written down")
	repairFirst   = promise("writes what the first part has", "it is that of the first part")
	repairBlocker = promise("lets a dispatcher look at it at once", "a dispatcher looks at it at once")
	repairProbe   = promise("lets another model try it", "another model may try it")
	repairBulk    = promise("lists it again, and a poller goes on with it", "listed again; a poller goes on with it")
)

// repaired maps each promise to the text when it was kept.
var repaired = map[string]string{}

func promise(repair, kept string) string {
	repair = "--repair " + repair
	repaired[repair] = "mended: " + kept
	return repair
}

func (f Finding) repairable() bool { return repaired[f.Repair] != "" }

// conclude notes in findings the result of their repair. left says why they were left; empty: they were repaired.
func conclude(findings []Finding, left string) {
	for i := range findings {
		switch f := &findings[i]; {
		case !f.repairable():
		case left != "":
			f.Repair = "left: " + left
		default:
			f.Repair, f.Repaired = repaired[f.Repair], true
		}
	}
}

func (c *checker) mayRepair(findings []Finding) bool {
	return c.options.Repair && slices.ContainsFunc(findings, Finding.repairable)
}

// repair reports a finding; if that is wanted and safe, it is repaired before.
func (c *checker) repair(f Finding, fix func() error) error {
	return c.tryRepair(f, func() (left string, err error) { return "", fix() })
}

// repairUnless is repair where fix does nothing after a change, which is named.
func (c *checker) repairUnless(change string, f Finding, fix func() (done bool, err error)) error {
	return c.tryRepair(f, func() (left string, err error) {
		done, err := fix()
		if !done {
			left = change + " meanwhile; run --repair again"
		}
		return left, err
	})
}

// tryRepair is repair, but fix may say why it did nothing.
func (c *checker) tryRepair(f Finding, fix func() (left string, err error)) error {
	findings := []Finding{f}
	if c.mayRepair(findings) {
		left, err := fix()
		if left, err = c.despite(left, err); err != nil {
			return err
		}
		conclude(findings, left)
	}
	c.add(findings...)
	return nil
}

// despite goes on where Redis answers that it does not take a repair, as with NOREPLICAS, OOM or MISCONF: that is why it was left.
func (c *checker) despite(left string, err error) (why string, failed error) {
	if err == nil || !redis.Answered(err) {
		return left, err
	}
	if _, is := redis.WrongType(err); !is { // the check of keys reports that
		c.refused = err.Error()
	}
	return err.Error(), nil
}

// reread reads models that looked broken again, each at one instant, and reports the faults that remain. If it is wanted and safe, it repairs them
// first, unless somebody changes the model meanwhile. beside is an index that they are in by mistake, if any.
func (c *checker) reread(ctx context.Context, uids []string, check func(*inspect.Inspection) []Finding, beside ...store.Index) error {
	models, err := c.in.InspectAtomically(ctx, uids, beside...)
	if err != nil {
		return err
	}
	var found, repairing [][]Finding
	batch := store.Batch{Now: c.now}
	for _, m := range models {
		if m.Record.Exists && beside == nil {
			c.use(m)
		}
		findings := check(m)
		found = append(found, findings)
		if !c.mayRepair(findings) {
			continue
		}
		if slices.ContainsFunc(m.Indexes, func(s inspect.IndexMembership) bool { return s.Is.Unknown }) {
			conclude(findings, "one of its indexes has the wrong type, or it changed meanwhile")
			continue
		}
		repairing, batch.Items = append(repairing, findings), append(batch.Items, store.Item{Transition: c.mend(m, beside)})
	}
	codes, err := c.store.Commit(ctx, batch)
	refused, err := c.despite("", err)
	if err != nil {
		return err
	}
	for i, findings := range repairing {
		left := refused
		switch {
		case refused != "" || codes[i] == store.CodeApplied:
		case codes[i] == store.CodeBlocked:
			left = batch.Items[i].WrongType
		default:
			left = "it changed while it was mended (" + codes[i].String() + "); run --repair again"
		}
		conclude(findings, left)
	}
	c.add(slices.Concat(found...)...)
	return nil
}

// mend writes a model into its indexes anew, or removes a uid without a model from them.
func (c *checker) mend(m *inspect.Inspection, beside []store.Index) *store.Transition {
	var transition *store.Transition
	if m.Record.Exists {
		transition = m.Mend(c.now)
	} else {
		transition = m.Record.Remove()
	}
	for _, index := range beside {
		if membership := m.Stands(index); membership.Is.In && !membership.Says {
			transition.Leaving(index)
		}
	}
	return transition
}
