package policy

import (
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// minFresh is the shortest time after which a model may become late or stale.
const minFresh = time.Second

// WatchesAlike reports whether models become late and stale at the same times under both policies.
func (p Policy) WatchesAlike(other Policy) bool {
	return p.FreshWithin == other.FreshWithin && p.WarnWithin == other.WarnWithin
}

func (p *Policy) readFreshness(doc document.Object) error {
	for _, read := range []struct {
		field  string
		length *time.Duration
	}{{"fresh_within", &p.FreshWithin}, {"warn_within", &p.WarnWithin}} {
		if doc.Fields[read.field] == nil || saysNone(doc, read.field) {
			continue
		}
		var err error
		if *read.length, err = lengthWithin(doc, read.field, minFresh, document.MaxDuration); err != nil {
			return err
		}
	}
	return nil
}

// checkFreshness looks at a whole policy: a draft may have one of both, and its other from the policy `default`.
func (p *Policy) checkFreshness() error {
	switch {
	case p.WarnWithin == 0 || p.WarnWithin < p.FreshWithin:
		return nil
	case p.FreshWithin == 0:
		return document.Refuse("fresh_within", "a duration, as warn_within is given", "nothing")
	default:
		want := "less than the fresh_within of " + document.FormatDuration(p.FreshWithin)
		return document.Refuse("warn_within", want, document.Found(document.FormatDuration(p.WarnWithin)))
	}
}

// lengthWithin reads a duration that is there, from low to high.
func lengthWithin(doc document.Object, field string, low, high time.Duration) (time.Duration, error) {
	length, err := doc.Length(field, 0)
	if err == nil && (length < low || length > high) {
		want := "a duration from " + document.FormatDuration(low) + " to " + document.FormatDuration(high)
		return 0, document.Refuse(field, want, document.Found(doc.Fields[field]))
	}
	return length, err
}
