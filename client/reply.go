package client

import (
	"errors"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/model"
)

// Outcome is the result of a command.
type Outcome string

// The outcomes.
const (
	Applied   Outcome = "applied"
	Unchanged Outcome = "unchanged" // there was nothing to change
	Duplicate Outcome = "duplicate" // the same command was handled before
	Refused   Outcome = "refused"   // see RefusedError
)

// Reply is the answer to a command. Applied to a run, it means that the model is due, not that it was refreshed.
type Reply struct {
	ID      string    `json:"command_id"`
	UID     string    `json:"uid"`
	Type    string    `json:"type"`
	Outcome Outcome   `json:"outcome"`
	At      time.Time `json:"at"`
	// Of a refusal: its counter, its reason, and the parts of the reason.
	Counter  string `json:"counter"`
	Reason   string `json:"reason"`
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// ErrNoReply says that no poller has answered in time: the command may be carried out yet.
var ErrNoReply = errors.New("no reply to the command")

// What a RefusedError is, by errors.Is. Any other counter is a command that was wrong by itself.
var (
	ErrBusy         = errors.New("an attempt of the model is queued or running")
	ErrStopped      = errors.New("the model was disabled by hand")
	ErrUnknownModel = errors.New("there is no model of that name")
)

var causes = map[string]error{string(model.Busy): ErrBusy, string(model.Stopped): ErrStopped, string(model.UnknownModel): ErrUnknownModel}

var hints = map[error]hint.Hint{ErrBusy: hint.ReplaceAttempt, ErrStopped: hint.EnableByRun, ErrUnknownModel: hint.FindModel}

// RefusedError says that a command was refused, and why. It is ErrBusy, ErrStopped or ErrUnknownModel for one of those reasons.
type RefusedError struct{ Reply Reply }

// Error is the reason, with a hint in words of this package, not of the control list.
func (e *RefusedError) Error() string {
	cause, is := causes[e.Reply.Counter]
	if !is {
		return e.Reply.Reason
	}
	reason := strings.TrimSuffix(e.Reply.Reason, ". "+hint.Text(hints[cause], hint.Message, e.Reply.UID))
	return reason + ". " + hint.Text(hints[cause], hint.Client, e.Reply.UID)
}

// Is compares with one of the reasons above.
func (e *RefusedError) Is(target error) bool { return causes[e.Reply.Counter] == target }
