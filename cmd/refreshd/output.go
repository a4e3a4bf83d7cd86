package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/model/document"
)

const (
	outputTable = "table"
	outputJSON  = "json"
	outputSVG   = "svg"
)

// drawsPictures are the annotations of commands that also print pictures.
var drawsPictures = map[string]string{"draws": "yes"}

func outputsOf(command *cobra.Command) []string {
	if command.Annotations["draws"] != "" {
		return []string{outputTable, outputJSON, outputSVG}
	}
	return []string{outputTable, outputJSON}
}

func (a *app) draw(charts ...chart.Chart) error {
	switch a.output {
	case outputJSON:
		return a.printCharts(charts)
	case outputSVG:
		return chart.SVG(a.stdout, charts...)
	default:
		return chart.Table(a.stdout, charts...)
	}
}

// printCharts prints the events of each chart, one a line, and as the last one its summary.
func (a *app) printCharts(charts []chart.Chart) (err error) {
	for _, c := range charts {
		policy := cmp.Or(c.Policy, c.Title)
		if len(charts) == 1 {
			policy = ""
		}
		for _, event := range c.Events {
			err = cmp.Or(err, print.JSONLine(a.stdout, struct {
				Policy string `json:"policy,omitempty"`
				chart.Event
			}{policy, event}))
		}
		err = cmp.Or(err, print.JSONLine(a.stdout, struct {
			Policy  string        `json:"policy,omitempty"`
			Summary chart.Summary `json:"summary"`
		}{policy, c.Summary()}))
	}
	return err
}

func (a *app) json() bool { return a.output == outputJSON }

func (a *app) printJSON(value any) error { return print.JSON(a.stdout, value) }

// print prints one object, for people as pairs of a name and a value; one without a value is left out.
func (a *app) print(object any, pairs [][2]any) error {
	if a.json() {
		return a.printJSON(object)
	}
	return print.Pairs(a.stdout, pairs)
}

// result returns what prints a result that could be read: as JSON, or for people by text.
func result[T any](a *app, text func(*T) error) func(found T, failed error) error {
	return func(found T, failed error) error {
		switch {
		case failed != nil:
			return failed
		case a.json():
			return a.printJSON(found)
		default:
			return text(&found)
		}
	}
}

// inPairs is a result that people see as pairs of a name and a value.
func inPairs[T any](a *app, pairs func(*T) [][2]any) func(found T, failed error) error {
	return result(a, func(found *T) error { return print.Pairs(a.stdout, pairs(found)) })
}

// shows shows what the argument of a command names, for people as pairs.
func shows[T any](a *app, read func(operate.Operator, context.Context, string) (T, error), pairs func(*T) [][2]any) ask {
	return func(ctx context.Context, o operate.Operator, names []string) error {
		return inPairs(a, pairs)(read(o, ctx, names[0]))
	}
}

// toNamed does something to what the argument of a command names.
func toNamed(do func(operate.Operator, context.Context, string) error) ask {
	return func(ctx context.Context, o operate.Operator, names []string) error { return do(o, ctx, names[0]) }
}

// table returns what prints a list that could be read: one object a line, for people as a table.
func table[T any](a *app, header []any, row func(*T) []any) func(list []T, failed error) error {
	return func(list []T, failed error) error {
		if failed != nil {
			return failed
		}
		table := a.newTable(header...)
		for i := range list {
			if !a.json() {
				table.Row(row(&list[i])...)
			} else if err := print.JSONLine(a.stdout, list[i]); err != nil {
				return err
			}
		}
		if a.json() {
			return nil
		}
		return table.Flush()
	}
}

// lists is the command that lists what of a kind there is.
func lists[T any](a *app, short string, read func(operate.Operator, context.Context) ([]T, error), header []any, row func(*T) []any) *cobra.Command {
	return a.operates("ls", short, cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
		return table(a, header, row)(read(o, ctx))
	})
}

// everything reads what there is of a kind, without keys to choose by.
func everything[T any](read func(operate.Operator, context.Context, ...string) ([]T, error)) func(operate.Operator, context.Context) ([]T, error) {
	return func(o operate.Operator, ctx context.Context) ([]T, error) { return read(o, ctx) }
}

func (a *app) newTable(header ...any) print.Table { return print.NewTable(a.stdout, header...) }

// plain makes a text that may come from outside safe to show on a terminal.
func plain(text string) string { return document.OneLine(text) }
