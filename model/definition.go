package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Refresh says when the first attempt after a save starts.
type Refresh string

const (
	// RefreshDefault is RefreshPlanned with a schedule; a changed one-shot, and a failing or failed model with a new payload, start now.
	RefreshDefault Refresh = ""
	// RefreshNow starts at once, or again when the running attempt ends.
	RefreshNow Refresh = "now"
	// RefreshPlanned waits for the schedule.
	RefreshPlanned Refresh = "planned"
)

// Definition is saved by an application or a person: one document of `model put`, or a control message of type put.
type Definition struct {
	UID      string
	Payload  string // canonical JSON object
	Rule     string // empty: one-shot
	Timezone string
	Dtstart  string // canonical wall clock; empty: keep the stored one, or midnight of today in that zone
	Refresh  Refresh
	// PolicyName is a stored policy's name, or the content name of Inline; empty: the default policy.
	PolicyName string
	// Inline is a policy inside the definition. Complete adds the fields of the policy `default`. It is shared: do not change it.
	Inline *policy.Policy
	Labels map[string]string // for selectors; nil: none

	inline  *inline // nil: it brings none along
	refused error   // why it cannot be completed
}

var definitionFields = []string{"uid", "payload", "rrule", "timezone", "dtstart", "refresh", "policy", "labels"}

// ParseDefinition reads one definition from decoded JSON or YAML. The policy may be a json.RawMessage. Unknown fields are errors that name the
// field.
func ParseDefinition(value any) (d Definition, err error) {
	doc := document.Read(value, definitionFields...)
	d.UID = doc.Text("uid")
	doc.Fail(document.ValidateUID(d.UID))
	d.Payload, err = canonicalPayload(doc.Fields["payload"])
	doc.Fail(err)
	read := schedule.ReadFields(doc)
	d.Rule, d.Timezone, d.Dtstart = read.Rule, read.Timezone, read.Dtstart
	d.Refresh = Refresh(doc.OneOf("refresh", "", string(RefreshNow), string(RefreshPlanned)))
	d.Labels = readLabels(doc)
	if doc.Err() != nil {
		return d, doc.Err()
	}
	return d, d.readPolicy(doc.Fields["policy"])
}

func (d *Definition) readPolicy(value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if !document.IsUID(v) {
			return document.Refuse("policy", "a policy, or the name of a stored one", document.Found(v))
		}
		d.PolicyName = v
		return nil
	case json.RawMessage:
		return d.bring(remembered.read(v))
	default:
		return d.bring(readInline(v))
	}
}

func (d *Definition) bring(own *inline, err error) error {
	if err != nil {
		return document.Place(err, "policy")
	}
	d.inline, d.Inline, d.PolicyName = own, own.policy, own.name
	return nil
}

// Partial reports whether the definition brings along a policy that leaves something to the policy `default`.
func (d *Definition) Partial() bool { return d.inline != nil && d.inline.draft.Partial() }

// Complete completes the policy that the definition brings along with the policy `default` as it is stored now.
func (d *Definition) Complete(usual policy.Policy) { CompleteAll([]*Definition{d}, usual) }

// CompleteAll is Complete of each definition. Those that share a policy go on sharing it.
func CompleteAll(definitions []*Definition, usual policy.Policy) {
	type completed struct {
		own *inline
		err error
	}
	known, text := make(map[*policy.Draft]completed), textOf(usual)
	for _, d := range definitions {
		d.refused = nil
		if !d.Partial() || d.inline.usual == text {
			continue
		}
		c, is := known[d.inline.draft]
		if !is {
			c.own, c.err = completeInline(d.inline.draft, usual, text)
			known[d.inline.draft] = c
		}
		d.refused = d.bring(c.own, c.err)
	}
}

// policyText is the canonical JSON of the policy that the definition brings along; empty: none.
func (d *Definition) policyText() string {
	if d.inline == nil {
		return ""
	}
	return d.inline.text
}

// Put saves a definition at now. The caller has resolved its policy; exists: the model is stored. A change begins a new cycle of attempts, and
// enables a model that a failure has disabled; one that was disabled by hand stays so. `refresh: now` always starts an attempt. So does a new
// payload of a failing or failed model: it is taken for the cure.
func (m *Model) Put(d Definition, policy policy.Policy, exists bool, now time.Time) (Decision, Outcome, error) {
	return m.put(d, policy, exists, now, schedule.Parse)
}

func (m *Model) put(d Definition, policy policy.Policy, exists bool, now time.Time, compile schedule.Compile) (Decision, Outcome, error) {
	saved, err := m.define(d, policy, now, compile)
	if err != nil {
		return Decision{}, Unchanged, err
	}
	changed, replaced := !exists || !m.sameDefinition(saved), exists && m.Payload != saved.Payload
	cured := replaced && (m.Disabled || m.Held() || !m.FailingSince.IsZero())
	stopped := m.DisabledBy == StoppedByHand
	asked := !stopped && (d.Refresh == RefreshNow || d.Refresh == RefreshDefault && cured)
	start := asked || !stopped && d.Refresh == RefreshDefault && changed && saved.OneShot()
	decision := Decision{Event: EventUpdate, Next: m.State, Definition: saved, PolicyText: d.policyText()}
	if !changed && !start {
		if maps.Equal(m.Labels, saved.Labels) {
			return Decision{}, Unchanged, nil
		}
		if !m.Held() {
			m.unpark(&decision.Next, now) // the target stays the same, but a hold may no longer select it, and its key may change
		}
		return decision, Applied, nil
	}
	if !exists {
		decision.Event = EventCreate
	}
	if !stopped && (changed || m.Disabled || start && m.windowEnded(&m.State, now)) {
		decision.Next.enable(now)
	}
	switch {
	case stopped:
		decision.Next.AttemptNo = 0
	case m.Running():
		saved.renew(&decision, m, asked, start || replaced && d.Refresh != RefreshPlanned)
	default:
		saved.resume(&decision.Next, asked, start, now)
	}
	return decision, Applied, nil
}

// renew gives the saved definition to a running attempt. A queued entry is replaced in its place. If a worker has it already, the model starts
// again afterwards, and a result about the old payload does not count.
func (m *Model) renew(decision *Decision, before *Model, asked, again bool) {
	next, replaced := &decision.Next, m.Payload != before.Payload
	next.AttemptNo = max(1, next.AttemptNo)
	next.EntryPlannedAt, _ = m.planned(next.StartedAt)
	if before.Taken {
		next.Again, next.Outdated = next.Again || again, next.Outdated || replaced
	} else {
		if decision.MustBeQueued = again || replaced; replaced {
			next.Fence++ // a worker that was forgotten may still work on the payload before
		}
		if asked { // if no worker takes it, the next one is the requested one
			next.Trigger, next.PlannedFor = TriggerChange, time.Time{}
		}
	}
	m.expectTimeout(next)
	if entry := m.entry(next); decision.MustBeQueued || entry != before.Entry() {
		decision.Message = entry
	}
}

func (m *Model) define(d Definition, policy policy.Policy, now time.Time, compile schedule.Compile) (*Model, error) {
	saved := *m
	saved.UID, saved.Payload, saved.PolicyName, saved.Policy = d.UID, d.Payload, d.PolicyName, policy
	saved.Rule, saved.Timezone, saved.Labels, saved.Fault = d.Rule, d.Timezone, d.Labels, ""
	DeriveHost(&saved, m.Host)
	if d.Payload != m.Payload {
		if err := m.Wire.refuseReserved(d.Payload, fenceNames...); err != nil {
			return nil, err
		}
	}
	switch {
	case saved.OneShot() && d.Dtstart != "":
		return nil, document.Refuse("rrule", "a rule, as dtstart is given", "nothing")
	case saved.OneShot() && d.Refresh == RefreshPlanned:
		return nil, document.Refuse("refresh", "now, as there is no rrule to plan with", `"planned"`)
	}
	if _, err := schedule.Zone(d.Timezone); err != nil {
		return nil, err
	}
	saved.Dtstart = d.Dtstart
	if saved.Rule != "" {
		saved.Dtstart = cmp.Or(d.Dtstart, m.Dtstart)
	}
	if saved.Rule != "" && saved.Dtstart == "" {
		var err error
		if saved.Dtstart, err = schedule.Midnight(now, d.Timezone); err != nil {
			return nil, err
		}
	}
	if err := saved.Resolve(policy, compile); err != nil {
		return &saved, err
	}
	if saved.Rule != "" && saved.Rule == m.Rule && saved.Timezone == m.Timezone && m.Schedule != nil && saved.Schedule.SameAfter(m.Schedule, now) {
		saved.Dtstart = m.Dtstart // so that an import of each day's midnight changes nothing
	}
	return &saved, nil
}

func (m *Model) sameDefinition(other *Model) bool {
	return m.Payload == other.Payload && m.Rule == other.Rule && m.Timezone == other.Timezone &&
		m.Dtstart == other.Dtstart && m.PolicyKey() == other.PolicyKey()
}

// PolicyKey is the name under which the policy is stored: a model that names none has the policy `default`.
func (m *Model) PolicyKey() string { return cmp.Or(m.PolicyName, policy.DefaultName) }

const whyNow = "saved: refresh now"

// resume sets the next refresh of a saved model. A model that is due stays due.
func (m *Model) resume(next *State, asked, start bool, now time.Time) {
	switch {
	case asked:
		m.unpark(next, now)
		next.dueNow(now, whyNow)
	case next.Due(now), next.Parked() && !next.Held():
		m.unpark(next, now)
		next.Why, next.Trigger = "saved while due", next.Trigger.started()
	case start:
		next.wait(now, TriggerPlanned, whyNow)
		next.NotBefore = time.Time{}
	default:
		if next.Held() {
			m.unpark(next, now)
		}
		waits, trigger := next.RefreshAt, next.Trigger.started()
		m.plan(next, now)
		if next.RefreshAt.IsZero() && !waits.IsZero() { // with nothing planned, only the end of its wait will ever start it
			next.wait(waits, trigger, "saved while waiting: nothing planned")
		}
	}
}

// MaxLabels is how many labels a model may have.
const MaxLabels = 8

// isLabel is no regular expression, as a walk over a million models looks at each label: those take ten times as long.
func isLabel(text string, most int, signs string) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune(signs, c)
	})
}

func isLabelName(name string) bool {
	return isLabel(name, 32, "_.-") && name[0] >= 'a' && name[0] <= 'z'
}

func isLabelValue(value string) bool { return isLabel(value, 60, "_.:/@+-ABCDEFGHIJKLMNOPQRSTUVWXYZ") }

// ValidateLabel accepts a name of 1 to 32 small letters, digits and _.- that begins with a letter, and a value of 1 to 60 letters, digits and
// _.:/@+-
func ValidateLabel(name, value string) error {
	refuse := func(want, found string) error {
		return document.Refuse("labels."+document.Shorten(name, document.MaxFound), want, found)
	}
	switch {
	case !isLabelName(name):
		return refuse("a name of 1-32 small letters, digits or _.- (first a letter)", document.Found(name))
	case slices.Contains(reservedNames, name):
		return refuse("a name other than "+strings.Join(reservedNames, ", "), "one that means something else in a selector")
	case !isLabelValue(value):
		return refuse("a value of 1-60 letters, digits or _.:/@+-", document.Found(value))
	default:
		return nil
	}
}

func readLabels(doc *document.Reader) map[string]string {
	value := doc.Fields["labels"]
	if value == nil {
		return nil
	}
	fields, is := value.(map[string]any)
	if doc.Require(is, "labels", "an object such as {tenant: t1}"); len(fields) > MaxLabels {
		doc.Refuse("labels", fmt.Sprintf("at most %d", MaxLabels), fmt.Sprint(len(fields)))
	}
	if doc.Err() != nil || len(fields) == 0 {
		return nil
	}
	labels := make(map[string]string, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one := document.Reader{Fields: fields}
		text, _ := one.Scalar(name)
		doc.Fail(document.Place(one.Err(), "labels"))
		doc.Fail(ValidateLabel(name, text))
		labels[name] = text
	}
	return labels
}

// LabelTerms are labels as a selector and the keys of their sets write them, such as tenant=t1, sorted.
func LabelTerms(labels map[string]string) []string {
	terms := make([]string, 0, len(labels))
	for name, value := range labels {
		terms = append(terms, name+"="+value)
	}
	slices.Sort(terms)
	return terms
}
