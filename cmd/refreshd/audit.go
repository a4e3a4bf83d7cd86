package main

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
)

func auditCommand(a *app) *cobra.Command {
	r := operate.DeedsRequest{}
	command := a.operates("audit", "Show who changed what, the newest first", cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
		deeds, more, err := operate.Deeds(ctx, o, r)
		printed := table(a, []any{"AT", "BY", "FROM", "DEED", "WHAT", "MODELS", "CHANGE", "REASON"}, deedCells)(deeds, err)
		if more != "" {
			a.report("there are older ones: --before " + more)
		}
		return printed
	}, func() error {
		if r.Limit < 1 {
			return usagef("--limit: expected at least 1, found %d", r.Limit)
		}
		return nil
	})
	command.Long = `Show what people and programs changed: by this command line, a dashboard, or commands of the control list that say who wants them. A part keeps
the last 10,000 deeds, for 90 days. A deed about many models is shown once, and when it is over with how many it has changed.`
	flags := command.Flags()
	flags.StringVar(&r.By, "by", "", "only what `NAME` did")
	flags.StringVar(&r.About, "about", "", "only deeds with this `TEXT` in the deed, what it is about, or the reason")
	flags.StringVar(&r.Since, "since", "", "only what was done since a `TIME` (RFC 3339), or for a length of time such as 24h")
	flags.IntVar(&r.Limit, "limit", 100, "print at most `N` deeds")
	flags.StringVar(&r.Before, "before", "", "go on behind a `POSITION` that was printed")
	return command
}

func deedCells(d *model.Deed) []any {
	change := ""
	if d.Before != "" || d.After != "" {
		change = cmp.Or(d.Before, "nothing") + " -> " + cmp.Or(d.After, "nothing")
	}
	deed, number := d.Verb, "-"
	if d.GoesOn() {
		deed += " (still going on)"
	}
	if d.Number > 0 {
		number = strconv.Itoa(d.Number)
	}
	return []any{d.At, cmp.Or(d.By, "-"), cmp.Or(d.From, "-"), deed, cmp.Or(strings.TrimSpace(d.What), "-"), number, cmp.Or(change, "-"), cmp.Or(d.Reason, "-")}
}
