// Package explain explains one model: its state, why it refreshes when it does, how its last attempts ended, and what follows if the next one
// succeeds, fails or times out. It writes sentences for the command line and the dashboard. They may hold texts from outside, which the caller must
// escape.
package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// Explanation is a model explained, at one instant and on the clock of its schedule.
type Explanation struct {
	View

	Attempts []model.Attempt // that ended last, newest first
	Forecast model.Forecast
	// WaitsFor blocks the next start until an unknown time; "": nothing does.
	WaitsFor model.Blocker

	m         *model.Model
	zone      *time.Location
	ui        hint.UI
	place     report.QueuePosition // of a queued attempt
	alike     report.FailureGroup  // with the same fingerprint
	admission flow.Admission
}

// Read reads a model that must be stored, with all that explains it.
func Read(ctx context.Context, part *store.Store, uid string) (*Explanation, error) {
	found, attempts, err := ReadPast(ctx, part, uid)
	if err != nil {
		return nil, err
	}
	if err := found.ReadLiveness(ctx, part); err != nil {
		return nil, err
	}
	record := found.Record
	s := &Explanation{View: found, Attempts: attempts, m: &record.Model, zone: ZoneOf(&record.Model)}
	if s.admission, err = flow.Inspect(part).Admission(ctx, s.m, s.Now); err != nil {
		return nil, err
	}
	s.Forecast, s.WaitsFor = s.admission.Blockers.Forecast(s.m, &s.admission.Rooms, s.Now)
	if found.Status == model.StatusQueued || found.Status == model.StatusDue {
		if s.place, err = report.Of(part).QueuePosition(ctx, record); err != nil {
			return nil, err
		}
	}
	if id := record.FingerprintID; id != "" {
		if s.alike, err = report.Of(part).FailingAlike(ctx, id); err != nil {
			return nil, err
		}
	}
	s.m.Fault = cmp.Or(s.m.Fault, s.Forecast.RuleError)
	return s, nil
}

// In chooses another zone, and the hints of another user interface.
func (s *Explanation) In(zone *time.Location, ui hint.UI) {
	s.zone, s.ui, s.apart = zone, ui, ui == hint.Dashboard
}

func (s *Explanation) clock(at time.Time) string { return words.Clock(at, s.Now, s.zone) }

// ZoneOf is the zone of the schedule in force, UTC if it names none.
func ZoneOf(m *model.Model) *time.Location {
	zone, err := schedule.Zone(m.Zone())
	if err != nil { // a model with a fault; its schedule is not in force either
		return time.UTC
	}
	return zone
}

// Summary is a model at a glance, in sentences without a zone: the page or the line above names it.
type Summary struct {
	State string `json:"state"` // what it is, and why
	Next  string `json:"next"`  // with its time and reason
	Last  string `json:"last"`  // its last success
	Act   bool   `json:"act"`   // somebody must act
}

// Summarize describes the model at a glance.
func (s *Explanation) Summarize() Summary {
	missing := s.Missing()
	act := s.Record.Broken || s.m.Fault != "" || s.m.DisabledBy == model.StoppedByPolicy || s.m.Held() || missing != nil && missing.Certain
	blocker, until := s.blocked()
	kind, name := blocker.Split()
	because := StopText(&s.admission.Blockers, blocker, until, s.clock)
	if s.opened(blocker) {
		because = kind + " " + name + " held it back"
	}
	state := s.state(s.clock, s.Attempts, because)
	if blocker != "" && (kind == model.BlockerHold || s.WaitsFor == blocker) && !s.m.Parked() {
		state = join(state, words.Sentence(because))
	}
	return Summary{State: state, Next: join(s.nextText(), s.ends()), Last: FreshnessText(s.m, s.clock), Act: act}
}

// Heading names the model, the time and its zone.
func (s *Explanation) Heading() string {
	return s.m.UID + " at " + s.clock(s.Now) + " (" + s.zone.String() + ")"
}

// Story is all about the present: the state, the last success, what stops the model or may, and what happens next.
func (s *Explanation) Story() []string {
	t := s.Summarize()
	return slices.Concat([]string{t.State, t.Last}, s.Stops(), []string{t.Next})
}

// FreshnessText describes the last success of a model, and its freshness.
func FreshnessText(m *model.Model, when func(time.Time) string) string {
	text := "Never succeeded."
	if !m.LastSuccessAt.IsZero() {
		text = "Last success at " + when(m.LastSuccessAt) + "."
	}
	switch m.Freshness {
	case model.FreshnessStale:
		return text + " Stale since " + when(m.StaleAt) + "."
	case model.FreshnessLate:
		return text + " It is late already, and becomes stale at " + when(m.StaleAt) + "."
	case model.FreshnessNever:
		return "Its policy expects a first success before " + when(m.StaleAt) + "."
	default:
		return text
	}
}

// join joins sentences, without empty ones.
func join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(one string) bool { return one == "" }), " ")
}

func (s *Explanation) at(at time.Time) string { return words.At(at, s.Now, s.zone) }

// Trace lists the rule, the policy, and the numbers behind the end of each attempt, the oldest first.
func (s *Explanation) Trace() []string {
	inForce, _ := json.Marshal(s.m.Policy) // it was read from JSON
	lines := []string{"rule: " + cmp.Or(s.m.Rule, s.m.Policy.Rule, "none"), "policy " + s.m.PolicyKey() + ": " + string(inForce)}
	for _, a := range slices.Backward(s.Attempts) {
		lines = append(lines, s.traced(&a))
	}
	return append(lines, "refresh_why: "+s.m.Why)
}

func (s *Explanation) traced(a *model.Attempt) string {
	clock := func(at time.Time) string {
		if at.IsZero() {
			return "none"
		}
		return s.clock(at)
	}
	text := fmt.Sprintf("%s of attempt %d at %s (%s)", a.Outcome, a.AttemptNo, clock(a.EndedAt), cmp.Or(a.Reason, a.ErrorType, "no reason"))
	if a.Overlap != "" {
		text += fmt.Sprintf("; delay %s, jitter %s; retry %s, planned %s: %s; %s", document.FormatDuration(a.Delay),
			document.FormatDuration(a.Jitter.Round(time.Second)), clock(a.RetryAt), clock(a.PlannedAt), a.Overlap, s.m.Policy.AlignmentName())
	}
	if len(a.Ignored) > 0 {
		text += "; ignored " + strings.Join(a.Ignored, ", ")
	}
	return text + "; next " + clock(a.RefreshAt) + ": " + a.Why
}
