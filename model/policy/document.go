package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// canonicalDocument is the canonical form of a policy: fixed order, canonical durations. A field that is left out says nothing, whatever the
// policy `default` says. An any is left out where it is nil.
type canonicalDocument struct {
	Name            string      `json:"name,omitempty"`
	Rule            string      `json:"rrule,omitempty"`
	Timezone        string      `json:"timezone,omitempty"`
	Dtstart         string      `json:"dtstart,omitempty"`
	Timeout         string      `json:"timeout"`
	QueueTimeout    string      `json:"queue_timeout,omitempty"`
	Retries         any         `json:"retries"`
	Jitter          any         `json:"jitter,omitempty"`
	Alignment       any         `json:"alignment"`
	OnExhausted     OnExhausted `json:"on_exhausted"`
	GiveUpAfter     string      `json:"give_up_after,omitempty"`
	RetryOn         any         `json:"retry_on,omitempty"`
	NeverRetry      any         `json:"never_retry,omitempty"`
	DelaysByError   any         `json:"delays_by_error,omitempty"`
	RetryWindow     string      `json:"retry_window,omitempty"`
	Misfire         string      `json:"misfire,omitempty"`
	Spread          string      `json:"spread,omitempty"`
	Limits          any         `json:"limits,omitempty"`
	Circuit         any         `json:"circuit,omitempty"`
	RetryAfterScope string      `json:"retry_after_scope,omitempty"`
	Closed          any         `json:"closed,omitempty"`
	FreshWithin     string      `json:"fresh_within,omitempty"`
	WarnWithin      string      `json:"warn_within,omitempty"`
	Notify          any         `json:"notify,omitempty"`
	FailingFrom     any         `json:"failing_from,omitempty"`
	Email           any         `json:"email,omitempty"`
	DisabledReason  any         `json:"disabled_reason,omitempty"`
}

var fieldNames = []string{
	"name", "rrule", "timezone", "dtstart", "timeout", "queue_timeout", "retries", "jitter", "alignment", "on_exhausted",
	"give_up_after", "retry_on", "never_retry", "delays_by_error", "retry_window", "misfire", "spread",
	"limits", "circuit", "retry_after_scope", "closed", "fresh_within", "warn_within", "notify", "failing_from", "email", "disabled_reason",
}

// HasField reports whether a policy may have the field, be it under another name.
func HasField(name string) bool {
	_, known := fieldAliases[name]
	return known || slices.Contains(fieldNames, name) || slices.ContainsFunc(aliases, func(a alias) bool { return a.alias == name })
}

// none is how a policy says that it has nothing of a kind: no deadline, no retries, no window.
const none = "none"

// MarshalJSON renders the canonical form, as it is stored. ParseStored reads it back to an equal policy.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(p.document()) }

func (p *Policy) document() canonicalDocument {
	when := func(says bool, value any) any {
		if says {
			return value
		}
		return nil
	}
	d := canonicalDocument{
		Name: p.Name, Rule: p.Rule, Timezone: p.Timezone, Dtstart: p.Dtstart,
		Timeout: cmp.Or(formatOptional(p.Timeout), none), QueueTimeout: formatOptional(p.QueueTimeout),
		GiveUpAfter: formatOptional(p.GiveUpAfter), Spread: formatOptional(p.Spread),
		FreshWithin: formatOptional(p.FreshWithin), WarnWithin: formatOptional(p.WarnWithin), RetryAfterScope: string(p.RetryAfterScope),
		Retries: []string{}, Alignment: p.Alignment, OnExhausted: p.OnExhausted, RetryWindow: p.RetryWindow,
		Jitter: when(p.Jitter != p.DefaultJitter(), p.Jitter), RetryOn: when(p.Classes.RetryOn != nil, p.Classes.RetryOn),
		NeverRetry: when(len(p.Classes.Never) > 0, p.Classes.Never), Closed: when(len(p.Closed) > 0, p.Closed), Notify: when(len(p.Muted) > 0, p.told()),
		FailingFrom: when(p.FailingFrom > 0, p.FailingFrom), Email: when(p.Email != (Recipient{}), p.Email.document()),
		DisabledReason: when(p.DisabledReason != "", p.DisabledReason),
	}
	if p.MaxRetries() != 0 {
		d.Retries = p.Retries.document()
	}
	if p.AlignBy != nil {
		d.Alignment = map[string]string{"expr": p.AlignBy.Text}
	}
	if p.Misfire.Limited {
		d.Misfire = p.Misfire.String()
	}
	if len(p.Classes.Delays) > 0 {
		d.DelaysByError = p.Classes.delaysDocument()
	}
	if len(p.Limits) > 0 {
		d.Limits = p.limitsDocument()
	}
	if p.Circuit != nil {
		d.Circuit = struct {
			Key       string   `json:"key"`
			OpenAfter string   `json:"open_after"`
			On        []string `json:"on,omitempty"`
			Probe     string   `json:"probe"`
		}{p.Circuit.Key.String(), fmt.Sprintf("%d of %d", p.Circuit.Failures, p.Circuit.Of), p.Circuit.On, document.FormatDuration(p.Circuit.Probe)}
	}
	return d
}

// Explicit is the canonical form for people, as a value that marshals to JSON: it also says what the policy has not. Read makes of it an
// equal policy, whatever that is completed with.
func (p Policy) Explicit() any {
	d := p.document()
	d.QueueTimeout, d.GiveUpAfter, d.Spread = cmp.Or(d.QueueTimeout, none), cmp.Or(d.GiveUpAfter, none), cmp.Or(d.Spread, none)
	d.RetryWindow, d.Misfire = cmp.Or(d.RetryWindow, none), p.Misfire.String()
	d.Jitter, d.Notify, d.DisabledReason = p.Jitter, p.told(), p.DisabledReason
	if d.NeverRetry == nil && d.RetryOn == nil {
		d.NeverRetry = []string{}
	}
	d.DelaysByError = p.Classes.delaysDocument()
	d.Limits, d.RetryAfterScope = p.limitsDocument(), cmp.Or(d.RetryAfterScope, scopeAuto)
	d.FreshWithin, d.WarnWithin = cmp.Or(d.FreshWithin, none), cmp.Or(d.WarnWithin, none)
	d.Email = p.Email.document()
	if d.FailingFrom == nil {
		d.FailingFrom = none
	}
	if d.Circuit == nil {
		d.Circuit = none
	}
	if d.Closed == nil {
		d.Closed = []string{}
	}
	return d
}

func (p *Policy) told() []Notice {
	return slices.DeleteFunc(slices.Clone(Notices), func(n Notice) bool { return !p.Tells(n) })
}

func formatOptional(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return document.FormatDuration(d)
}

// DefaultJitter is the jitter of a policy that names none.
func (p *Policy) DefaultJitter() float64 {
	if backoff, ok := p.Retries.(Backoff); ok && backoff.Retries != 0 {
		return strategyJitter
	}
	return 0
}

func (p *Policy) readTexts(doc document.Object) (err error) {
	if p.Name, err = doc.Text("name"); err == nil && p.Name != "" {
		err = ValidateName(p.Name)
	}
	if err != nil {
		return err
	}
	p.DisabledReason, err = doc.Text("disabled_reason")
	if err == nil && p.DisabledReason != document.Shorten(p.DisabledReason, document.MaxText) {
		err = document.Refuse("disabled_reason", "one line of at most 500 bytes", document.Found(p.DisabledReason))
	}
	return err
}

// ValidateName accepts the name of a stored policy: like a uid, but not beginning with "inline-".
func ValidateName(name string) error {
	if document.IsUID(name) && !IsInline(name) {
		return nil
	}
	return document.Refuse("name", "1-200 letters, digits or _.:@/+=~- (first a letter or digit, not inline-…)", document.Found(name))
}

func (p *Policy) readSchedule(doc document.Object) error {
	r, err := schedule.ReadFields(doc)
	if err != nil {
		return err
	}
	p.Rule, p.Timezone, p.Dtstart = r.Rule, r.Timezone, r.Dtstart
	switch {
	case p.Rule != "":
		_, err = schedule.Parse(p.Rule, p.Timezone, p.Anchor())
	case p.Dtstart != "":
		err = document.Refuse("rrule", "a rule, as dtstart is given", "nothing")
	default:
		err = schedule.CheckZone(p.Timezone)
	}
	if err != nil || saysNone(doc, "retry_window") {
		return err
	}
	if p.RetryWindow, err = doc.Text("retry_window"); err == nil && p.RetryWindow != "" {
		_, err = schedule.ParseWindow(p.RetryWindow, p.Timezone, schedule.Parse)
	}
	return err
}

// Anchor is what the schedule of the policy counts from.
func (p *Policy) Anchor() string { return cmp.Or(p.Dtstart, schedule.DefaultDtstart) }

func (p *Policy) readTimes(doc document.Object) error {
	for _, read := range []struct {
		field  string
		length *time.Duration
		least  time.Duration
	}{
		{"timeout", &p.Timeout, 0}, {"queue_timeout", &p.QueueTimeout, 0}, {"give_up_after", &p.GiveUpAfter, 0}, {"spread", &p.Spread, 0},
		{"fresh_within", &p.FreshWithin, minFresh}, {"warn_within", &p.WarnWithin, minFresh},
	} {
		if saysNone(doc, read.field) || read.least > 0 && doc.Fields[read.field] == nil {
			continue
		}
		var err error
		if *read.length, err = lengthWithin(doc, read.field, read.least, document.MaxDuration); err != nil {
			return err
		}
	}
	if _, said := doc.Fields["timeout"]; said && p.Timeout <= 0 && !saysNone(doc, "timeout") {
		return document.Refuse("timeout", `a duration above zero, such as "10m", or none`, document.Found(doc.Fields["timeout"]))
	}
	return nil
}

func saysNone(doc document.Object, field string) bool {
	text, ok := doc.Fields[field].(string)
	return ok && strings.EqualFold(strings.TrimSpace(text), none)
}

func (p *Policy) readRetries(doc document.Object) error {
	retries, usual, err := parseRetries(doc.Fields["retries"])
	if err != nil {
		return err
	}
	p.Retries = retries
	if p.MaxRetries() == 0 {
		p.Retries, usual = nil, 0
	}
	jitter, found, err := doc.Number("jitter", 0, 1)
	if p.Jitter = usual; found {
		p.Jitter = math.Abs(jitter) // a negative zero would be written as one
	}
	return err
}

func (p *Policy) readAlignment(doc document.Object) (err error) {
	exhausted, err := doc.OneOf("on_exhausted", "", string(GiveUp), string(NextPlanned))
	if p.OnExhausted = OnExhausted(exhausted); err != nil {
		return err
	}
	if fields, ok := doc.Fields["alignment"].(map[string]any); ok {
		p.Alignment = AlignPlanned
		p.AlignBy, err = parseAligner(fields)
		return document.Place(err, "alignment")
	}
	alignment, err := doc.OneOf("alignment", "", string(AlignPlanned), string(UntilSuccess), string(PlannedOnly), string(WhicheverFirst), string(BetweenPlanned))
	p.Alignment = Alignment(alignment)
	return err
}

func (p *Policy) readNotify(doc document.Object) error {
	if value := doc.Fields["email"]; value != nil {
		var err error
		if p.Email, err = ReadRecipient(value); err != nil {
			return document.Place(err, "email")
		}
	}
	if !saysNone(doc, "failing_from") {
		var err error
		if p.FailingFrom, _, err = doc.Int("failing_from", 1, maxFailingFrom); err != nil {
			return err
		}
	}
	words, err := doc.Words("notify")
	if err != nil || words == nil {
		return err
	}
	for _, word := range words {
		if !slices.Contains(Notices, Notice(word)) {
			return document.Refuse("notify", "a list of disabled, recovered, stale and fresh", document.Found(word))
		}
	}
	for _, notice := range Notices {
		if !slices.Contains(words, string(notice)) {
			p.Muted = append(p.Muted, notice)
		}
	}
	return nil
}
