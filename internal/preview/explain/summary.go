package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

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
	act := s.Record.Broken || s.m.Fault != "" || s.m.StoppedBy() == model.StoppedByPolicy || s.m.Held() || missing != nil && missing.Certain
	blocker, until := s.blocked()
	kind, name := blocker.Split()
	because := StopText(&s.admission.Gates, blocker, until, s.clock)
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
