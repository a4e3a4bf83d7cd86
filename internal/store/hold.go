package store

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// HoldChanges is the field of <queue>:holds that counts how often they have changed. No hold has its name.
const HoldChanges = "changes"

// holdText is a hold as it is stored.
type holdText struct {
	Selector string `json:"selector"`
	Since    string `json:"since"`
	Until    string `json:"until,omitempty"`
	Within   string `json:"within,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

func writeHold(h *model.Hold) string {
	text := holdText{
		Selector: h.Selector.String(), Since: model.FormatTime(h.Since), Until: model.FormatTime(h.Until),
		Reason: document.Shorten(h.Reason, document.MaxText), By: document.Shorten(h.By, model.MaxBy),
	}
	if h.Within > 0 {
		text.Within = document.FormatDuration(h.Within)
	}
	raw, _ := json.Marshal(text) // texts only
	return string(raw)
}

// ReadHold reads a stored hold. One of which a part cannot be read holds what can be read of it: to let models start is worse than to hold
// too many.
func ReadHold(id, raw string) (model.Hold, error) {
	h := model.Hold{ID: id}
	var text holdText
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return h, document.Refuse("holds."+id, "a JSON object", document.Found(raw))
	}
	h.Reason, h.By = text.Reason, text.By
	var errs [4]error
	h.Selector, errs[0] = model.ParseSelector(text.Selector)
	h.Since, errs[1] = readStoredTime(text.Since)
	h.Until, errs[2] = readStoredTime(text.Until)
	if text.Within != "" {
		h.Within, errs[3] = document.ParseDuration(text.Within)
	}
	return h, document.Place(cmp.Or(errs[0], errs[1], errs[2], errs[3]), "holds."+id)
}

func readStoredTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

func compareHolds(a, b model.Hold) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}
