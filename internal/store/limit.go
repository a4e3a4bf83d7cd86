package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// limitText is a limit as it is stored.
type limitText struct {
	Running int    `json:"running,omitempty"`
	Rate    string `json:"rate,omitempty"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}

func writeLimit(l *model.Limit) string {
	raw, _ := json.Marshal(limitText{ // texts and a number
		l.Running, l.Rate.String(), model.FormatTime(l.Since), model.FormatTime(l.Until), document.Shorten(l.Reason, document.MaxText), document.Shorten(l.By, model.MaxBy),
	})
	return string(raw)
}

// ReadLimit reads the JSON of a limit.
func ReadLimit(name, raw string) (model.Limit, error) {
	l := model.Limit{Name: name}
	var text limitText
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return l, document.Refuse("limits."+name, "a JSON object", document.Found(raw))
	}
	l.Running, l.Reason, l.By = text.Running, text.Reason, text.By
	var errs [3]error
	l.Since, errs[0] = readStoredTime(text.Since)
	l.Until, errs[1] = readStoredTime(text.Until)
	if text.Rate != "" {
		l.Rate, errs[2] = policy.ParseRate(text.Rate)
	}
	return l, document.Place(cmp.Or(errs[0], errs[1], errs[2]), "limits."+name)
}

var forgetLimits = Load("forget-limits.lua")

// EndedLimit is a limit that was set at run time and has ended, as it is stored.
type EndedLimit struct{ name, text string }

// endedLimits finds the texts of limits among fields and values.
func endedLimits(names, fields []string) (ended []EndedLimit) {
	for pair := range slices.Chunk(fields, 2) {
		if slices.Contains(names, pair[0]) {
			ended = append(ended, EndedLimit{pair[0], pair[1]})
		}
	}
	return ended
}

// ForgetLimits forgets limits that have ended, but not what was set anew since they were read.
func (s *Store) ForgetLimits(ctx context.Context, ended []EndedLimit) error {
	var args []any
	for _, limit := range ended {
		args = append(args, limit.name, limit.text)
	}
	_, err := Run(ctx, s.Clients.Write, forgetLimits, []string{s.Keys.Limits()}, args...).Int()
	return Wrap(err, "forget limits that have ended")
}
