package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// many are the flags of a command that is about all models which a selector picks.
type many struct {
	flags    *pflag.FlagSet
	selector string
	rate     string
	dryRun   bool
	yes      bool
}

// bindSelector adds the flag by which models are picked.
func bindSelector(flags *pflag.FlagSet, selector *string) {
	flags.StringVarP(selector, "selector", "l", "", "all models that `SELECTOR` picks, such as tenant=t1,status=failing; '' picks all")
}

func (m *many) bind(flags *pflag.FlagSet) {
	m.flags = flags
	bindSelector(flags, &m.selector)
	flags.StringVar(&m.rate, "rate", "", "with -l: at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "with -l: change nothing; say how many models there are, and name ten")
	flags.BoolVar(&m.yes, "yes", false, "with -l: do it to all models of the queue, or remove")
}

// bindBounds adds the flags of a command whose selector is known.
func (m *many) bindBounds(flags *pflag.FlagSet) {
	m.flags = flags
	flags.StringVar(&m.rate, "rate", "", "at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "change nothing; say how many models there are, and name ten")
}

// chosen reports whether a selector was given, be it an empty one.
func (m *many) chosen() bool { return m.flags.Changed("selector") }

func (m *many) args(_ *cobra.Command, uids []string) error {
	if m.chosen() && len(uids) > 0 {
		return errBoth
	}
	if m.chosen() {
		return nil
	}
	for _, name := range []string{"rate", "dry-run", "yes"} {
		if m.flags.Changed(name) {
			return fmt.Errorf("--%s: expected -l with it, found uids", name)
		}
	}
	return uidArgs(nil, uids)
}

var errBoth = errors.New("expected uids or a selector, found both")

// wish reads what is to be done to the models.
func (m *many) wish(same *model.Command) (wish model.Bulk, err error) {
	wish = model.Bulk{Action: model.BulkAction(same.Type), Force: same.Force, Reason: same.Reason, By: same.By}
	if wish.Selector, err = model.ParseSelector(m.selector); err != nil {
		return wish, usageError{err}
	}
	if wish.Rate, err = model.ParseBulkRate(m.rate); err != nil {
		return wish, usagef("--%w", err)
	}
	switch {
	case m.yes || m.dryRun:
	case wish.Selector.All():
		err = usagef("-l: expected --yes, as all models of the queue are picked, found none; --dry-run tells how many they are")
	case wish.Action == model.BulkRemove:
		err = usagef("-l: expected --yes, as models are removed, found none; --dry-run tells how many they are")
	}
	return wish, err
}

// steerMany begins a bulk, and tells how far it is until it is over.
func (a *app) steerMany(ctx context.Context, queue *store.Queue, m *many, same *model.Command, uids []string) error {
	if len(uids) > 0 {
		return usageError{errBoth}
	}
	wish, err := m.wish(same)
	if err != nil {
		return err
	}
	if m.dryRun {
		return a.tryBulk(ctx, queue, wish.Selector)
	}
	id, err := queue.Fleet().BeginNewBulk(ctx, wish)
	if err != nil {
		return err
	}
	return a.follow(ctx, queue, id)
}

// mostNamed is how many models a dry run names.
const mostNamed = 10

// trial is what a dry run finds, as -o json shows it.
type trial struct {
	Selector string   `json:"selector"`
	Models   int      `json:"models"`
	Examples []string `json:"examples"` // at most ten uids
}

// tryBulk tells what a selector picks now.
func (a *app) tryBulk(ctx context.Context, queue *store.Queue, selector model.Selector) error {
	found := trial{Selector: selector.String(), Examples: []string{}}
	err := explain.EachPicked(ctx, queue, selector, func(picked []explain.Shown) error {
		found.Models += len(picked)
		for _, one := range picked[:min(len(picked), mostNamed-len(found.Examples))] {
			found.Examples = append(found.Examples, one.Record.UID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(found.Examples)
	if a.json() {
		return a.printJSON(found)
	}
	fmt.Fprintln(a.stdout, words.Count(found.Models, "model", "models"))
	for _, uid := range found.Examples {
		fmt.Fprintln(a.stdout, plain(uid))
	}
	if more := found.Models - len(found.Examples); more > 0 {
		fmt.Fprintf(a.stdout, "and %d more\n", more)
	}
	return nil
}
