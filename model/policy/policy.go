// Package policy says how long an attempt may take and what happens when it fails: timeout, retries and their delays, how a retry
// is joined with the schedule, classes of errors, when to give up. A policy is data, with a canonical form: Parse reads decoded JSON
// or YAML, and package english reads and prints sentences.
package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Policy says how long an attempt may take and what follows a failure. Many models share it. Compiled parts are behind pointers, so that copies are
// cheap.
type Policy struct {
	Name string // under which it is stored; empty for an inline policy

	// The schedule for models without one: an RRULE set, its zone, and the wall clock of its anchor (schedule.DefaultDtstart if empty).
	Rule, Timezone, Dtstart string

	Timeout      time.Duration // from the start (or the worker's `started`) to the deadline, 1 ms to 10 years; 0: none
	QueueTimeout time.Duration // from the start to the worker's `started`, for workers that send it; 0: no such limit
	SilentAfter  time.Duration // without a sign of a worker that has announced signs, it counts as lost; 1 second and above, less than Timeout; 0: never

	Retries     Retries       // when a failure is followed by a retry; nil: never
	Jitter      float64       // a delay varies by this share of itself, 0 to 1
	Alignment   Alignment     // how a retry is joined with the schedule
	AlignBy     *Aligner      // says so in place of Alignment, which then serves when it fails; nil: Alignment alone
	OnExhausted OnExhausted   // what follows the failure after the last retry
	GiveUpAfter time.Duration // without a success, final; 0: never
	Classes     Classes       // which errors are retried, and how soon
	RetryWindow string        // a rule: retries start only inside its hours; empty: at any time

	Misfire Misfire       // the fate of a missed planned refresh
	Spread  time.Duration // planned refreshes are shifted by a part of this, fixed for each model; 0: not

	// Bounds of models with the same key at a time. At most 4 limits, each of another name.
	Limits []Limit
	// Circuit stops the models of a key that fails; nil: none.
	Circuit *Circuit
	// RetryAfterScope says which models wait for a worker's retry_after.
	RetryAfterScope RetryAfterScope
	// MaxRetryAfter bounds the retry_after that a server asked for, 1 second to 365 days; 0: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// Closed lists calendars: while one is closed, nothing starts. Sorted, at most 8.
	Closed []string

	FreshWithin time.Duration // since the last success; after that the model is stale, 1 second to 10 years; 0: never
	WarnWithin  time.Duration // after that it is late, less than FreshWithin; 0: never

	// Guard doubts a success by the numbers that it reports. At most 8 rules.
	Guard     []Guard
	OnSuspect OnSuspect // the fate of a doubted success; empty: SuspectTell

	// Muted lists the notices that are not sent.
	Muted []Notice
	// FailingFrom is the failure in a row from which the owner gets a notice, 1 to 1000; 0: none.
	FailingFrom int
	// Email is who gets e-mail about a model, where that is sent to whom the policy says.
	Email Recipient
	// DisabledReason is for the owner of a disabled model when the worker has no text for him; empty: a template.
	DisabledReason string
}

// OnExhausted is what follows the failure after the last retry.
type OnExhausted string

const (
	// GiveUp disables the model until it is updated.
	GiveUp OnExhausted = "give_up"
	// NextPlanned resets attempt_no and waits for the planned refresh; without one it gives up.
	NextPlanned OnExhausted = "next_planned"
)

// DefaultName is the name of the policy that serves models which name none, and completes those that name a part.
const DefaultName = "default"

// DefaultTimeout is the timeout of a policy that names none.
const DefaultTimeout = 10 * time.Minute

// Default serves models that name no policy: three retries, then the schedule goes on.
func Default() Policy {
	return Policy{
		Timeout:     DefaultTimeout,
		Retries:     Delays{0, time.Minute, 5 * time.Minute},
		Alignment:   AlignPlanned,
		OnExhausted: NextPlanned,
	}
}

// ContentName is the name under which an inline policy is stored: equal content, equal name.
func (p Policy) ContentName() string {
	p.Name = ""
	return contentName(p.canonical())
}

func contentName(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return inlinePrefix + hex.EncodeToString(sum[:8])
}

const inlinePrefix = "inline-"

// IsInline reports whether a name belongs to a policy that was saved inside a model.
func IsInline(name string) bool { return strings.HasPrefix(name, inlinePrefix) }

// Equal reports whether both policies decide alike, whatever their names.
func (p Policy) Equal(other Policy) bool {
	p.Name, other.Name = "", ""
	return p.canonical() == other.canonical()
}

// PlansAlike reports whether both policies plan the same refreshes, also for models with a rule of their own.
func (p Policy) PlansAlike(other Policy) bool {
	if p.Spread != other.Spread || p.Rule != other.Rule {
		return false
	}
	return p.Rule == "" || p.Timezone == other.Timezone && p.Anchor() == other.Anchor()
}

// canonical is the result of json.Marshal for the policy, without its three passes over the text.
func (p Policy) canonical() string {
	text, err := written{Policy: &p}.MarshalJSON()
	if err != nil {
		panic(fmt.Sprintf("marshal policy: %v", err)) // texts and finite numbers: cannot fail
	}
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, text)
	return escaped.String()
}

// MaxRetries is how many retries a cycle may have; Unlimited: no end.
func (p *Policy) MaxRetries() int {
	if p.Retries == nil {
		return 0
	}
	return p.Retries.Count()
}

// Notice is a kind of notification for the owner of a model.
type Notice string

// The notices; NoticeNone is no notice.
const (
	NoticeNone      Notice = ""
	NoticeDisabled  Notice = "disabled"  // a final failure disabled the model
	NoticeRecovered Notice = "recovered" // the first success after a final failure
	NoticeStale     Notice = "stale"     // the model is older than fresh_within
	NoticeFresh     Notice = "fresh"     // the first success after that
	NoticeFailing   Notice = "failing"   // the failure of failing_from, unless it disabled the model
	NoticeSuspect   Notice = "suspect"   // a success that a guard doubts, unless it is taken for a failure
)

// Notices are the possible items of `notify`.
var Notices = []Notice{NoticeDisabled, NoticeRecovered, NoticeStale, NoticeFresh, NoticeSuspect}

// Notifies reports whether the owner gets a notice.
func (p *Policy) Notifies(notice Notice) bool { return !slices.Contains(p.Muted, notice) }

// Recipient names where e-mail about a model goes: an address, a field of its payload, or a label. It is comparable; zero is nobody.
type Recipient struct {
	Address, Payload, Label string
}

// ReadRecipient reads a recipient: an address, {payload: FIELD}, {label: NAME} or none. A refusal is a *document.Error without a field.
func ReadRecipient(value any) (Recipient, error) {
	if text, ok := value.(string); ok {
		if strings.EqualFold(strings.TrimSpace(text), none) {
			return Recipient{}, nil
		}
		if address, ok := ParseAddress(text); ok {
			return Recipient{Address: address}, nil
		}
	}
	fields, ok := value.(map[string]any)
	payload, isPayload := fields["payload"].(string)
	label, isLabel := fields["label"].(string)
	switch {
	case !ok || len(fields) != 1:
	case isPayload && recipientField.MatchString(payload):
		return Recipient{Payload: payload}, nil
	case isLabel && recipientLabel.MatchString(label):
		return Recipient{Label: label}, nil
	}
	return Recipient{}, document.Refuse("", "an e-mail address, {payload: FIELD}, {label: NAME} or none", document.Found(value))
}

var (
	recipientField = regexp.MustCompile(`^` + fieldPattern + `$`)
	recipientLabel = regexp.MustCompile(`^` + labelPattern + `$`)
)

const maxAddress = 254

// plainAddress allows nothing that could end a header or a command of SMTP.
var plainAddress = regexp.MustCompile(`^` + atoms + `(?:\.` + atoms + `)*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$`)

const atoms = `[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+`

// ParseAddress reads one e-mail address in ASCII, without a name beside it; false: it is none.
func ParseAddress(text string) (address string, valid bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxAddress || !plainAddress.MatchString(text) {
		return "", false
	}
	return text, true
}

func (r Recipient) document() any {
	switch {
	case r.Payload != "":
		return map[string]string{"payload": r.Payload}
	case r.Label != "":
		return map[string]string{"label": r.Label}
	case r.Address != "":
		return r.Address
	}
	return none
}

const maxFailingFrom = 1000
