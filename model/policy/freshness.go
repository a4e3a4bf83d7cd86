package policy

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

const minFresh, minSilence = time.Second, time.Second

// WatchesAlike reports whether models become late and stale at the same times under both policies.
func (p Policy) WatchesAlike(other Policy) bool {
	return p.FreshWithin == other.FreshWithin && p.WarnWithin == other.WarnWithin
}

// checkPairs looks at a whole policy: a draft may have one of two fields, and the other from the policy `default`.
func (p *Policy) checkPairs() error {
	switch {
	case p.Timeout > 0 && p.SilentAfter >= p.Timeout:
		want := "less than the timeout of " + document.FormatDuration(p.Timeout)
		return document.Refuse("silent_after", want, document.Found(document.FormatDuration(p.SilentAfter)))
	case p.WarnWithin == 0 || p.WarnWithin < p.FreshWithin:
		return nil
	case p.FreshWithin == 0:
		return document.Refuse("fresh_within", "a duration, as warn_within is given", "nothing")
	default:
		want := "less than the fresh_within of " + document.FormatDuration(p.FreshWithin)
		return document.Refuse("warn_within", want, document.Found(document.FormatDuration(p.WarnWithin)))
	}
}

// Misfire decides about a planned refresh that was missed. The zero value runs it, once however many were missed. Retries, one-shots and runs by
// hand always run.
type Misfire struct {
	Limited bool          // a refresh that is late by more than Younger is skipped, if another one is planned
	Younger time.Duration // 0 and above
}

const (
	misfireRunOnce = "run_once"
	misfireSkip    = "skip"
	misfireYounger = "run_if_younger_than"
)

// misfireGrace is how late a refresh may start before `skip` takes it for missed: longer than any tick or full list should last.
const misfireGrace = time.Minute

// Skips reports whether every missed refresh is skipped.
func (m Misfire) Skips() bool { return m.Limited && m.Younger == misfireGrace }

func (m Misfire) String() string {
	switch {
	case !m.Limited:
		return misfireRunOnce
	case m.Skips():
		return misfireSkip
	default:
		return misfireYounger + " " + document.FormatDuration(m.Younger)
	}
}

func (m *Misfire) read(doc *document.Reader) {
	value := doc.Fields["misfire"]
	if fields, ok := value.(map[string]any); ok { // {run_if_younger_than: 1h}, as YAML invites to write it
		inner := document.Read(fields, misfireYounger)
		text, _ := inner.Scalar(misfireYounger)
		doc.Fail(document.Place(inner.Err(), "misfire"))
		value = misfireYounger + " " + text
	}
	text, ok := value.(string)
	name, length, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case value == nil, name == misfireRunOnce && length == "":
	case name == misfireSkip && length == "":
		*m = Misfire{Limited: true, Younger: misfireGrace}
	case !ok || name != misfireYounger || length == "":
		doc.Refuse("misfire", misfireRunOnce+", "+misfireSkip+` or "`+misfireYounger+` 1h"`, document.Found(value))
	default:
		younger, err := document.DurationAt("misfire", strings.TrimPrefix(length, "than "))
		doc.Fail(err)
		*m = Misfire{Limited: true, Younger: younger}
	}
}
