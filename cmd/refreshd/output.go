package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// The output formats.
const (
	outputTable   = "table"
	outputJSON    = "json"
	outputMermaid = "mermaid"
	outputSVG     = "svg"
)

var (
	outputs  = []string{outputTable, outputJSON}
	pictures = []string{outputMermaid, outputSVG} // of commands that draw
)

// drawing is the annotation of commands that draw.
const drawing = "drawing"

// draws makes a command one that also prints pictures.
func draws(command *cobra.Command) *cobra.Command {
	command.Annotations = map[string]string{drawing: ""}
	return command
}

// outputsOf are the formats that a command can print.
func outputsOf(command *cobra.Command) []string {
	if _, found := command.Annotations[drawing]; found {
		return slices.Concat(outputs, pictures)
	}
	return outputs
}

// draw prints charts in the format that was asked for.
func (a *app) draw(charts ...chart.Chart) error {
	switch a.output {
	case outputJSON:
		return chart.JSON(a.stdout, charts...)
	case outputMermaid:
		return chart.Mermaid(a.stdout, charts...)
	case outputSVG:
		return chart.SVG(a.stdout, charts...)
	default:
		return chart.Table(a.stdout, charts...)
	}
}

func (a *app) json() bool { return a.output == outputJSON }

// printJSON prints one object over several lines, for people and programs alike.
func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// print prints one object, for people as pairs.
func (a *app) print(object any, pairs [][2]string) error {
	if a.json() {
		return a.printJSON(object)
	}
	return a.printPairs(pairs)
}

// printJSONLine prints one object on one line, for lists.
func printJSONLine(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table aligns the columns of what it prints.
type table struct{ *tabwriter.Writer }

// newTable begins a table. It prints nothing before Flush.
func (a *app) newTable(header ...string) table {
	t := table{tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = plain(cell)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// printPairs prints names and values in two columns; a pair without a value is left out.
func (a *app) printPairs(pairs [][2]string) error {
	t := a.newTable()
	for _, pair := range pairs {
		if pair[1] != "" {
			t.row(pair[:]...)
		}
	}
	return t.Flush()
}

// plain makes a text that may come from outside safe to show on a terminal.
func plain(text string) string { return document.OneLine(text) }

// optional renders a time for JSON; nil, which is null: none.
func optional(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := model.FormatTime(at)
	return &text
}

// distance tells a person how far an instant is from now.
func distance(at, now time.Time) string {
	away := at.Sub(now)
	switch {
	case away.Abs() < time.Second:
		return "now"
	case away < 0:
		return roughly(-away) + " ago"
	default:
		return "in " + roughly(away)
	}
}

// roughly renders a length of time by its two largest units.
func roughly(length time.Duration) string {
	seconds := int64(length / time.Second)
	units := []struct {
		name string
		size int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}
	for i, unit := range units {
		if seconds < unit.size {
			continue
		}
		text := fmt.Sprintf("%d%s", seconds/unit.size, unit.name)
		if i+1 < len(units) {
			if rest := seconds % unit.size / units[i+1].size; rest > 0 {
				text += fmt.Sprintf(" %d%s", rest, units[i+1].name)
			}
		}
		return text
	}
	return "0s"
}
