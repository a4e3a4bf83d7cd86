package doctor

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// models reads models all at once; check re-reads those that look broken.
func (c *checker) models(ctx context.Context, uids []string) (check func() error, err error) {
	models, err := c.in.Inspect(ctx, uids)
	var suspicious, payloads []string
	var healthy []*inspect.Inspection
	for _, m := range models {
		if m.PayloadBroken != "" {
			payloads = append(payloads, m.Record.UID)
		}
		if m.Record.Broken || len(c.model(m)) > 0 {
			suspicious = append(suspicious, m.Record.UID)
		} else if m.Record.Exists {
			healthy = append(healthy, m)
		}
	}
	return func() error {
		for _, m := range healthy {
			c.use(m)
		}
		c.report.Models += len(uids)
		if _, err := c.typed(ctx, c.store.Keys.Payload, "string", payloads); err != nil {
			return err
		}
		if _, err := c.typed(ctx, c.store.Keys.Model, "hash", suspicious); err != nil {
			return err
		}
		return c.reread(ctx, suspicious, c.model)
	}, err
}

// use notes the policy that a model uses, and the fingerprint of its failure.
func (c *checker) use(m *inspect.Inspection) {
	u := c.used[m.Record.PolicyName]
	if u.models++; u.example == "" {
		u.example = m.Record.UID
	}
	c.used[m.Record.PolicyName] = u
	if id := m.Record.FingerprintID; id != "" {
		c.failing[id]++
	}
}

// model lists the faults of a model. One that does not exist any more has none.
func (c *checker) model(m *inspect.Inspection) (findings []Finding) {
	note := func(k kind, found string) { findings = append(findings, k.at(m.Record.UID, found)) }
	switch {
	case !m.Record.Exists, m.Record.Broken: // the check of keys reports that
		return nil
	case m.Field != "":
		note(modelField, m.Field) // then the fields do not show the sets
	default:
		findings = c.state(m)
	}
	if home, own := c.store.Home(m.Record.UID); !own {
		here := c.store.Keys.Queue
		k := wrongPart.wanting(home.Queue)
		k.repair += "'" + here + "'"
		note(k, "in "+here)
	}
	if m.Schedule != "" {
		note(modelSchedule, m.Schedule)
	}
	switch {
	case m.PayloadBroken != "": // the check of keys reports that
	case !m.Payload:
		note(payloadMissing, "none: workers get only the uid")
	case !json.Valid([]byte(m.Record.Payload)) || !strings.HasPrefix(strings.TrimSpace(m.Record.Payload), "{"):
		note(payloadObject, document.Found(m.Record.Payload))
	}
	if m.RevBroken() {
		note(modelRev, "rev: "+document.Found(m.Record.Rev()))
	}
	return findings
}

// state checks that the state makes sense in itself, and then that all sets say the same.
func (c *checker) state(m *inspect.Inspection) (findings []Finding) {
	uid, s := m.Record.UID, &m.Record.State
	var attempt, busy []string
	if s.Running() {
		attempt, busy = append(attempt, "attempt_uid"), append(busy, "attempt_uid")
	}
	if !s.StartedAt.IsZero() {
		attempt = append(attempt, "started_at")
	}
	if !s.DeadlineAt.IsZero() {
		attempt = append(attempt, "deadline_at")
	}
	if !s.RefreshAt.IsZero() {
		busy = append(busy, "refresh_at")
	}
	if len(attempt) == 1 || len(attempt) == 2 {
		findings = append(findings, attemptTorn.at(uid, strings.Join(attempt, " and ")))
	}
	if s.Disabled && len(busy) > 0 {
		findings = append(findings, disabledBusy.at(uid, strings.Join(busy, " and ")))
	}
	if s.ParkedBy != "" && !s.Parked() {
		findings = append(findings, parkedTorn.at(uid, "parked_by "+document.Found(string(s.ParkedBy))+" of one that does not wait"))
	}
	if len(findings) > 0 {
		return findings // a state that makes no sense says nothing about the sets
	}
	for i, set := range store.ScoreIndexes {
		findings = append(findings, checkSet(set, m, m.Sets[i])...)
	}
	for _, s := range m.Indexes {
		if !s.Says || s.Is.Unknown || s.Is.In && (s.At.IsZero() || s.Is.At(s.At)) {
			continue
		}
		where, found := c.store.Keys.Index(s.Index), "it is not there"
		if !s.At.IsZero() {
			where += " at " + model.FormatTime(s.At)
		}
		if s.Is.In {
			found = "there at " + formatScore(s.Is.Score)
		}
		findings = append(findings, indexWrong(s.Kind).wanting(where).at(uid, found))
	}
	if s.Disabled || s.Running() || !s.RefreshAt.IsZero() || m.Schedule != "" || m.PolicyMissing || m.Sets[0].In { // of due, the first
		return findings
	}
	if planned := m.Record.Planned(c.now); !planned.IsZero() { // nothing will ever start it, although its schedule goes on
		findings = append(findings, modelIdle.wanting(model.FormatTime(planned)).at(uid, "none: "+document.Found(m.Record.Why)))
	}
	return findings
}

func formatScore(ms float64) string {
	if ms == float64(int64(ms)) && ms >= 0 && ms < 253402300800000 {
		return model.FormatTime(time.UnixMilli(int64(ms)))
	}
	return strconv.FormatFloat(ms, 'g', -1, 64)
}
