package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model/document"
)

// Draft is a policy as somebody wrote it: what it does not name is that of the policy `default` at the time it is saved.
type Draft struct {
	said  Policy
	named map[string]bool // fields
}

// Read reads a policy from decoded JSON or YAML, in the canonical form or in any other spelling of it, aliases of its fields included.
// Unknown fields are errors that name the field; a field that is null counts as not named. Every refusal is a *document.Error.
func Read(value any) (Draft, error) {
	resolved := resolveNames(value, fieldAliases)
	fields, _ := resolved.(map[string]any)
	text, _ := fields["alignment"].(string)
	if alignment, found := originAlignments[text]; found {
		fields = maps.Clone(fields)
		fields["alignment"] = string(alignment)
		resolved = fields
	}
	doc, err := document.ReadObject(resolveAliases(resolved), fieldNames...)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{named: make(map[string]bool, len(doc.Fields))}
	for field, value := range doc.Fields {
		d.named[field] = value != nil
	}
	p := &d.said
	for _, read := range []func(document.Object) error{
		p.readTexts, p.readSchedule, p.readTimes, p.readRetries, p.readAlignment, p.Classes.read, p.Misfire.read, p.readLimits, p.readCircuit,
		p.readNotify,
	} {
		if err := read(doc); err != nil {
			return Draft{}, err
		}
	}
	if p.OnExhausted == "" && p.MaxRetries() > 0 && ofSource(value) {
		p.OnExhausted = GiveUp
	}
	d.named["alignment"], d.named["on_exhausted"] = p.Alignment != "", p.OnExhausted != ""
	return d, nil
}

// Parse reads a policy and completes it with the built-in one. Its canonical JSON has at most 16 KiB.
func Parse(value any) (Policy, error) {
	d, err := Read(value)
	if err != nil {
		return Policy{}, err
	}
	return d.Complete(Default())
}

// ParseStored reads a policy that is stored, and so is whole, perhaps by a release that had no bound on its size.
func ParseStored(value any) (Policy, error) {
	d, err := Read(value)
	if err != nil {
		return Policy{}, err
	}
	// Texts that were written by hand name less. A policy without retries would disable a recurring model on its first failure.
	end := GiveUp
	if d.said.MaxRetries() == 0 {
		end = NextPlanned
	}
	p := d.with(Policy{Timeout: DefaultTimeout, Alignment: AlignPlanned, OnExhausted: end})
	return p, p.checkFreshness()
}

// Name is that under which the draft is to be stored; empty: it names none.
func (d Draft) Name() string { return d.said.Name }

// Rename gives the draft a name to be stored under.
func (d Draft) Rename(name string) Draft {
	d.said.Name = name
	return d
}

// Complete takes what the draft does not name from another policy. The policy `default` is completed with the built-in one, whatever
// the other. The error is a *document.Error: the canonical JSON has at most 16 KiB, and warn_within is shorter than fresh_within.
func (d Draft) Complete(usual Policy) (Policy, error) {
	if d.said.Name == DefaultName {
		usual = Default()
	}
	p := d.with(usual)
	if err := p.checkFreshness(); err != nil {
		return p, err
	}
	return p, p.CheckSize()
}

// inherited are the fields that a policy takes from the policy `default`. A schedule is never taken: it would run what is refreshed by hand
// alone.
var inherited = []struct {
	fields []string // the first gives its name to what is taken, if none is named
	take   func(p *Policy, usual *Policy)
}{
	{[]string{"timeout"}, func(p, usual *Policy) { p.Timeout = usual.Timeout }},
	{[]string{"queue_timeout"}, func(p, usual *Policy) { p.QueueTimeout = usual.QueueTimeout }},
	{[]string{"retries"}, func(p, usual *Policy) { p.Retries = usual.Retries }},
	{[]string{"jitter", "retries"}, func(p, usual *Policy) { p.Jitter = usual.Jitter }},
	{[]string{"alignment"}, func(p, usual *Policy) { p.Alignment, p.AlignBy = usual.Alignment, usual.AlignBy }},
	{[]string{"on_exhausted"}, func(p, usual *Policy) { p.OnExhausted = usual.OnExhausted }},
	{[]string{"give_up_after"}, func(p, usual *Policy) { p.GiveUpAfter = usual.GiveUpAfter }},
	{[]string{"never_retry", "retry_on"}, func(p, usual *Policy) {
		p.Classes.Never, p.Classes.RetryOn = usual.Classes.Never, usual.Classes.RetryOn
	}},
	{[]string{"delays_by_error"}, func(p, usual *Policy) { p.Classes.Delays = usual.Classes.Delays }},
	{[]string{"retry_window"}, func(p, usual *Policy) {
		if p.RetryWindow = usual.RetryWindow; p.RetryWindow != "" && p.Rule == "" { // its zone too, unless the policy has a clock of its own
			p.Timezone = cmp.Or(p.Timezone, usual.Timezone)
		}
	}},
	{[]string{"misfire"}, func(p, usual *Policy) { p.Misfire = usual.Misfire }},
	{[]string{"spread"}, func(p, usual *Policy) { p.Spread = usual.Spread }},
	{[]string{"limits"}, func(p, usual *Policy) { p.Limits = usual.Limits }},
	{[]string{"circuit"}, func(p, usual *Policy) { p.Circuit = usual.Circuit }},
	{[]string{"retry_after_scope"}, func(p, usual *Policy) { p.RetryAfterScope = usual.RetryAfterScope }},
	{[]string{"closed"}, func(p, usual *Policy) { p.Closed = usual.Closed }},
	{[]string{"fresh_within"}, func(p, usual *Policy) { p.FreshWithin = usual.FreshWithin }},
	{[]string{"warn_within", "fresh_within"}, func(p, usual *Policy) { p.WarnWithin = usual.WarnWithin }},
	{[]string{"notify"}, func(p, usual *Policy) { p.Muted = usual.Muted }},
	{[]string{"failing_from"}, func(p, usual *Policy) { p.FailingFrom = usual.FailingFrom }},
	{[]string{"email"}, func(p, usual *Policy) { p.Email = usual.Email }},
	{[]string{"disabled_reason"}, func(p, usual *Policy) { p.DisabledReason = usual.DisabledReason }},
}

func (d Draft) with(usual Policy) Policy {
	p := d.said
	for _, part := range inherited {
		if !slices.ContainsFunc(part.fields, func(field string) bool { return d.named[field] }) {
			part.take(&p, &usual)
		}
	}
	return p
}

// Missing lists the fields that are taken from the policy `default`, in their canonical order.
func (d Draft) Missing() (fields []string) {
	for _, part := range inherited {
		if !slices.ContainsFunc(part.fields, func(field string) bool { return d.named[field] }) {
			fields = append(fields, part.fields[0])
		}
	}
	return fields
}

const maxPolicyBytes = 16 << 10

// CheckSize refuses a policy that is too large to be stored.
func (p Policy) CheckSize() error {
	if n := len(p.canonical()); n > maxPolicyBytes {
		return document.Refuse("", fmt.Sprintf("at most %d bytes of JSON", maxPolicyBytes), strconv.Itoa(n))
	}
	return nil
}
