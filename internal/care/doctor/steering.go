package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

func steeringKinds(k store.Keys, key string) (unreadable, differs kind) {
	switch key {
	case k.Holds():
		return holdUnreadable, holdDiffers
	case k.Limits():
		return limitUnreadable, limitDiffers
	default:
		return calendarOdd, calendarDiffers
	}
}

// steeringName is where a finding about a hold, limit or calendar is: its name, and its part if there are several.
func (c *checker) steeringName(one inspect.FlowText) string {
	if c.several {
		return one.Key + " " + one.Name
	}
	return one.Name
}

// steering checks that holds, limits and calendars can be read, and that no hold stops everything.
func (c *checker) steering(ctx context.Context) error {
	texts, err := inspect.Of(c.store).FlowTexts(ctx, c.now)
	for _, one := range texts {
		if one.Problem != "" {
			unreadable, _ := steeringKinds(c.store.Keys, one.Key)
			c.note(unreadable, c.steeringName(one), one.Problem)
		}
	}
	if err != nil || c.first != nil || c.wrongType[c.store.Keys.Holds()] {
		return err
	}
	holds, _, err := c.store.Fleet().Holds(ctx)
	for i := range holds {
		if hold := &holds[i]; hold.Selector.All() && !hold.Ended(c.now) {
			c.note(holdAll, hold.ID, "all of them "+explain.HeldText(hold, model.FormatTime))
		}
	}
	return err
}

func (c *checker) calendars(ctx context.Context) error {
	if c.wrongType[c.store.Keys.Calendars()] || c.wrongType[c.store.Keys.Policies()] {
		return nil
	}
	for _, calendar := range slices.Sorted(maps.Keys(c.closedBy)) {
		for _, policy := range slices.Compact(slices.Sorted(slices.Values(c.closedBy[calendar]))) {
			lacks, err := inspect.Of(c.store).LacksCalendar(ctx, policy, calendar)
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

// sameSteering checks that this part has the holds, limits and calendars that the first has. What differs is read again before it is reported,
// the first part last: whoever changes one begins there.
func (c *checker) sameSteering(ctx context.Context) error {
	if c.first == nil || c.steeringUnreadable() || c.first.steeringUnreadable() {
		return nil
	}
	var differ []difference
	for again := range 2 {
		found, err := c.steeringDiffers(ctx)
		if err != nil {
			return err
		}
		if again > 0 {
			found = slices.DeleteFunc(found, func(d difference) bool { return !slices.Contains(differ, d) })
		}
		differ = found
	}
	return each(c.reportDifference)(ctx, differ)
}

func (c *checker) steeringUnreadable() bool {
	k := c.store.Keys
	return c.wrongType[k.Holds()] || c.wrongType[k.Limits()] || c.wrongType[k.Calendars()]
}

// difference is a hold, limit or calendar of this part that is not what the first has. Of one that is not there, the text is empty.
type difference struct{ here, there inspect.FlowText }

// steeringDiffers lists the differences. What is over here and there is none: each part forgets it by itself.
func (c *checker) steeringDiffers(ctx context.Context) (differ []difference, err error) {
	here, err := inspect.Of(c.store).FlowTexts(ctx, c.now)
	if err != nil {
		return nil, err
	}
	there, err := inspect.Of(c.first.store).FlowTexts(ctx, c.now)
	if err != nil {
		return nil, err
	}
	pairs := map[string]*difference{}
	for _, one := range here {
		pairs[one.Key+" "+one.Name] = &difference{here: one, there: inspect.FlowText{Over: true}}
	}
	for _, one := range there {
		key := c.ownKey(one.Key)
		pair := pairs[key+" "+one.Name]
		if pair == nil {
			pair = &difference{here: inspect.FlowText{Key: key, Name: one.Name, Over: true}}
			pairs[key+" "+one.Name] = pair
		}
		pair.there = one
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		if d := pairs[name]; d.here.Text != d.there.Text && (!d.here.Over || !d.there.Over) {
			differ = append(differ, *d)
		}
	}
	return differ, nil
}

// ownKey is the key of this part that holds what one of the first holds there.
func (c *checker) ownKey(key string) string {
	first, own := c.first.store.Keys, c.store.Keys
	switch key {
	case first.Holds():
		return own.Holds()
	case first.Limits():
		return own.Limits()
	default:
		return own.Calendars()
	}
}

func (c *checker) reportDifference(ctx context.Context, d difference) error {
	_, differs := steeringKinds(c.store.Keys, d.here.Key)
	found, first := "another one", d.there.Key
	switch {
	case d.here.Text == "":
		found = "none"
	case d.there.Text == "":
		found, first = "one, which is not stored there", c.first.store.Keys.Queue()
	}
	f := differs.wanting(first).at(c.steeringName(d.here), found)
	return c.tryRepair(f, func() (left string, err error) {
		switch {
		case d.there.Text == "": // the first part may have lost it
			return "the first part has none; by hand: set it again, or remove it", nil
		case d.there.Problem != "":
			return "that of the first part cannot be read", nil
		default:
			return "", inspect.Of(c.store).CopyFlowText(ctx, d.there, c.first.store, c.now)
		}
	})
}
