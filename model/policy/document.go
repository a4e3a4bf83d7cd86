package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// canonicalDocument is the canonical form of a policy: fixed order, canonical durations. What every policy has is always written, so
// that a stored policy does not change when a default does; of the rest, what says nothing is left out.
type canonicalDocument struct {
	Name           string            `json:"name,omitempty"`
	Rule           string            `json:"rrule,omitempty"`
	Timezone       string            `json:"timezone,omitempty"`
	Dtstart        string            `json:"dtstart,omitempty"`
	Timeout        string            `json:"timeout"`
	QueueTimeout   string            `json:"queue_timeout,omitempty"`
	Retries        any               `json:"retries"`
	Jitter         *float64          `json:"jitter,omitempty"`
	Alignment      Alignment         `json:"alignment"`
	OnExhausted    OnExhausted       `json:"on_exhausted"`
	GiveUpAfter    string            `json:"give_up_after,omitempty"`
	RetryOn        *[]string         `json:"retry_on,omitempty"`
	NeverRetry     []string          `json:"never_retry,omitempty"`
	DelaysByError  map[string]string `json:"delays_by_error,omitempty"`
	RetryWindow    string            `json:"retry_window,omitempty"`
	Misfire        string            `json:"misfire,omitempty"`
	Spread         string            `json:"spread,omitempty"`
	Notify         *[]Notice         `json:"notify,omitempty"`
	DisabledReason string            `json:"disabled_reason,omitempty"`
}

// fieldNames are the names that a policy may have, in their canonical order.
var fieldNames = []string{
	"name", "rrule", "timezone", "dtstart", "timeout", "queue_timeout", "retries", "jitter", "alignment", "on_exhausted",
	"give_up_after", "retry_on", "never_retry", "delays_by_error", "retry_window", "misfire", "spread", "notify", "disabled_reason",
}

// noTimeout is how a policy without deadline is written.
const noTimeout = "none"

// MarshalJSON renders the canonical form. Parse reads it back to an equal policy.
func (p Policy) MarshalJSON() ([]byte, error) {
	d := canonicalDocument{
		Name: p.Name, Rule: p.Rule, Timezone: p.Timezone, Dtstart: p.Dtstart,
		Timeout: formatOptional(p.Timeout), QueueTimeout: formatOptional(p.QueueTimeout),
		GiveUpAfter: formatOptional(p.GiveUpAfter), Spread: formatOptional(p.Spread),
		NeverRetry: p.Classes.Never, DelaysByError: p.Classes.delaysDocument(),
		Retries: []string{}, Alignment: p.Alignment, OnExhausted: p.OnExhausted, RetryWindow: p.RetryWindow, DisabledReason: p.DisabledReason,
	}
	if p.Timeout == 0 {
		d.Timeout = noTimeout
	}
	if p.MaxRetries() != 0 {
		d.Retries = p.Retries.document()
	}
	if p.Jitter != p.DefaultJitter() {
		d.Jitter = &p.Jitter
	}
	if p.Misfire.Limited {
		d.Misfire = p.Misfire.String()
	}
	if p.Classes.RetryOn != nil {
		d.RetryOn = &p.Classes.RetryOn
	}
	if len(p.Muted) > 0 {
		told := slices.DeleteFunc(slices.Clone(notices), func(n Notice) bool { return !p.Tells(n) })
		d.Notify = &told
	}
	return json.Marshal(d)
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

// usualEnd is what follows the last failure when a policy does not say. One without retries would disable a recurring model on
// its first failure: only on request.
func (p *Policy) usualEnd() OnExhausted {
	if p.MaxRetries() == 0 {
		return NextPlanned
	}
	return GiveUp
}

// maxPolicyBytes bounds the canonical JSON of a policy.
const maxPolicyBytes = 16 << 10

// Parse reads a policy from decoded JSON or YAML, in the canonical form or in any other spelling of it, aliases of its fields
// included. Unknown fields are errors that name the field. Its canonical JSON has at most 16 KiB. Every refusal is a *document.Error.
func Parse(value any) (Policy, error) {
	p, err := ParseStored(value)
	if err == nil {
		err = p.CheckSize()
	}
	return p, err
}

// CheckSize refuses a policy that is too large to be stored.
func (p Policy) CheckSize() error {
	if n := len(p.canonical()); n > maxPolicyBytes {
		return document.Refuse("", fmt.Sprintf("at most %d bytes of JSON", maxPolicyBytes), strconv.Itoa(n))
	}
	return nil
}

// ParseStored is Parse for a policy that is stored already, perhaps by a release that had no bound on its size.
func ParseStored(value any) (Policy, error) {
	doc, err := document.ReadObject(resolveAliases(value), fieldNames...)
	if err != nil {
		return Policy{}, err
	}
	var policy Policy
	for _, read := range []func(document.Object) error{
		policy.readName, policy.readSchedule, policy.readTimes, policy.readRetries, policy.readEnd, policy.Classes.read,
		policy.readWindow, policy.Misfire.read, policy.readNotify, policy.readReason,
	} {
		if err := read(doc); err != nil {
			return Policy{}, err
		}
	}
	return policy, nil
}

func (p *Policy) readName(doc document.Object) (err error) {
	if p.Name, err = doc.Text("name"); err != nil || p.Name == "" {
		return err
	}
	return ValidateName(p.Name)
}

// ValidateName accepts the name of a stored policy: like a uid, but not beginning with "inline-".
func ValidateName(name string) error {
	if document.IsUID(name) && !IsInline(name) {
		return nil
	}
	return document.Refuse("name", "1-200 letters, digits or _.:@/+=~- (first a letter or digit, not inline-…)", document.Found(name))
}

func (p *Policy) readSchedule(doc document.Object) (err error) {
	if p.Rule, err = schedule.ReadRuleField(doc); err != nil {
		return err
	}
	if p.Timezone, err = doc.Text("timezone"); err != nil {
		return err
	}
	if p.Dtstart, err = doc.Text("dtstart"); err != nil {
		return err
	}
	if p.Dtstart != "" {
		if p.Dtstart, err = schedule.CanonicalDtstart(p.Dtstart); err != nil {
			return err
		}
	}
	if p.Rule == "" {
		if p.Dtstart != "" {
			return document.Refuse("rrule", "a rule, as dtstart is given", "nothing")
		}
		return schedule.CheckZone(p.Timezone)
	}
	_, err = schedule.Parse(p.Rule, p.Timezone, p.Anchor())
	return err
}

// Anchor is what the schedule of the policy counts from.
func (p *Policy) Anchor() string { return cmp.Or(p.Dtstart, schedule.DefaultDtstart) }

func (p *Policy) readTimes(doc document.Object) (err error) {
	if text, ok := doc.Fields["timeout"].(string); !ok || !strings.EqualFold(strings.TrimSpace(text), noTimeout) {
		if p.Timeout, err = doc.Length("timeout", DefaultTimeout); err != nil {
			return err
		}
		if p.Timeout <= 0 {
			return document.Refuse("timeout", `a duration above zero, such as "10m", or none`, document.Found(doc.Fields["timeout"]))
		}
	}
	if p.QueueTimeout, err = doc.Length("queue_timeout", 0); err != nil {
		return err
	}
	if p.GiveUpAfter, err = doc.Length("give_up_after", 0); err != nil {
		return err
	}
	p.Spread, err = doc.Length("spread", 0)
	return err
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

func (p *Policy) readEnd(doc document.Object) error {
	alignment, err := doc.OneOf("alignment", string(AlignPlanned), string(AlignPlanned), string(UntilSuccess),
		string(PlannedOnly), string(WhicheverFirst), string(BetweenPlanned))
	if err != nil {
		return err
	}
	p.Alignment = Alignment(alignment)
	exhausted, err := doc.OneOf("on_exhausted", string(p.usualEnd()), string(GiveUp), string(NextPlanned))
	p.OnExhausted = OnExhausted(exhausted)
	return err
}

func (p *Policy) readWindow(doc document.Object) (err error) {
	if p.RetryWindow, err = doc.Text("retry_window"); err != nil || p.RetryWindow == "" {
		return err
	}
	_, err = schedule.ParseWindow(p.RetryWindow, p.Timezone, schedule.Parse)
	return err
}

func (p *Policy) readNotify(doc document.Object) error {
	words, err := doc.Words("notify")
	if err != nil || words == nil {
		return err
	}
	for _, word := range words {
		if !slices.Contains(notices, Notice(word)) {
			return document.Refuse("notify", "a list of "+string(NoticeDisabled)+" and "+string(NoticeRecovered), document.Found(word))
		}
	}
	for _, notice := range notices {
		if !slices.Contains(words, string(notice)) {
			p.Muted = append(p.Muted, notice)
		}
	}
	return nil
}

func (p *Policy) readReason(doc document.Object) (err error) {
	text, err := doc.Text("disabled_reason")
	if err == nil && text != document.Shorten(text, document.MaxText) {
		err = document.Refuse("disabled_reason", "one line of at most 500 bytes", document.Found(text))
	}
	p.DisabledReason = text
	return err
}
