package policy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// DefaultJitter is the jitter of a policy that names none.
func (p *Policy) DefaultJitter() float64 {
	if backoff, ok := p.Retries.(Backoff); ok && backoff.Retries != 0 {
		return strategyJitter
	}
	return 0
}

func (p *Policy) readTexts(doc *document.Reader) {
	if p.Name = doc.Text("name"); p.Name != "" {
		doc.Fail(ValidateName(p.Name))
	}
	p.DisabledReason = doc.Text("disabled_reason")
	doc.Require(p.DisabledReason == document.Shorten(p.DisabledReason, document.MaxText), "disabled_reason", "one line of at most 500 bytes")
}

// ValidateName accepts the name of a stored policy: like a uid, but not beginning with "inline-".
func ValidateName(name string) error {
	if document.IsUID(name) && !IsInline(name) {
		return nil
	}
	return document.Refuse("name", "1-200 letters, digits or _.:@/+=~- (first a letter or digit, not inline-…)", document.Found(name))
}

func (p *Policy) readSchedule(doc *document.Reader) {
	r := schedule.ReadFields(doc)
	p.Rule, p.Timezone, p.Dtstart = r.Rule, r.Timezone, r.Dtstart
	if doc.Err() != nil {
		return
	}
	var err error
	switch {
	case p.Rule != "":
		_, err = schedule.Parse(p.Rule, p.Timezone, p.Anchor())
	case p.Dtstart != "":
		err = document.Refuse("rrule", "a rule, as dtstart is given", "nothing")
	default:
		_, err = schedule.Zone(p.Timezone)
	}
	if doc.Fail(err); err != nil || saysNone(doc, "retry_window") {
		return
	}
	if p.RetryWindow = doc.Text("retry_window"); p.RetryWindow != "" {
		_, err = schedule.ParseWindow(p.RetryWindow, p.Timezone, schedule.Parse)
		doc.Fail(err)
	}
}

// Anchor is the start that the schedule of the policy counts from.
func (p *Policy) Anchor() string { return cmp.Or(p.Dtstart, schedule.DefaultDtstart) }

func (p *Policy) readTimes(doc *document.Reader) {
	for _, read := range []struct {
		field  string
		length *time.Duration
		least  time.Duration
	}{
		{"timeout", &p.Timeout, 0}, {"queue_timeout", &p.QueueTimeout, 0}, {"give_up_after", &p.GiveUpAfter, 0}, {"spread", &p.Spread, 0},
		{"silent_after", &p.SilentAfter, minSilence}, {"fresh_within", &p.FreshWithin, minFresh}, {"warn_within", &p.WarnWithin, minFresh},
	} {
		if !saysNone(doc, read.field) {
			*read.length = doc.LengthWithin(read.field, read.least, document.MaxDuration)
		}
	}
	_, given := doc.Fields["timeout"]
	doc.Require(!given || p.Timeout > 0 || saysNone(doc, "timeout"), "timeout", `a duration above zero, such as "10m", or none`)
}

func saysNone(doc *document.Reader, field string) bool {
	text, ok := doc.Fields[field].(string)
	return ok && strings.EqualFold(strings.TrimSpace(text), none)
}

func (p *Policy) readRetries(doc *document.Reader) {
	retries, usual, err := parseRetries(doc.Fields["retries"])
	doc.Fail(err)
	if p.Retries = retries; p.MaxRetries() == 0 {
		p.Retries, usual = nil, 0
	}
	jitter, found := doc.Number("jitter", 0, 1)
	if p.Jitter = usual; found {
		p.Jitter = math.Abs(jitter) // a negative zero would be written as one
	}
}

func (p *Policy) readAlignment(doc *document.Reader) {
	p.OnExhausted = OnExhausted(doc.OneOf("on_exhausted", "", string(GiveUp), string(NextPlanned)))
	if fields, ok := doc.Fields["alignment"].(map[string]any); ok {
		by, err := parseAligner(fields)
		doc.Fail(document.Place(err, "alignment"))
		p.Alignment, p.AlignBy = AlignPlanned, by
		return
	}
	p.Alignment = Alignment(doc.OneOf("alignment", "",
		string(AlignPlanned), string(UntilSuccess), string(PlannedOnly), string(WhicheverFirst), string(BetweenPlanned)))
}

func (p *Policy) readNotify(doc *document.Reader) {
	if value := doc.Fields["email"]; value != nil {
		email, err := ReadRecipient(value)
		doc.Fail(document.Place(err, "email"))
		p.Email = email
	}
	if !saysNone(doc, "failing_from") {
		p.FailingFrom = doc.Int("failing_from", 1, maxFailingFrom)
	}
	words := doc.Words("notify")
	for _, word := range words {
		if !slices.Contains(Notices, Notice(word)) {
			doc.Refuse("notify", "a list of disabled, recovered, stale, fresh and suspect", document.Found(word))
		}
	}
	for _, notice := range Notices {
		if words != nil && !slices.Contains(words, string(notice)) {
			p.Muted = append(p.Muted, notice)
		}
	}
}
