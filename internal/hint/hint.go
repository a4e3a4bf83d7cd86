// Package hint says what to do about a refusal, in the words of the user interface: a command, a button, a field of a message, or an argument.
package hint

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// UI is a user interface that shows refusals.
type UI int

// The user interfaces.
const (
	CommandLine UI = iota
	Dashboard
	Message // the control list, and the replies and rejections of it
	Client  // for Go
	UIs     // how many there are
)

// Hint is what to do about a refusal.
type Hint int

// The hints.
const (
	ReplaceAttempt Hint = iota
	EnableByRun
	FindModel
	ConfirmBulk
	WatchBulk
	CancelBulk
	EndHold
	ListHolds
	RemoveUsedPolicy
	SetUsedQueue
	ListWorkers
	ShowFailures
	JudgeSuspect
	Hints // how many there are
)

// texts are the hints by user interface. <name> is the subject of the refusal. Empty: this interface never shows it.
var texts = [Hints][UIs]string{
	ReplaceAttempt: {
		"To replace it: refreshd model run <name> --force", `To replace it, open "Supersede…" and press "Run now, superseding what runs".`,
		`To replace it, send "force": true.`, "To replace it, pass force to Run.",
	},
	EnableByRun: {
		"To enable and run it: refreshd model run <name> --force", `To enable it, press "Enable".`,
		`To enable and run it, send "force": true.`, "To enable and run it, pass force to Run.",
	},
	FindModel:        {CommandLine: "To see all models: refreshd model ls", Dashboard: `The page "Models" shows all models.`, Client: "To save it, call Put."},
	ConfirmBulk:      {CommandLine: "If you mean it, add --yes. Add --dry-run to count them first."},
	WatchBulk:        {CommandLine: "The bulk goes on: refreshd bulk show <name> shows its progress. To end it: refreshd bulk cancel <name>"},
	CancelBulk:       {CommandLine: "It may have begun. To end it: refreshd bulk cancel <name>", Dashboard: `It may have begun. To end it, press "Cancel" on the page "Steering".`},
	EndHold:          {CommandLine: "It may have begun in some parts. To end it: refreshd release <name>", Dashboard: `It may have begun in some parts. To end it, press "Release" on the page "Steering".`},
	ListHolds:        {CommandLine: "To see all holds: refreshd hold ls", Dashboard: `The page "Steering" shows all holds.`},
	RemoveUsedPolicy: {CommandLine: "To remove it anyway: refreshd policy rm <name> --force", Dashboard: "Give its models another policy first."},
	SetUsedQueue:     {CommandLine: "To set it anyway, add --force."},
	ListWorkers:      {CommandLine: "To see all workers: refreshd worker ls", Dashboard: `The page "Running" shows all workers.`},
	JudgeSuspect:     {CommandLine: `Run "refreshd suspect accept <name>" or "refreshd suspect reject <name>".`, Dashboard: `Press "Accept" or "Reject".`},
	ShowFailures:     {CommandLine: `To see them, run "refreshd failures show <name>".`, Dashboard: `The page "Failures" shows them.`},
}

// Error is a refusal with a hint, see Add.
type Error struct {
	error
	Hint Hint
	Name string // of its subject
}

func (e *Error) Unwrap() error { return e.error }

// For gives a refusal its hint. name is that of the model, hold, bulk or policy.
func For(err error, hint Hint, name string) error {
	return &Error{err, hint, document.OneLine(name)}
}

// Text returns a hint with a name, in the words of a user interface.
func Text(hint Hint, ui UI, name string) string {
	return strings.ReplaceAll(texts[hint][ui], "<name>", name)
}

// Add adds the hint of an error to a text about it, in the words of a ui.
func Add(text string, err error, ui UI) string {
	refused, is := errors.AsType[*Error](err)
	if is && texts[refused.Hint][ui] != "" {
		text += ". " + Text(refused.Hint, ui, refused.Name)
	}
	return text
}

// Nearest adds to a text about an error the known field that an unknown one was most likely meant to be.
func Nearest(text string, err error) string {
	if refused, is := errors.AsType[*document.Error](err); is {
		if near := words.NearestWord(refused.Field[strings.LastIndex(refused.Field, ".")+1:], refused.Known); near != "" {
			text += "; nearest: " + near
		}
	}
	return text
}

// worded replaces the text of an error.
type worded struct {
	error
	text string
}

func (t worded) Error() string { return t.text }
func (t worded) Unwrap() error { return t.error }

// In returns an error with its hint in the text.
func In(err error, ui UI) error { return worded{err, Add(err.Error(), err, ui)} }

// RunRefused is why a run of a model had the outcome Busy or Stopped.
func RunRefused(outcome model.Outcome, m *model.Model) error {
	if outcome == model.Busy {
		return For(worded{document.Refuse("run", "an idle model", "an attempt queued or running"), "an attempt is queued or running"}, ReplaceAttempt, m.UID)
	}
	text := "the model was disabled by hand"
	if m.DisabledReason != "" {
		text += fmt.Sprintf(" (%q)", m.DisabledReason)
	}
	return For(worded{document.Refuse("run", "a model that was not disabled by hand", "one"), text}, EnableByRun, m.UID)
}
