package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model/words"
)

func levelCommand(a *app) *cobra.Command {
	var r operate.LevelRequest
	command := &cobra.Command{
		Use: "level", Short: "Spread the planned starts of a fleet evenly, by a phase for each model", Args: cobra.NoArgs,
		Long: `Choose for each model by how much its planned refreshes are shifted, less than --within, so that all of them start as evenly as can
be: the emptiest minutes are filled first, and models of one host get phases far apart. What is not picked by -l keeps its times, and
the others go around it. A model has as many starts as before, none is moved to the next one or past it, and the peak never grows.

--plan (which is the default) only shows what it would bring. --apply stores the phases, and --clear takes them away. A model that
waits for anything else than a planned refresh is left as it is: to run the command again picks it up, and changes nothing of the
others. A phase stays when the model is saved, and takes the place of the spread of its policy.`,
		Example: `  refreshd level --within 10m --plan
  refreshd level --within 10m -l policy=hourly --apply
  refreshd level --clear -l tenant=t1`,
		RunE: a.onStored(func(ctx context.Context, o operate.Operator, _ []string) error {
			found, err := o.Level(ctx, r)
			if err != nil {
				return err
			}
			return a.print(found, levelPairs(&found, r.Apply || r.Clear))
		}),
	}
	bindFleet(command.Flags(), &r.FleetRequest)
	command.Flags().StringVar(&r.Within, "within", "10m", "`DURATION` by less than which planned refreshes are shifted, 2s to 24h")
	command.Flags().BoolVar(&r.Plan, "plan", false, "only show what it would bring")
	command.Flags().BoolVar(&r.Apply, "apply", false, "store the phases")
	command.Flags().BoolVar(&r.Clear, "clear", false, "take the phases away")
	a.bindBy(command.Flags())
	return command
}

func levelPairs(l *operate.Level, stored bool) [][2]any {
	pairs := [][2]any{}
	if l.Before != nil {
		pairs = append(pairs, [][2]any{
			{"models", fmt.Sprintf("%d may be moved, %d get another phase", l.Models, l.Moves)}, {"drain", drainText(l.Drain)},
			{"before", loadText(*l.Before, l.Minutes)}, {"after", loadText(*l.After, l.Minutes)},
		}...)
	}
	switch {
	case stored:
		pairs = append(pairs, [2]any{"changed", words.Count(l.Changed, "model", "models")},
			[2]any{"left", mark(l.Left > 0, words.Count(l.Left, "model that waits", "models that wait")+" for something else than a planned refresh; run it again")})
	case l.Moves > 0:
		pairs = append(pairs, [2]any{"next", "--apply stores it"})
	default:
		pairs = append(pairs, [2]any{"next", "nothing: it would come no more evenly"})
	}
	return pairs
}
