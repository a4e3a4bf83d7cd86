package chart

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// JSON writes one object a line: the events, and as the last one the summary. With several charts every object also names
// its policy. Times are those of model.FormatTime, in UTC.
func JSON(w io.Writer, charts ...Chart) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encode := func(view any) { _ = encoder.Encode(view) } // texts and numbers into a builder: it cannot fail
	for _, r := range readAll(charts) {
		policy := ""
		if len(charts) > 1 {
			policy = r.name()
		}
		for _, event := range r.Events {
			encode(struct {
				Policy     string  `json:"policy,omitempty"`
				At         string  `json:"at"`
				Event      Kind    `json:"event"`
				AttemptNo  int     `json:"attempt_no"`
				RefreshAt  *string `json:"refresh_at"`
				DeadlineAt *string `json:"deadline_at"`
				Why        string  `json:"why"`
				Reason     string  `json:"reason,omitempty"`
			}{
				policy, model.FormatTime(event.At), event.Kind, event.AttemptNo,
				optional(event.RefreshAt), optional(event.DeadlineAt), event.Why, event.Reason,
			})
		}
		encode(struct {
			Policy  string  `json:"policy,omitempty"`
			Summary Summary `json:"summary"`
		}{policy, r.summary()})
	}
	return write(w, "events", text.String())
}

func optional(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(model.FormatTime(at))
}
