package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// reply is what the sender of a command is told.
type reply struct {
	ID      string `json:"command_id,omitempty"`
	UID     string `json:"uid,omitempty"`
	Type    string `json:"type,omitempty"`
	Outcome string `json:"outcome"`
	// Of what was refused: where it is counted, why, and that in its parts if it has any.
	Counter  string `json:"counter,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Field    string `json:"field,omitempty"`
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	At       string `json:"at"`
}

// maxReason bounds each text of a reply, in bytes.
const maxReason = 1000

// Reply renders what became of the command at now as one JSON object, in which Applied, Unchanged and Duplicate are called by their names
// and any other outcome is refused, for a reason.
func (c *Command) Reply(outcome Outcome, reason error, now time.Time) string {
	r := reply{ID: c.ID, Type: document.Shorten(string(c.Type), document.MaxFound), At: FormatTime(now)}
	if document.IsUID(c.UID) {
		r.UID = c.UID
	}
	switch outcome {
	case Applied, Unchanged, Duplicate:
		r.Outcome = string(cmp.Or(outcome, "applied"))
	default:
		r.Outcome, r.Counter, r.Reason = "refused", string(outcome), document.Shorten(reason.Error(), maxReason)
		if refused, is := errors.AsType[*document.Error](reason); is {
			r.Field, r.Expected, r.Found = document.Shorten(refused.Field, maxReason), document.Shorten(refused.Want, maxReason), refused.Found
		}
	}
	text, _ := json.Marshal(r) // texts only
	return string(text)
}
