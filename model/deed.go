package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// DeedCancels is the verb of a deed that ends another, of which it has the id.
const DeedCancels = "bulk cancel"

// MaxDeedText bounds each text of a deed, in bytes.
const MaxDeedText = 60

// Deed is what somebody did to a queue. A zero value is absent.
type Deed struct {
	// ID is one for all entries of one deed: of each part, and of its begin and its end.
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Verb   string    `json:"deed"`   // the command of refreshd that does the same, such as "hold" or "model run"
	What   string    `json:"what"`   // the name, key, uid or selector that it is about
	Number int       `json:"models"` // or messages, that were changed; 0: it is about none
	By     string    `json:"by"`
	From   string    `json:"from"` // the program and its host, or the browser
	Reason string    `json:"reason"`
	// Before and After are what was there, and what is there now, as far as they differ.
	Before string `json:"before"`
	After  string `json:"after"`
	// Begins and Ends count the parts in which the deed goes on behind an entry, and in which it does no more.
	Begins int `json:"begins"`
	Ends   int `json:"ends"`
}

// Shortened returns the deed with texts of one line and at most MaxDeedText bytes.
func (d Deed) Shortened() Deed {
	for _, text := range []*string{&d.What, &d.By, &d.From, &d.Reason, &d.Before, &d.After} {
		*text = document.Shorten(*text, MaxDeedText)
	}
	return d
}

// With returns the deed with an entry of it that was written before: the begin says who, from where and why.
func (d Deed) With(earlier *Deed) Deed {
	sum := *earlier
	sum.Number, sum.Begins, sum.Ends = d.Number+earlier.Number, d.Begins+earlier.Begins, d.Ends+earlier.Ends
	sum.What, sum.After = cmp.Or(sum.What, d.What), cmp.Or(d.After, sum.After)
	return sum
}

// GoesOn reports whether the deed has begun in more parts than it has ended in.
func (d *Deed) GoesOn() bool { return d.Begins > d.Ends }

// Differing returns in what two texts differ: of JSON objects, or of one and nothing, the fields that do, else all of both. When a setting was made, by
// whom and why is left out: its deed has that.
func Differing(before, after string) (was, is string) {
	old, isOld := readFields(before)
	next, isNext := readFields(after)
	if !isOld || !isNext {
		return before, after
	}
	both := maps.Clone(old)
	maps.Copy(both, next)
	for _, name := range []string{"since", "by", "name", "reason"} {
		delete(both, name)
	}
	for _, name := range slices.Sorted(maps.Keys(both)) {
		a, b := string(old[name]), string(next[name])
		if strings.HasPrefix(a, "{") && strings.HasPrefix(b, "{") {
			a, b = Differing(a, b) // only what differs inside fits
		}
		if a != b {
			was, is = appendField(was, name, a), appendField(is, name, b)
		}
	}
	return was, is
}

// readFields reads a JSON object; nothing has no fields.
func readFields(text string) (fields map[string]json.RawMessage, is bool) {
	err := json.Unmarshal([]byte(cmp.Or(text, "{}")), &fields)
	return fields, err == nil
}

func appendField(to, name, value string) string {
	if value == "" || value == `""` {
		return to
	}
	return strings.TrimSpace(to + " " + name + " " + strings.Trim(value, `"`))
}
