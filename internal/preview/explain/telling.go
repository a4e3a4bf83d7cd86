package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// Telling is a model at a glance, in sentences without a zone: the page or the line above names it.
type Telling struct {
	State string `json:"state"` // what it is, and why
	Next  string `json:"next"`  // what happens next, when, and why
	Last  string `json:"last"`  // its last success
	Act   bool   `json:"act"`   // somebody must act: it does not come right by itself
}

// Tell tells of the model at a glance.
func (s *Explanation) Tell() Telling {
	missing := s.Missing()
	act := s.Record.Broken || s.m.Fault != "" || s.m.DisabledBy == model.StoppedByPolicy || s.m.Held() || missing != nil && missing.Certain
	gate, until := s.blocked()
	kind, name := gate.Split()
	blocker := StopText(&s.admission.Blockers, gate, until, s.clock)
	if s.opened(gate) {
		blocker = kind + " " + name + " held it back"
	}
	state := s.state(s.clock, s.Attempts, blocker)
	if gate != "" && (kind == model.BlockerHold || s.Gate == gate) && !s.m.Parked() {
		state = join(state, words.Sentence(blocker))
	}
	return Telling{State: state, Next: join(s.tellNext(), s.ends()), Last: FreshnessText(s.m, s.clock), Act: act}
}

// Heading names the model, the time of what is told, and its zone.
func (s *Explanation) Heading() string {
	return s.m.UID + " at " + s.clock(s.Now) + " (" + s.zone.String() + ")"
}

// Story is all that is told of the present: the state, the last success, what stops the model or may stop it, and what happens next.
func (s *Explanation) Story() []string {
	t := s.Tell()
	return slices.Concat([]string{t.State, t.Last}, s.Stops(), []string{t.Next})
}

// FreshnessText tells of the last success of a model, and what its policy says to that.
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

// join joins those sentences that are not empty.
func join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(one string) bool { return one == "" }), " ")
}

// at says when something happens next.
func (s *Explanation) at(at time.Time) string { return words.At(at, s.Now, s.zone) }
