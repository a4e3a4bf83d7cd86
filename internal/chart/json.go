package chart

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/refreshd/refreshd/model"
)

// eventView is an event as JSON shows it.
type eventView struct {
	Policy     string  `json:"policy,omitempty"`
	At         string  `json:"at"`
	Event      Kind    `json:"event"`
	AttemptNo  int     `json:"attempt_no"`
	RefreshAt  *string `json:"refresh_at"`
	DeadlineAt *string `json:"deadline_at"`
	Why        string  `json:"why"`
	Reason     string  `json:"reason,omitempty"`
}

type summaryView struct {
	Policy  string  `json:"policy,omitempty"`
	Summary Summary `json:"summary"`
}

// JSON writes one object a line: the events, and as the last one the summary. With several charts every object also names
// its policy. Times are those of model.FormatTime, in UTC.
func JSON(w io.Writer, charts ...Chart) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range charts {
		policy := ""
		if len(charts) > 1 {
			policy = charts[i].name()
		}
		if err := encodeChart(encoder, policy, &charts[i]); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}

func encodeChart(encoder *json.Encoder, policy string, chart *Chart) error {
	for _, event := range ordered(chart.Events) {
		view := eventView{
			Policy: policy, At: model.FormatTime(event.At), Event: event.Kind, AttemptNo: event.AttemptNo,
			RefreshAt: optional(event.RefreshAt), DeadlineAt: optional(event.DeadlineAt), Why: event.Why, Reason: event.Reason,
		}
		if err := encoder.Encode(view); err != nil {
			return err
		}
	}
	return encoder.Encode(summaryView{policy, chart.Summary()})
}

func optional(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := model.FormatTime(at)
	return &text
}
