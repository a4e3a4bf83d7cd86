package doctor

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// models checks models: all at once, and again those that are suspicious, each at one instant.
func (e *examination) models(ctx context.Context, uids []string) error {
	checkups, err := e.store.Inspect(ctx, uids)
	if err != nil {
		return err
	}
	var suspicious []string
	for _, c := range checkups {
		if len(e.diagnose(c)) > 0 {
			suspicious = append(suspicious, c.Record.UID)
		} else if c.Record.Exists {
			e.use(c)
		}
	}
	e.report.Models += len(uids)
	return e.closely(ctx, suspicious, e.diagnose)
}

// closely tells what is wrong with models that looked as if something were, and mends it.
func (e *examination) closely(ctx context.Context, uids []string, diagnose func(*scripts.Inspection) []Finding) error {
	checkups, err := e.store.InspectAtomically(ctx, uids)
	if err != nil {
		return err
	}
	var sick []patient
	for _, c := range checkups {
		if c.Record.Exists {
			e.use(c)
		}
		if findings := diagnose(c); len(findings) > 0 {
			sick = append(sick, patient{c, findings})
		}
	}
	return e.treat(ctx, sick)
}

// use notes which policy a model uses.
func (e *examination) use(c *scripts.Inspection) {
	name := c.Record.PolicyName
	u := e.used[name]
	if u.models++; u.example == "" {
		u.example = c.Record.UID
	}
	e.used[name] = u
}

// diagnose lists what is wrong with a model; one that does not exist any more is healthy.
func (e *examination) diagnose(c *scripts.Inspection) []Finding {
	d := diagnosis{uid: c.Record.UID, now: e.now}
	switch {
	case !c.Record.Exists:
		return nil
	case c.Broken != "":
		d.add(Error, "model-type", "a hash", c.Broken, byHand("RENAME or DEL the key of the model, and save it again"))
		return d.findings
	case c.Field != "":
		// What the fields say of the sets is then unknown.
		d.add(Error, "model-field", "fields that can be read", c.Field, byHand("save the model again, or set the field right with HSET"))
	case d.whole(c):
		d.sets(c)
	}
	d.definition(c)
	if c.RevBroken() {
		d.add(Warning, "model-rev", "rev: a whole number", "rev: "+document.Found(c.Record.Rev()), mendRev)
	}
	return d.findings
}

const (
	mendSets = "--repair writes due and running set anew from the model"
	mendRev  = "--repair gives it one"
)

func byHand(what string) string { return "by hand: " + what }

// diagnosis collects what is wrong with one model.
type diagnosis struct {
	uid      string
	now      time.Time
	findings []Finding
}

func (d *diagnosis) add(severity Severity, code, want, found, repair string) {
	d.findings = append(d.findings, Finding{severity, code, d.uid, want, found, repair, false})
}

// whole reports whether the state makes sense in itself: the fields of an attempt are there together, and not in a disabled model. What
// does not make sense says nothing about the sets.
func (d *diagnosis) whole(c *scripts.Inspection) bool {
	s := &c.Record.State
	has := []bool{s.Running(), !s.StartedAt.IsZero(), !s.DeadlineAt.IsZero()}
	if has[0] != has[1] || has[1] != has[2] {
		d.add(Error, "attempt-torn", "attempt_uid, started_at and deadline_at together or not at all",
			present([]string{"attempt_uid", "started_at", "deadline_at"}, has), byHand("refreshd model run --force "+d.uid))
	}
	if s.Disabled && (s.Running() || !s.RefreshAt.IsZero()) {
		d.add(Error, "disabled-busy", "a disabled model without attempt and refresh_at",
			present([]string{"attempt_uid", "refresh_at"}, []bool{s.Running(), !s.RefreshAt.IsZero()}), byHand("refreshd model enable "+d.uid+", or disable"))
	}
	return len(d.findings) == 0
}

func present(names []string, has []bool) string {
	var there []string
	for i, name := range names {
		if has[i] {
			there = append(there, name)
		}
	}
	return strings.Join(there, " and ")
}

// sets checks that the due and running sets say what the model says.
func (d *diagnosis) sets(c *scripts.Inspection) {
	s := &c.Record.State
	waits := time.Time{}
	if s.Waiting() {
		waits = s.RefreshAt
	}
	d.standing("due", "refresh_at", c.Due, waits)
	d.standing("running", "deadline_at", c.Running, s.DeadlineAt)
	if !s.Disabled && !s.Running() && s.RefreshAt.IsZero() && c.Schedule == "" && !c.PolicyMissing && !c.Due.In {
		d.idle(c)
	}
}

// idle tells a model that nothing will ever start although its schedule goes on.
func (d *diagnosis) idle(c *scripts.Inspection) {
	if planned := c.Record.Planned(d.now); !planned.IsZero() {
		d.add(Warning, "model-idle", "a refresh_at, as the schedule goes on at "+model.FormatTime(planned), "none: "+document.Found(c.Record.Why), byHand("refreshd model run "+d.uid))
	}
}

func (d *diagnosis) standing(set, field string, is scripts.Membership, want time.Time) {
	code := set + "-wrong"
	switch {
	case is.Unknown || want.IsZero() && !is.In || !want.IsZero() && is.At(want):
	case want.IsZero():
		d.add(Error, code, "not in the "+set+" set", "it stands there at "+score(is.Score), mendSets)
	case !is.In:
		d.add(Error, code, "in the "+set+" set at its "+field+" "+model.FormatTime(want), "it is not there", mendSets)
	default:
		d.add(Error, code, "in the "+set+" set at its "+field+" "+model.FormatTime(want), "there at "+score(is.Score), mendSets)
	}
}

// definition checks payload, policy and schedule. Missing policies are told by name, not by model.
func (d *diagnosis) definition(c *scripts.Inspection) {
	if c.Schedule != "" {
		d.add(Error, "model-schedule", "a schedule that can be read", c.Schedule, byHand("save the model again; until then it waits an hour at a time"))
	}
	var object map[string]json.RawMessage
	switch {
	case c.PayloadBroken != "":
		d.add(Error, "payload-unreadable", "a payload", c.PayloadBroken, byHand("DEL its payload key, and save the model again"))
	case !c.Payload:
		d.add(Error, "payload-missing", "a payload, at least {}", "none: workers get only the uid", byHand("save the model again"))
	case json.Unmarshal([]byte(c.Record.Payload), &object) != nil || object == nil:
		d.add(Error, "payload-unreadable", "a JSON object", document.Found(c.Record.Payload), byHand("save the model again"))
	}
}
