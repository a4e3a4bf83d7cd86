package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// none is how a policy says that it has nothing of a kind: no deadline, no retries, no window.
const none = "none"

// field is a field of the document of a policy.
type field struct {
	name string
	// value is what it says; nil: nothing. The canonical form leaves it out where that is usual, whatever the policy `default` says.
	value func(p *Policy) (value any, usual bool)
	// take copies it from the policy `default`; nil: it is never taken over, such as a schedule.
	take func(p, usual *Policy)
	// with says the same, so that nothing is taken where it is named.
	with string
}

// fields are the fields of a policy, in the order of the canonical form.
var fields = []field{
	{name: "name", value: func(p *Policy) (any, bool) { return givenOr(p.Name, p.Name != "", nil) }},
	{name: "rrule", value: func(p *Policy) (any, bool) { return givenOr(p.Rule, p.Rule != "", nil) }},
	{name: "timezone", value: func(p *Policy) (any, bool) { return givenOr(p.Timezone, p.Timezone != "", nil) }},
	{name: "dtstart", value: func(p *Policy) (any, bool) { return givenOr(p.Dtstart, p.Dtstart != "", nil) }},
	{"timeout", func(p *Policy) (any, bool) { length, _ := lengthOr(p.Timeout); return length, false },
		func(p, usual *Policy) { p.Timeout = usual.Timeout }, ""},
	{"queue_timeout", func(p *Policy) (any, bool) { return lengthOr(p.QueueTimeout) }, func(p, usual *Policy) { p.QueueTimeout = usual.QueueTimeout }, ""},
	{"silent_after", func(p *Policy) (any, bool) { return lengthOr(p.SilentAfter) }, func(p, usual *Policy) {
		if usual.SilentAfter < p.Timeout || p.Timeout == 0 { // a shorter timeout comes first anyway
			p.SilentAfter = usual.SilentAfter
		}
	}, ""},
	{"retries", func(p *Policy) (any, bool) {
		if p.MaxRetries() == 0 {
			return []string{}, false
		}
		return p.Retries.document(), false
	}, func(p, usual *Policy) { p.Retries = usual.Retries }, ""},
	{"jitter", func(p *Policy) (any, bool) { return p.Jitter, p.Jitter == p.DefaultJitter() }, func(p, usual *Policy) { p.Jitter = usual.Jitter }, "retries"},
	{"alignment", func(p *Policy) (any, bool) {
		if p.AlignBy != nil {
			return map[string]string{"expr": p.AlignBy.Text}, false
		}
		return p.Alignment, false
	}, func(p, usual *Policy) { p.Alignment, p.AlignBy = usual.Alignment, usual.AlignBy }, ""},
	{"on_exhausted", func(p *Policy) (any, bool) { return p.OnExhausted, false }, func(p, usual *Policy) { p.OnExhausted = usual.OnExhausted }, ""},
	{"give_up_after", func(p *Policy) (any, bool) { return lengthOr(p.GiveUpAfter) }, func(p, usual *Policy) { p.GiveUpAfter = usual.GiveUpAfter }, ""},
	{name: "retry_on", value: func(p *Policy) (any, bool) { return givenOr(p.Classes.RetryOn, p.Classes.RetryOn != nil, nil) }},
	{"never_retry", func(p *Policy) (any, bool) {
		if p.Classes.RetryOn != nil {
			return givenOr(p.Classes.Never, len(p.Classes.Never) > 0, nil)
		}
		return givenOr(p.Classes.Never, len(p.Classes.Never) > 0, []string{})
	}, func(p, usual *Policy) {
		p.Classes.Never, p.Classes.RetryOn = usual.Classes.Never, usual.Classes.RetryOn
	}, "retry_on"},
	{"delays_by_error", func(p *Policy) (any, bool) { return p.Classes.delaysDocument(), len(p.Classes.Delays) == 0 },
		func(p, usual *Policy) { p.Classes.Delays = usual.Classes.Delays }, ""},
	{"retry_window", func(p *Policy) (any, bool) { return givenOr(p.RetryWindow, p.RetryWindow != "", none) }, func(p, usual *Policy) {
		if p.RetryWindow = usual.RetryWindow; p.RetryWindow != "" && p.Rule == "" { // its zone too, unless the policy has a clock of its own
			p.Timezone = cmp.Or(p.Timezone, usual.Timezone)
		}
	}, ""},
	{"misfire", func(p *Policy) (any, bool) { return p.Misfire.String(), !p.Misfire.Limited }, func(p, usual *Policy) { p.Misfire = usual.Misfire }, ""},
	{"spread", func(p *Policy) (any, bool) { return lengthOr(p.Spread) }, func(p, usual *Policy) { p.Spread = usual.Spread }, ""},
	{"limits", func(p *Policy) (any, bool) { return p.limitsDocument(), len(p.Limits) == 0 }, func(p, usual *Policy) { p.Limits = usual.Limits }, ""},
	{"circuit", func(p *Policy) (any, bool) {
		if p.Circuit == nil {
			return none, true
		}
		return p.Circuit.document(), false
	}, func(p, usual *Policy) { p.Circuit = usual.Circuit }, ""},
	{"retry_after_scope", func(p *Policy) (any, bool) {
		return givenOr(string(p.RetryAfterScope), p.RetryAfterScope != ScopeAuto, scopeAuto)
	},
		func(p, usual *Policy) { p.RetryAfterScope = usual.RetryAfterScope }, ""},
	{"max_retry_after", func(p *Policy) (any, bool) { return document.FormatDuration(p.serversMost()), p.MaxRetryAfter == 0 },
		func(p, usual *Policy) { p.MaxRetryAfter = usual.MaxRetryAfter }, ""},
	{"closed", func(p *Policy) (any, bool) { return givenOr(p.Closed, len(p.Closed) > 0, []string{}) }, func(p, usual *Policy) { p.Closed = usual.Closed }, ""},
	{"fresh_within", func(p *Policy) (any, bool) { return lengthOr(p.FreshWithin) }, func(p, usual *Policy) { p.FreshWithin = usual.FreshWithin }, ""},
	{"warn_within", func(p *Policy) (any, bool) { return lengthOr(p.WarnWithin) }, func(p, usual *Policy) { p.WarnWithin = usual.WarnWithin }, "fresh_within"},
	{"guard", func(p *Policy) (any, bool) { return p.guardDocument(), len(p.Guard) == 0 }, func(p, usual *Policy) { p.Guard = usual.Guard }, ""},
	{"on_suspect", func(p *Policy) (any, bool) { return givenOr(p.OnSuspect, p.OnSuspect != "", SuspectTell) },
		func(p, usual *Policy) { p.OnSuspect = usual.OnSuspect }, ""},
	{"notify", func(p *Policy) (any, bool) {
		return slices.DeleteFunc(slices.Clone(Notices), func(n Notice) bool { return !p.Notifies(n) }), len(p.Muted) == 0
	}, func(p, usual *Policy) { p.Muted = usual.Muted }, ""},
	{"failing_from", func(p *Policy) (any, bool) {
		if p.FailingFrom == 0 {
			return none, true
		}
		return p.FailingFrom, false
	}, func(p, usual *Policy) { p.FailingFrom = usual.FailingFrom }, ""},
	{"email", func(p *Policy) (any, bool) { return p.Email.document(), p.Email == (Recipient{}) }, func(p, usual *Policy) { p.Email = usual.Email }, ""},
	{"disabled_reason", func(p *Policy) (any, bool) { return p.DisabledReason, p.DisabledReason == "" },
		func(p, usual *Policy) { p.DisabledReason = usual.DisabledReason }, ""},
}

func givenOr[T any](given T, is bool, otherwise any) (value any, usual bool) {
	if !is {
		return otherwise, true
	}
	return given, false
}

func lengthOr(given time.Duration) (value any, usual bool) {
	if given == 0 {
		return none, true
	}
	return document.FormatDuration(given), false
}

var fieldNames = func() (names []string) {
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}()

// HasField reports whether a policy may have the field, be it under another name.
func HasField(name string) bool {
	_, known := fieldAliases[name]
	return known || slices.Contains(fieldNames, name) || slices.ContainsFunc(aliases, func(a alias) bool { return a.alias == name })
}

// written is a policy as it is written: in the canonical form, or all that it says.
type written struct {
	*Policy
	explicit bool
}

// MarshalJSON writes fields in their order. The caller escapes for HTML, or not.
func (w written) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	before := "{"
	for _, f := range fields {
		value, usual := f.value(w.Policy)
		if value == nil || usual && !w.explicit {
			continue
		}
		out.WriteString(before + `"` + f.name + `":`)
		if err := encoder.Encode(value); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - len("\n"))
		before = ","
	}
	return append(out.Bytes(), '}'), nil
}

// MarshalJSON renders the canonical form, as it is stored. ParseStored reads it back to an equal policy.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(written{Policy: &p}) }

// Explicit is the canonical form for people, with all that the policy leaves out. Read turns it into an equal policy.
func (p Policy) Explicit() any { return written{&p, true} }
