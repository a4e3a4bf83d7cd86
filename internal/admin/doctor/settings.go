package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// settingKinds are the findings about a setting, which each part of a queue has alike: a policy, hold, limit or calendar.
func settingKinds(k store.Keys, key string) (unreadable, differs kind) {
	unreadable = map[string]kind{k.Policies: policyUnreadable, k.Holds: holdUnreadable, k.Limits: limitUnreadable, k.Calendars: calendarOdd}[key]
	code := strings.TrimSuffix(unreadable.code, "-unreadable") + "-differs"
	return unreadable, kind{code, Error, "the same as in the first part, ", repairFirst}
}

// setting is where a finding about a setting is: its name, and its part if there are several.
func (c *checker) setting(key, name string) string {
	if c.several {
		return key + " " + name
	}
	return name
}

func (c *checker) policy(name string) string { return c.setting(c.store.Keys.Policies, name) }

// flowTexts checks that holds, limits and calendars can be read, and that no hold stops everything.
func (c *checker) flowTexts(ctx context.Context) error {
	texts, err := flow.Inspect(c.store).Texts(ctx, c.now)
	for _, one := range texts {
		if one.Problem != "" {
			unreadable, _ := settingKinds(c.store.Keys, one.Key)
			c.note(unreadable, c.setting(one.Key, one.Name), one.Problem)
		}
	}
	if err != nil || c.first != nil || c.wrongType[c.store.Keys.Holds] {
		return err
	}
	holds, _, err := flow.Of(c.store).Holds(ctx)
	for i := range holds {
		if hold := &holds[i]; hold.Selector.All() && !hold.Ended(c.now) {
			c.note(holdAll, hold.ID, "all of them "+explain.HeldText(hold, model.FormatTime))
		}
	}
	return err
}

func (c *checker) calendars(ctx context.Context) error {
	for _, calendar := range slices.Sorted(maps.Keys(c.closedBy)) {
		for _, policy := range slices.Compact(slices.Sorted(slices.Values(c.closedBy[calendar]))) {
			lacks, err := c.in.LacksCalendar(ctx, policy, calendar)
			if err != nil {
				return err
			}
			if lacks {
				c.note(calendarMissing, c.policy(policy), "closed: "+calendar+", of which there is none")
			}
		}
	}
	return nil
}

// sameSettings checks that this part has the settings of the first. It reads those that differ again before it reports them, the first part last,
// because changes begin there.
func (c *checker) sameSettings(ctx context.Context) error {
	if c.first == nil || !c.settingsReadable() || !c.first.settingsReadable() {
		return nil
	}
	before, err := c.differences(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	differ, err := c.differences(ctx)
	if err != nil {
		return err
	}
	return each(c.reportDifference)(ctx, slices.DeleteFunc(differ, func(d difference) bool { return !slices.Contains(before, d) }))
}

func (c *checker) settingsReadable() bool {
	k := c.store.Keys
	return c.readable(k.Policies, k.Holds, k.Limits, k.Calendars)
}

// difference is a setting of this part that differs from the first. A missing setting has an empty text.
type difference struct{ here, there flow.Text }

// differences lists the settings that differ. Those that are over here and there do not: each part forgets them by itself.
func (c *checker) differences(ctx context.Context) (differ []difference, err error) {
	names := maps.Clone(c.stored)
	maps.Copy(names, c.first.stored)
	maps.DeleteFunc(names, func(name string, _ bool) bool { return policy.IsInline(name) })
	here, err := c.settings(ctx, names)
	if err != nil {
		return nil, err
	}
	there, err := c.first.settings(ctx, names)
	if err != nil {
		return nil, err
	}
	pairs := map[string]difference{}
	for _, one := range here {
		pairs[one.Key+" "+one.Name] = difference{here: one, there: flow.Text{Over: true}}
	}
	for _, one := range there {
		key := c.store.Keys.Queue + strings.TrimPrefix(one.Key, c.first.store.Keys.Queue)
		pair := pairs[key+" "+one.Name]
		pair.there, pair.here.Over = one, pair.here.Over || pair.here.Key == ""
		pair.here.Key, pair.here.Name = key, one.Name
		pairs[key+" "+one.Name] = pair
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if d := pairs[name]; d.here.Text != d.there.Text && (!d.here.Over || !d.there.Over) {
			differ = append(differ, d)
		}
	}
	return differ, nil
}

// settings reads holds, limits and calendars, and the policies with these names. The text of a policy is its canonical one.
func (c *checker) settings(ctx context.Context, names map[string]bool) ([]flow.Text, error) {
	all, err := flow.Inspect(c.store).Texts(ctx, c.now)
	if err != nil {
		return nil, err
	}
	sorted := slices.Sorted(maps.Keys(names))
	policies, err := c.store.Policies(ctx, sorted)
	for _, name := range sorted {
		one := flow.Text{Key: c.store.Keys.Policies, Name: name}
		if p, readable := policies[name]; readable {
			p.Name = ""
			text, _ := json.Marshal(p) // a policy always marshals
			one.Text = string(text)
		} else if c.stored[name] {
			one.Text, one.Problem = "unreadable", "told as policy-unreadable"
		}
		all = append(all, one)
	}
	return all, err
}

func (c *checker) reportDifference(ctx context.Context, d difference) error {
	_, differs := settingKinds(c.store.Keys, d.here.Key)
	found, first := "another one", d.there.Key
	switch {
	case d.here.Text == "":
		found = "none"
	case d.there.Text == "":
		found, first = "one, which is not stored there", c.first.store.Keys.Queue
	}
	f := differs.wanting(first).at(c.setting(d.here.Key, d.here.Name), found)
	return c.tryRepair(f, func() (left string, err error) {
		switch {
		case d.there.Text == "": // the first part may have lost it
			return "the first part has none; by hand: set it again, or remove it", nil
		case d.there.Problem != "":
			return "that of the first part cannot be read", nil
		case d.there.Key == c.first.store.Keys.Policies:
			return c.copyPolicy(ctx, d.there.Name)
		default:
			return "", flow.Inspect(c.store).CopyText(ctx, d.there, c.first.store, c.now)
		}
	})
}

// copyPolicy copies a policy of the first part to this one.
func (c *checker) copyPolicy(ctx context.Context, name string) (left string, err error) {
	const changed = "it changed while it was mended; run --repair again"
	before, err := c.first.store.Policies(ctx, []string{name})
	p, readable := before[name]
	if err != nil || !readable {
		return changed, err
	}
	p.Name = name
	if err := c.store.Fleet().PutPolicy(ctx, p); err != nil {
		return "", err
	}
	if now, err := c.first.store.Policies(ctx, []string{name}); err != nil || !now[name].Equal(p) {
		return changed, err
	}
	return "", nil
}

// sameQueueCircuit checks that the circuit of the queue has the settings of the first part. It reads differences again, as somebody may be
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
	f := circuitDiffers.wanting(c.first.store.Keys.QueueCircuit+": "+queueCircuitText(there)).at(c.store.Keys.QueueCircuit, queueCircuitText(here))
	return c.repair(f, func() error { return flow.Of(c.store).SetQueueCircuit(ctx, there, "doctor") })
}

func (c *checker) queueCircuitReadable() bool {
	k := c.store.Keys
	return c.readable(k.QueueCircuit, k.Stats)
}

// queueCircuitOf reads the settings of the circuit of the queue. Each part opens and closes its own.
func queueCircuitOf(ctx context.Context, part *store.Store) (model.QueueCircuit, error) {
	status, err := flow.Of(part).QueueCircuit(ctx)
	status.Open = false
	return status.QueueCircuit, err
}

func queueCircuitText(set model.QueueCircuit) string {
	state := map[bool]string{true: "on", false: "off"}[set.On]
	return fmt.Sprintf("%s, %.0f%% of at least %d attempts within %s", state, set.Share*100, set.Min, document.FormatDuration(set.Window))
}
