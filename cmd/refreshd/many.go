package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/operate"
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

// changeMany begins a bulk, and tells how far it is until it is over.
func (a *app) changeMany(ctx context.Context, o operate.Operator, m *many, same *model.Command) error {
	if m.dryRun {
		found, err := o.Select(ctx, m.selector)
		if err != nil {
			return err
		}
		return a.printSelected(found)
	}
	id, err := o.BeginBulk(ctx, operate.BulkRequest{
		Action: same.Type, Selector: m.selector, Rate: m.rate, Reason: same.Reason, Force: same.Force, Sure: m.yes,
	})
	if err != nil {
		return err
	}
	return a.follow(ctx, o, id)
}

func (a *app) printSelected(found operate.Selected) error {
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
