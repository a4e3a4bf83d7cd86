package explain

import (
	"github.com/refreshd/refreshd/model"
)

// Telling is a model at a glance, in sentences.
type Telling struct {
	State string `json:"state"` // what it is, and why
	Next  string `json:"next"`  // what happens next, when, and why
	Last  string `json:"last"`  // its last success
	Act   bool   `json:"act"`   // somebody must act: it does not come right by itself
}

// Tell tells of the model at a glance.
func (s *Explanation) Tell() Telling {
	t := Telling{State: s.StatusText() + ".", Next: s.Next()[0] + ".", Last: "It has never succeeded."}
	if at := s.m.LastSuccessAt; !at.IsZero() {
		t.Last = "The last success was at " + s.clock(at) + "."
	}
	missing := s.Missing()
	t.Act = s.Record.Broken || s.m.Fault != "" || s.m.StoppedBy() == model.StoppedByPolicy || missing != nil && missing.Certain
	return t
}
