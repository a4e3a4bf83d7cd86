package shadow

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func defined(t testing.TB, fields map[string]any) Source {
	t.Helper()
	fields["uid"] = "m"
	d := check.Got(model.ParseDefinition(fields))(t)
	return func(at time.Time) (*model.Model, error) { return simulate.NewModel(d, *d.Inline, at) }
}

// atSixAndFour is refreshed at 6 and at 16 o'clock, and its attempts may take an hour.
func atSixAndFour(t testing.TB) Source {
	return defined(t, map[string]any{"rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "policy": map[string]any{
		"timeout": "1h", "retries": []any{"0", "1m", "5m"}, "on_exhausted": "give_up"}})
}

func logOf(zone *time.Location) *Log {
	return &Log{Format: FormatAuto, Columns: DefaultColumns, Zone: zone, Input: "bigtables-input", Output: "bigtables-output"}
}

// compared reads a log about models, and returns what differs, a line each, and the report.
func compared(t testing.TB, text string, options Options, sources map[string]Source) ([]string, *Report) {
	t.Helper()
	var told []string
	options.Tell = func(d Difference) {
		line := string(d.Kind)
		if d.UID != "" {
			line += " " + d.UID
		}
		if !d.Old.IsZero() {
			line += " old " + d.Old.Format("02 15:04")
		}
		if !d.Ours.IsZero() {
			line += " ours " + d.Ours.Format("02 15:04")
		}
		if d.By > 0 {
			line += " by " + d.By.String()
		}
		told = append(told, line)
	}
	c := New(options)
	for _, uid := range []string{"m", "n"} {
		if sources[uid] != nil {
			c.Define(uid, sources[uid])
		}
	}
	must(t, logOf(time.UTC).Read(strings.NewReader(text), c.Take, c.Refuse))
	report := check.Got(c.End())(t)
	return told, report
}
