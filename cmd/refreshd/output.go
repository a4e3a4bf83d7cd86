package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

const (
	outputTable   = "table"
	outputJSON    = "json"
	outputMermaid = "mermaid"
	outputSVG     = "svg"
)

// drawsPictures are the annotations of commands that also print pictures.
var drawsPictures = map[string]string{"draws": "yes"}

// outputsOf are the formats that a command can print.
func outputsOf(command *cobra.Command) []string {
	switch command.Annotations["draws"] {
	case outputSVG:
		return []string{outputTable, outputJSON, outputSVG}
	case "yes":
		return []string{outputTable, outputJSON, outputMermaid, outputSVG}
	}
	return []string{outputTable, outputJSON}
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

// print prints one object, for people as pairs of a name and a value; one without a value is left out.
func (a *app) print(object any, pairs [][2]string) error {
	if a.json() {
		return a.printJSON(object)
	}
	t := a.newTable()
	for _, pair := range pairs {
		if pair[1] != "" {
			t.row(pair[:]...)
		}
	}
	return t.Flush()
}

// printJSONLine prints one object on one line, for lists.
func printJSONLine(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func printJSONLines[T any](to io.Writer, list []T, view func(*T) any) error {
	for i := range list {
		if err := printJSONLine(to, view(&list[i])); err != nil {
			return err
		}
	}
	return nil
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

// plain makes a text that may come from outside safe to show on a terminal.
func plain(text string) string { return document.OneLine(text) }

// optional renders a time for JSON; nil, which is null: none.
func optional(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(model.FormatTime(at))
}

var distance, roughly = words.Distance, words.Roughly
