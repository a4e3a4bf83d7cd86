package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// AgeTable makes retries rarer as a model goes longer without a success. It is a step
// function: the first row whose bound holds. Beyond the last row there is no retry.
type AgeTable []AgeRow

// AgeRow is one step of an AgeTable.
type AgeRow struct {
	UpTo  time.Duration // the longest time without a success for which the row holds, inclusive
	Delay time.Duration
}

// Delay returns the delay of the first row that holds.
func (t AgeTable) Delay(o RetryInput) (time.Duration, bool, error) {
	for _, row := range t {
		if o.SinceSuccess <= row.UpTo {
			return row.Delay, true, nil
		}
	}
	return 0, false, nil
}

// Count is Unlimited: a table ends by age.
func (t AgeTable) Count() int { return Unlimited }

type ageRowDocument struct {
	UpTo  string `json:"up_to"`
	Delay string `json:"delay"`
}

func (t AgeTable) document() any {
	rows := make([]ageRowDocument, len(t))
	for i, row := range t {
		rows[i] = ageRowDocument{document.FormatDuration(row.UpTo), formatDelay(row.Delay)}
	}
	return map[string]any{"by_age": rows}
}

const maxAgeRows = 50

// parseAgeTable reads rows such as {up_to: 1d, delay: 5m}, or "1d: 5m" in short.
func parseAgeTable(fields map[string]any) (AgeTable, error) {
	doc, err := document.ReadObject(fields, "by_age")
	if err != nil {
		return nil, err
	}
	rows, ok := doc.Fields["by_age"].([]any)
	if !ok || len(rows) == 0 || len(rows) > maxAgeRows {
		want := fmt.Sprintf("1 to %d rows such as {up_to: 1d, delay: 5m}", maxAgeRows)
		return nil, document.Refuse("by_age", want, document.Found(doc.Fields["by_age"]))
	}
	table := make(AgeTable, len(rows))
	for i, value := range rows {
		field := fmt.Sprintf("by_age[%d]", i)
		if text, ok := value.(string); ok {
			upTo, delay, found := strings.Cut(text, ":")
			if !found {
				return nil, document.Refuse(field, `a row such as "1d: 5m"`, document.Found(text))
			}
			value = map[string]any{"up_to": upTo, "delay": strings.TrimSpace(delay)}
		}
		row, err := document.ReadObject(value, "up_to", "delay")
		if err == nil {
			table[i].UpTo, err = row.Length("up_to", 0)
		}
		switch {
		case err != nil:
		case table[i].UpTo <= 0:
			err = document.Refuse("up_to", `an age above zero, such as "1d"`, document.Found(row.Fields["up_to"]))
		case row.Fields["delay"] == nil:
			err = document.Refuse("delay", `a delay such as "5m"`, "nothing")
		default:
			table[i].Delay, err = parseDelay("delay", row.Fields["delay"])
		}
		if i > 0 && err == nil && table[i].UpTo <= table[i-1].UpTo {
			err = document.Refuse("up_to", "more than "+document.FormatDuration(table[i-1].UpTo)+" of the row before", document.FormatDuration(table[i].UpTo))
		}
		if err != nil {
			return nil, document.Place(err, field)
		}
	}
	return table, nil
}
