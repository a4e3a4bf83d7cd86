package shadow

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Run is one refresh by the old system.
type Run struct {
	Line      int    // from 1
	UID       string // the model
	At        time.Time
	Again     time.Duration   // if clocks showed At twice, the time until the second one; 0: no doubt
	EndedAt   time.Time       // zero: unknown
	Outcome   simulate.Result // empty: unknown
	ErrorType string          // of a failure; may be empty
}

// length is how long the run took; 0: unknown.
func (r *Run) length() time.Duration { return max(0, r.EndedAt.Sub(r.At)) }

// Columns name the fields of a run in the log, and its outcomes.
type Columns struct {
	UID, At, Ended, Outcome, Error string
	// Outcomes are further words for success, failure and lost, in small letters.
	Outcomes map[string]simulate.Result
}

// DefaultColumns are the names that are looked for unless others are given.
var DefaultColumns = Columns{UID: "uid", At: "started_at", Ended: "ended_at", Outcome: "outcome", Error: "error_type"}

// ParseColumns reads a mapping such as "uid=table_id,at=started_at,ended=finished_at,outcome=status,error=error". Other fields keep their names in
// DefaultColumns. An error is a *document.Error.
func ParseColumns(text string) (Columns, error) {
	c := DefaultColumns
	fields := map[string]*string{"uid": &c.UID, "at": &c.At, "ended": &c.Ended, "outcome": &c.Outcome, "error": &c.Error}
	for pair := range strings.SplitSeq(text, ",") {
		name, column, _ := strings.Cut(pair, "=")
		field := fields[strings.TrimSpace(name)]
		switch column = strings.TrimSpace(column); {
		case text == "":
		case field == nil || column == "":
			return c, document.Refuse("", "uid, at, ended, outcome or error, = and the name of a column, as in uid=table_id,at=started_at", document.Found(pair))
		default:
			*field = column
		}
	}
	return c, nil
}

var words = map[string]simulate.Result{
	"success": simulate.Success, "succeeded": simulate.Success, "ok": simulate.Success, "done": simulate.Success, "completed": simulate.Success,
	"failure": simulate.Failure, "failed": simulate.Failure, "fail": simulate.Failure, "error": simulate.Failure,
	"lost": simulate.Lost, "timeout": simulate.Lost,
}

// ParseOutcomes reads further words for outcomes, such as "1=success,0=failure,killed=lost". An error is a *document.Error.
func ParseOutcomes(text string) (map[string]simulate.Result, error) {
	more := map[string]simulate.Result{}
	for pair := range strings.SplitSeq(text, ",") {
		word, name, _ := strings.Cut(pair, "=")
		result, known := words[strings.TrimSpace(name)]
		switch {
		case text == "":
		case !known:
			return nil, document.Refuse("", "a word, = and success, failure or lost, as in 1=success,0=failure", document.Found(pair))
		default:
			more[strings.ToLower(strings.TrimSpace(word))] = result
		}
	}
	return more, nil
}

// run reads the fields of a run. Times without an offset are in zone.
func (c *Columns) run(get func(column string) string, zone *time.Location) ([]Run, error) {
	r := Run{UID: strings.TrimSpace(get(c.UID)), ErrorType: strings.TrimSpace(get(c.Error))}
	err := document.ValidateID(c.UID, r.UID)
	if err != nil {
		return nil, err
	}
	if r.At, err = parseTime(get(c.At), zone); err != nil {
		return nil, document.Place(err, c.At)
	}
	r.Again = again(get(c.At), r.At, zone)
	if text := get(c.Ended); strings.TrimSpace(text) != "" {
		if r.EndedAt, err = parseTime(text, zone); err != nil {
			return nil, document.Place(err, c.Ended)
		}
		if r.EndedAt.Before(r.At) {
			r.EndedAt = r.EndedAt.Add(again(text, r.EndedAt, zone))
		}
		if r.EndedAt.Before(r.At) {
			return nil, document.Refuse(c.Ended, "a time from "+c.At+" on", document.Found(text))
		}
	}
	word := strings.ToLower(strings.TrimSpace(get(c.Outcome)))
	if r.Outcome = cmp.Or(c.Outcomes[word], words[word]); r.Outcome == "" && word != "" {
		return nil, document.Refuse(c.Outcome, "success, failure or lost, or a word that was given for one", document.Found(get(c.Outcome)))
	}
	return []Run{r}, nil
}

// again is schedule.Again for a time without an offset.
func again(text string, at time.Time, zone *time.Location) time.Duration {
	if strings.Count(text, "-") != 2 || strings.ContainsAny(text, "Z+") {
		return 0
	}
	return schedule.Again(at, zone)
}

// parseTime reads a time as package simulate does, or seconds or milliseconds since 1970.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if strings.Trim(text, "0123456789.") == "" && len(text) >= 9 {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			if seconds >= 1e11 { // the year 5138 in seconds: these are milliseconds
				seconds /= 1000
			}
			return simulate.ParseTime(time.UnixMilli(int64(seconds*1000)).UTC().Format(time.RFC3339Nano), zone)
		}
	}
	return simulate.ParseTime(text, zone)
}
