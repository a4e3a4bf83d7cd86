package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// CommandType names the wish of an application or a person.
type CommandType string

// The command types of the control list and of the command line.
const (
	CommandPut     CommandType = "put"
	CommandRemove  CommandType = "remove"
	CommandRun     CommandType = "run"
	CommandEnable  CommandType = "enable"
	CommandDisable CommandType = "disable"
	CommandAccept  CommandType = "accept"
	CommandReject  CommandType = "reject"
)

// Command is one entry of the control list.
type Command struct {
	Type       CommandType
	UID        string
	Definition Definition // put
	Force      bool       // run: supersede an attempt that is queued or running
	Reason     string     // disable: for the owner

	Hold   Hold          // hold; release: its ID, and Within if Spread
	For    time.Duration // hold: how long; 0: until Hold.Until, or until a release
	Spread bool          // release: the command says over how long the starts are spread
	Key    string        // open_limit

	ID      string // the same again within a day is a duplicate; empty: none
	ReplyTo string // the list for the outcome, as its sender wrote it; empty: nobody asks
	By      string // who wants it, in at most 60 bytes; empty: nobody says
}

// MaxBy bounds the text that says who wants a command, in bytes.
const MaxBy = 60

// DecodeCommand reads one entry of the control list: {"type":"put", …definition…}, {"type":"run","uid":"…","force":true}. Every error is a
// *Rejection; the command has the fields that a reply needs.
func DecodeCommand(raw []byte) (Command, error) {
	doc, err := decodeObject(raw)
	if err != nil {
		return Command{}, err
	}
	var c Command
	err = c.readFrom(doc)
	uid, _ := doc.Fields["uid"].(string)
	c.UID = cmp.Or(c.UID, uid)
	return c, asRejection(err)
}

func (c *Command) readFrom(doc *document.Reader) error {
	c.Type = CommandType(doc.Text("type"))
	id := doc.Text("command_id")
	if doc.Fields["command_id"] != nil {
		doc.Fail(document.ValidateID("command_id", id)) // many commands would share an empty one
	}
	if document.IsUID(id) {
		c.ID = id
	}
	c.ReplyTo, c.By = doc.Text("reply_to"), document.Shorten(doc.Text("by"), MaxBy)
	if doc.Err() != nil {
		return doc.Err()
	}
	for _, name := range []string{"type", "command_id", "reply_to", "by"} {
		delete(doc.Fields, name)
	}
	switch c.Type {
	case CommandPut:
		definition, err := ParseDefinition(doc.Fields)
		c.Definition, c.UID = definition, definition.UID
		return err
	case CommandRun:
		return c.read(doc.Fields, "force")
	case CommandDisable:
		return c.read(doc.Fields, "reason")
	case CommandRemove, CommandEnable, CommandAccept, CommandReject:
		return c.read(doc.Fields)
	case CommandHold:
		return c.readHold(doc.Fields)
	case CommandRelease:
		doc := document.Read(doc.Fields, "id", "within")
		c.Spread, c.Hold.ID, c.Hold.Within = doc.Fields["within"] != nil, doc.Text("id"), doc.Length("within", 0)
		if c.Hold.Within < 0 || c.Hold.Within > MaxWithin {
			doc.Refuse("within", "0s to "+document.FormatDuration(MaxWithin), document.FormatDuration(c.Hold.Within))
		}
		doc.Fail(document.ValidateID("id", c.Hold.ID))
		return doc.Err()
	case CommandOpen:
		doc := document.Read(doc.Fields, "key")
		c.Key = doc.Text("key")
		doc.Require(c.Key != "", "key", "the key of a limit, such as host=example.com")
		return doc.Err()
	case CommandRequeue: // without a uid it is about all rejected messages
		doc := document.Read(doc.Fields, "uid")
		if c.UID = doc.Text("uid"); doc.Fields["uid"] != nil {
			doc.Fail(document.ValidateUID(c.UID))
		}
		return doc.Err()
	default:
		return unknownType(c.Type, CommandPut, CommandRemove, CommandRun, CommandEnable, CommandDisable, CommandAccept, CommandReject, CommandHold, CommandRelease, CommandRequeue, CommandOpen)
	}
}

func (c *Command) read(fields map[string]any, extra ...string) error {
	doc := document.Read(fields, append([]string{"uid"}, extra...)...)
	if c.UID = doc.Text("uid"); c.UID == "" {
		doc.Fail(&Rejection{counterNoUID, document.Refuse("uid", "the uid of a model", "nothing")})
	}
	c.Reason = doc.Text("reason")
	force := doc.Flag("force")
	c.Force = force != nil && *force
	return doc.Err()
}

// Policies find the policies that puts name.
type Policies struct {
	ByName map[string]policy.Policy
	Stored []string // the names of all stored policies, for a refusal
	// Compile compiles the rules of puts. Nil: schedule.Parse.
	Compile schedule.Compile
}

// Find returns the policy of a definition: the one that it brings along, or the stored one that it names.
func (p Policies) Find(d *Definition) (policy.Policy, error) {
	if d.Inline != nil {
		return *d.Inline, d.refused
	}
	if found, ok := p.ByName[d.PolicyName]; ok {
		return found, nil
	}
	want := "a policy, or the name of a stored one (" + strings.Join(p.Stored, ", ") + ")"
	return policy.Policy{}, document.Refuse("policy", want, document.Found(d.PolicyName))
}

// Execute applies a command to the model at now. exists: the model is stored. Only Applied comes with a decision; any other outcome, or an error,
// changes nothing.
func (m *Model) Execute(c *Command, policies Policies, exists bool, now time.Time) (decision Decision, outcome Outcome, err error) {
	if c.Type != CommandPut && !exists {
		return Decision{}, UnknownModel, nil
	}
	switch c.Type {
	case CommandPut:
		var found policy.Policy
		if found, err = policies.Find(&c.Definition); err != nil {
			return Decision{}, Unchanged, err
		}
		compile := policies.Compile
		if compile == nil {
			compile = schedule.Parse
		}
		decision, outcome, err = m.put(c.Definition, found, exists, now, compile)
	case CommandRun:
		decision, outcome = m.Run(c.Force, now)
	case CommandEnable:
		decision, outcome = m.Enable(now)
	case CommandDisable:
		decision, outcome = m.Disable(c.Reason, c.By, now)
	case CommandAccept:
		decision, outcome = m.accept(now)
	case CommandReject:
		decision, outcome = m.reject(now)
	default:
		decision, outcome = Decision{Event: EventRemove}, Applied
	}
	decision.By = c.By
	return decision, outcome, err
}

// Run starts the model at once. It is refused while an attempt is queued or running, and if the model was disabled by hand. Force supersedes the
// attempt and enables the model. A model that a failure has disabled is enabled.
func (m *Model) Run(force bool, now time.Time) (Decision, Outcome) {
	switch {
	case force:
	case m.Running():
		return Decision{}, Busy
	case m.DisabledBy == StoppedByHand:
		return Decision{}, Stopped
	}
	decision := Decision{Event: EventRun, Next: m.State}
	next := &decision.Next
	m.unpark(next, now)
	if m.Disabled || m.windowEnded(next, now) {
		next.enable(now) // a request for an attempt is granted
	}
	next.dueNow(now, "run by hand")
	next.Trigger = TriggerRun
	m.supersede(&decision, now)
	return decision, Applied
}

// Enable ends a disabled state: the model waits for its schedule, or starts at once when it has none to wait for.
func (m *Model) Enable(now time.Time) (Decision, Outcome) {
	if !m.Disabled {
		return Decision{}, Unchanged
	}
	decision := Decision{Event: EventEnable, Next: m.State}
	next := &decision.Next
	next.enable(now)
	next.NotBefore = time.Time{}
	m.plan(next, now)
	if next.RefreshAt.IsZero() {
		next.wait(now, TriggerPlanned, "enabled: nothing planned, starts now")
	}
	return decision, Applied
}

// Disable stops the model until it is enabled, with a reason for its owner. A running attempt loses its fence. by: who stops it; empty: unknown.
func (m *Model) Disable(reason, by string, now time.Time) (Decision, Outcome) {
	reason = document.Shorten(reason, document.MaxText)
	if m.DisabledBy == StoppedByHand && m.DisabledReason == reason {
		return Decision{}, Unchanged
	}
	decision := Decision{Event: EventDisable, Next: m.State}
	next := &decision.Next
	if !next.Disabled || next.DisabledAt.IsZero() {
		next.DisabledAt = now
	}
	next.Disabled, next.DisabledReason, next.DisabledBy, next.DisabledWho = true, reason, StoppedByHand, by
	next.wait(time.Time{}, TriggerPlanned, WhyDisabled+" by hand")
	next.NotBefore = time.Time{}
	m.supersede(&decision, now)
	return decision, Applied
}

// supersede ends a running attempt that then counts for nothing. Its result is stale, not a duplicate.
func (m *Model) supersede(decision *Decision, now time.Time) {
	if !m.Running() {
		return
	}
	decision.Next.AttemptNo = max(0, decision.Next.AttemptNo-1)
	decision.Next.Deferrals, decision.Next.Deaths = 0, 0
	decision.end(m, now, policy.Failure{Reason: "superseded: " + decision.Next.Why}, nil)
	decision.Next.LastAttemptUID = m.LastAttemptUID
}

const maxReason = 1000

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

// Reply renders the result of the command at now as one JSON object: applied, unchanged, duplicate, or refused for a reason.
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

// The command types that are about the queue as a whole. They need no model.
const (
	CommandHold    CommandType = "hold"
	CommandRelease CommandType = "release"
	CommandRequeue CommandType = "requeue"
	CommandOpen    CommandType = "open_limit"
)

// OfQueue reports whether a command is about the queue, and about no state of a model.
func (t CommandType) OfQueue() bool {
	return t == CommandHold || t == CommandRelease || t == CommandRequeue || t == CommandOpen
}

func (c *Command) readHold(fields map[string]any) error {
	doc := document.Read(fields, "id", "selector", "reason", "until", "for", "within")
	c.Hold.ID = doc.Text("id")
	selector := doc.Text("selector")
	c.Hold.Reason = doc.Text("reason")
	until := doc.Text("until")
	c.Hold.Within, c.For = doc.Length("within", 0), doc.Length("for", 0)
	switch {
	case c.Hold.Reason == "":
		doc.Refuse("reason", "why, for whoever wonders", "nothing")
	case c.For < 0 || doc.Fields["for"] != nil && c.For == 0:
		doc.Refuse("for", "a length of time such as 2h", document.FormatDuration(c.For))
	case until != "" && c.For != 0:
		doc.Refuse("until", "it or for", "both")
	case until != "":
		at, err := time.Parse(time.RFC3339, until)
		doc.Require(err == nil, "until", "an RFC 3339 time")
		c.Hold.Until = at.UTC().Truncate(time.Millisecond)
	}
	picks, err := ParseSelector(selector)
	doc.Fail(err)
	c.Hold.Selector = picks
	doc.Fail(document.ValidateID("id", c.Hold.ID))
	return doc.Err()
}

// HoldAt is the hold that the command begins at now.
func (c *Command) HoldAt(now time.Time) Hold {
	hold := c.Hold
	hold.Since, hold.By = now, c.By
	if c.For > 0 {
		hold.Until = now.Add(c.For)
	}
	return hold
}
