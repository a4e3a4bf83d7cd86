package chart

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// Table writes the charts for people, each with its title, and their summaries side by side below them.
func Table(w io.Writer, charts ...Chart) error {
	var text strings.Builder
	runs := readAll(charts)
	for _, r := range runs {
		r.writeTable(&text)
		text.WriteByte('\n')
	}
	writeSummaries(&text, runs)
	return write(w, "table", text.String())
}

func (r *run) writeTable(text *strings.Builder) {
	if r.Title != "" {
		fmt.Fprintf(text, "%s (%s)\n", document.OneLine(r.Title), document.OneLine(r.Location.String()))
	}
	if r.Assumed != "" {
		fmt.Fprintln(text, r.Assumed)
	}
	rows := [][]string{{"DAY", "TIME", "SINCE", "EVENT", "NO", "NEXT", "BECAUSE", "REASON"}}
	var before time.Time
	for _, event := range r.Events {
		at := event.At.In(r.Location)
		day, since, no, next := at.Format("Mon 2006-01-02"), "", "", "-"
		if !before.IsZero() {
			since = "+" + words.Roughly(at.Sub(before))
			if before.Format(time.DateOnly) == at.Format(time.DateOnly) {
				day = ""
			}
		}
		if event.AttemptNo > 0 {
			no = strconv.Itoa(event.AttemptNo)
		}
		kind, why := event.Kind, event.Why
		switch {
		case kind.begins(): // what follows a deadline is told where it passes
			if why = ""; !event.DeadlineAt.IsZero() {
				next = "answer due by " + words.Clock(event.DeadlineAt, at, r.Location)
			}
			if event.Planned {
				kind = Start
			}
		case !event.RefreshAt.IsZero():
			next = words.At(event.RefreshAt, at, r.Location)
		}
		rows = append(rows, []string{day, at.Format(time.TimeOnly), since, kind.style().icon + " " + string(kind), no, next, why, event.Reason})
		before = at
	}
	writeRows(text, rows)
}

// writeRows aligns the columns, without those that are empty below their header.
func writeRows(text *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows[1:] {
		for i, cell := range row {
			row[i] = document.OneLine(cell)
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			width := max(widths[i], uniseg.StringWidth(rows[0][i]))
			line.WriteString(cell + strings.Repeat(" ", max(0, width-uniseg.StringWidth(cell))+2))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func writeSummaries(text *strings.Builder, runs []*run) {
	var rows [][]string
	header := []string{""}
	for i, r := range runs {
		header = append(header, document.OneLine(r.Title))
		for line, pair := range r.summary().pairs() {
			if i == 0 {
				rows = append(rows, []string{pair[0]})
			}
			rows[line] = append(rows[line], pair[1])
		}
	}
	if len(runs) == 1 {
		clear(header)
	}
	var out strings.Builder
	writeRows(&out, append([][]string{header}, rows...))
	text.WriteString(strings.TrimPrefix(out.String(), "\n"))
}
