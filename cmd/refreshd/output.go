package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
)

const (
	outputTable = "table"
	outputJSON  = "json"
	outputSVG   = "svg"
)

// drawsPictures marks commands that also print pictures.
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

// printCharts prints the events of each chart, one a line, and then its summary.
func (a *app) printCharts(charts []chart.Chart) (err error) {
	for _, c := range charts {
		policy := ""
		if len(charts) > 1 {
			policy = c.Title
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

// print prints one object as JSON or as pairs.
func (a *app) print(object any, pairs [][2]any) error {
	if a.json() {
		return a.printJSON(object)
	}
	return print.Pairs(a.stdout, pairs)
}

// result returns a function that prints a result as JSON, or by text.
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

// inPairs is result with pairs.
func inPairs[T any](a *app, pairs func(*T) [][2]any) func(found T, failed error) error {
	return result(a, func(found *T) error { return print.Pairs(a.stdout, pairs(found)) })
}

// shows prints the object that the argument names.
func shows[T any](a *app, read func(operate.Operator, context.Context, string) (T, error), pairs func(*T) [][2]any) ask {
	return func(ctx context.Context, o operate.Operator, names []string) error {
		return inPairs(a, pairs)(read(o, ctx, names[0]))
	}
}

func toNamed(do func(operate.Operator, context.Context, string) error) ask {
	return func(ctx context.Context, o operate.Operator, names []string) error { return do(o, ctx, names[0]) }
}

// table returns a function that prints a list as JSON lines, or as a table.
func table[T any](a *app, header []any, row func(*T) []any) func(list []T, failed error) error {
	return func(list []T, failed error) error {
		if failed != nil {
			return failed
		}
		if len(list) == 0 && !a.json() {
			_, err := fmt.Fprintln(a.stdout, "none")
			return err
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

// lists makes a command that lists all objects of a kind.
func lists[T any](a *app, short string, read func(operate.Operator, context.Context) ([]T, error), header []any, row func(*T) []any) *cobra.Command {
	return a.operates("ls", short, cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
		return table(a, header, row)(read(o, ctx))
	})
}

// everything reads all, without keys.
func everything[T any](read func(operate.Operator, context.Context, ...string) ([]T, error)) func(operate.Operator, context.Context) ([]T, error) {
	return func(o operate.Operator, ctx context.Context) ([]T, error) { return read(o, ctx) }
}

func (a *app) newTable(header ...any) print.Table { return print.NewTable(a.stdout, header...) }

// plain makes a text from outside safe to show on a terminal.
func plain(text string) string { return document.OneLine(text) }

const maxProblems, maxKinds = 10, 100 // of each kind that are printed, and of kinds

// printProblem prints a problem of one of many things, such as lines of a file, up to a limit for each kind.
func (a *app) printProblem(uid, text string) {
	kind, _, _ := strings.Cut(text, ", found ")
	kind = strings.TrimPrefix(string(fingerprint.Of(uid, "", kind[strings.LastIndex(kind, " line ")+1:])), "line #: ")
	if a.problems[kind] == 0 && len(a.problems) >= maxKinds {
		kind = "other problems"
	}
	if a.problems[kind]++; a.problems[kind] <= maxProblems {
		a.report(text)
	}
}

func (a *app) printProblemCounts() {
	for _, kind := range slices.Sorted(maps.Keys(a.problems)) {
		if more := a.problems[kind] - maxProblems; more > 0 {
			a.report(fmt.Sprintf("and %d more: %s", more, kind))
		}
	}
}
