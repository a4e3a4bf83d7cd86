package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model/document"
)

// Draft is a policy as it was written. The policy `default` completes it when it is saved.
type Draft struct {
	given Policy
	named map[string]bool // fields
}

// Read reads a policy from decoded JSON or YAML, in any spelling. Unknown fields are errors that name the field; null means absent. Every refusal
// is a *document.Error.
func Read(value any) (Draft, error) {
	resolved := resolveNames(value, fieldAliases)
	fields, _ := resolved.(map[string]any)
	text, _ := fields["alignment"].(string)
	if alignment, found := originAlignments[text]; found {
		fields = maps.Clone(fields)
		fields["alignment"] = string(alignment)
		resolved = fields
	}
	doc := document.Read(resolveAliases(resolved), fieldNames...)
	d := Draft{named: make(map[string]bool, len(doc.Fields))}
	for field, value := range doc.Fields {
		d.named[field] = value != nil
	}
	p := &d.given
	for _, read := range []func(*document.Reader){
		p.readTexts, p.readSchedule, p.readTimes, p.readRetries, p.readAlignment, p.Classes.read, p.Misfire.read, p.readLimits, p.readCircuit,
		p.readGuard, p.readNotify,
	} {
		if read(doc); doc.Err() != nil {
			return Draft{}, doc.Err()
		}
	}
	strategy, _, _ := parseRetries(doc.Fields["retries"])
	_, counted := strategy.(Backoff) // also to 0: then the first failure is the last
	if p.OnExhausted == "" && (p.MaxRetries() > 0 || counted && p.Retries == nil) && ofSource(value) {
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
	if d.given.MaxRetries() == 0 {
		end = NextPlanned
	}
	p := d.with(Policy{Timeout: DefaultTimeout, Alignment: AlignPlanned, OnExhausted: end})
	return p, p.checkPairs()
}

// Name is that under which the draft is to be stored; empty: it names none.
func (d Draft) Name() string { return d.given.Name }

// Rename gives the draft a name to be stored under.
func (d Draft) Rename(name string) Draft {
	d.given.Name = name
	return d
}

// Complete fills in a draft from another policy; the policy `default` is filled in from the built-in one. The error is a *document.Error: for more
// than 16 KiB of JSON, or warn_within above fresh_within, or silent_after above timeout.
func (d Draft) Complete(usual Policy) (Policy, error) {
	if d.given.Name == DefaultName {
		usual = Default()
	}
	p := d.with(usual)
	if err := p.checkPairs(); err != nil {
		return p, err
	}
	return p, p.CheckSize()
}

// CompleteInline is Complete of an inline policy, with its ContentName and its canonical JSON.
func (d Draft) CompleteInline(usual Policy) (p Policy, name, text string, err error) {
	p = d.with(usual)
	if err = p.checkPairs(); err == nil {
		text = p.canonical()
		name, err = contentName(text), checkSize(text)
	}
	return p, name, text, err
}

func (d Draft) takes(f field) bool { return f.take != nil && !d.named[f.name] && !d.named[f.with] }

func (d Draft) with(usual Policy) Policy {
	p := d.given
	for _, f := range fields {
		if d.takes(f) {
			f.take(&p, &usual)
		}
	}
	return p
}

// Partial reports whether something is missing, see Missing.
func (d Draft) Partial() bool { return slices.ContainsFunc(fields, d.takes) }

// Missing lists the fields that are taken from the policy `default`, in their canonical order.
func (d Draft) Missing() (names []string) {
	for _, f := range fields {
		if d.takes(f) {
			names = append(names, f.name)
		}
	}
	return names
}

const maxPolicyBytes = 16 << 10

// CheckSize refuses a policy that is too large to be stored.
func (p Policy) CheckSize() error { return checkSize(p.canonical()) }

func checkSize(canonical string) error {
	if n := len(canonical); n > maxPolicyBytes {
		return document.Refuse("", fmt.Sprintf("at most %d bytes of JSON", maxPolicyBytes), strconv.Itoa(n))
	}
	return nil
}
