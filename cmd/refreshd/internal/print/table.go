package print

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Table aligns the columns of its rows.
type Table struct{ *tabwriter.Writer }

// NewTable begins a table. It writes nothing before Flush.
func NewTable(to io.Writer, header ...any) Table {
	t := Table{tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.Row(header...)
	}
	return t
}

// Row adds a line. A time that is not set is shown as -.
func (t Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if texts[i] = text(cell); cell == (time.Time{}) {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(texts, "\t"))
}

// Pairs writes the fields of one result: a name and a value on each line, without those that have no value.
func Pairs(to io.Writer, pairs [][2]any) error {
	t := NewTable(to)
	for _, pair := range pairs {
		if value := text(pair[1]); value != "" {
			t.Row(pair[0], value)
		}
	}
	return t.Flush()
}

// Time writes an instant for people: in UTC, to the second; empty: it is not set.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func text(value any) string {
	if at, is := value.(time.Time); is {
		return Time(at)
	}
	return document.OneLine(fmt.Sprint(value)) // which may come from outside
}
