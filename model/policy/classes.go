package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Classes says by error_type which failures are retried, and how soon. The result's own `retryable` goes before all of it.
type Classes struct {
	RetryOn []string // opt-in: only these are retried; nil: all but NeverRetry
	Never   []string // opt-out: these are final at once
	// Delays replaces the delay of these: NeverRetry makes them final, UntilPlanned waits for the schedule.
	Delays map[string]time.Duration
}

// permanentTypes are the error types that are never retried: `permanent` in a policy.
var permanentTypes = []string{"ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError"}

const permanentErrors = "permanent"

// Failure describes a failed attempt.
type Failure struct {
	Reason             string
	ErrorType          string
	UserFriendlyReason string
	Retryable          *bool         // the result's own word; nil: the policy decides
	RetryAfter         time.Duration // at least this long after now; 0: no wish
	ByServer           bool          // RetryAfter was read from a header of a server
	Asked              time.Duration // the wish of the server, if that is more than its policy allows; 0: it is not

	Ours bool // decided here, not by a worker: a deadline, or too many deferrals
}

// ReasonTimeout is reason and error type of a missed deadline.
const ReasonTimeout = "timeout"

// TimedOut is the failure of a missed deadline.
func TimedOut() Failure {
	return Failure{Reason: ReasonTimeout, ErrorType: ReasonTimeout, Ours: true}
}

// errorSilent is the error type of an attempt whose worker was silent for too long.
const errorSilent = "silent"

// Silent is the failure of an attempt without a sign of life for so long.
func Silent(length time.Duration) Failure {
	return Failure{Reason: "silent for " + document.FormatDuration(length), ErrorType: errorSilent, Ours: true}
}

// Verdict reports whether a failure is retried; if not, why. Our own failures (a timeout, too many deferrals) need not be on an opt-in list: no
// worker could name their class.
func (c *Classes) Verdict(failure Failure) (retry bool, why string) {
	class := document.Shorten(failure.ErrorType, document.MaxFound)
	switch {
	case failure.Retryable != nil && *failure.Retryable:
		return true, ""
	case failure.Retryable != nil:
		return false, "not retryable"
	case slices.Contains(c.Never, failure.ErrorType), c.Delays[failure.ErrorType] == NeverRetry:
		return false, "never retry " + class
	case c.RetryOn != nil && !failure.Ours && !slices.Contains(c.RetryOn, failure.ErrorType):
		return false, "retried only on other errors than " + document.Quote(class)
	default:
		return true, ""
	}
}

// Delay returns the delay of a class; false: it has none of its own.
func (c *Classes) Delay(errorType string) (time.Duration, bool) {
	delay, found := c.Delays[errorType]
	return delay, found && delay != NeverRetry
}

const maxClasses = 200

func (c *Classes) read(doc *document.Reader) {
	c.RetryOn, c.Never = readErrorTypes(doc, "retry_on"), readErrorTypes(doc, "never_retry")
	if c.RetryOn != nil && c.Never != nil {
		doc.Refuse("never_retry", "retry_on or never_retry", "both")
	}
	value := doc.Fields["delays_by_error"]
	if value == nil {
		return
	}
	fields, ok := value.(map[string]any)
	doc.Require(ok && len(fields) <= maxClasses, "delays_by_error", fmt.Sprintf("an object of at most %d error types and delays, such as {RateLimited: 1h}", maxClasses))
	if doc.Err() != nil {
		return
	}
	c.Delays = make(map[string]time.Duration, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := "delays_by_error." + document.Shorten(name, document.MaxFound)
		if !isErrorType(name) {
			doc.Refuse(field, wantErrorType, document.Found(name))
		}
		delay, err := NeverRetry, error(nil)
		if text, ok := fields[name].(string); !ok || !strings.EqualFold(strings.TrimSpace(text), neverRetry) {
			delay, err = parseDelay(field, fields[name])
		}
		doc.Fail(err)
		for _, one := range typesOf(name) {
			if _, named := fields[one]; !named || one == name { // its own delay precedes the delay of all permanent ones
				c.Delays[one] = delay
			}
		}
	}
}

func readErrorTypes(doc *document.Reader, name string) []string {
	words := doc.Words(name)
	if words == nil {
		return nil
	}
	if len(words) > maxClasses {
		doc.Refuse(name, fmt.Sprintf("at most %d error types", maxClasses), fmt.Sprint(len(words)))
		return nil
	}
	types := []string{}
	for i, word := range words {
		if !isErrorType(word) {
			doc.Refuse(fmt.Sprintf("%s[%d]", name, i), wantErrorType, document.Found(word))
		}
		types = append(types, typesOf(word)...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func typesOf(word string) []string {
	if word == permanentErrors {
		return permanentTypes
	}
	return []string{word}
}

const wantErrorType = "an error type of 1-100 printable characters"

func isErrorType(text string) bool {
	return text != "" && len(text) <= 100 && text == document.Shorten(text, 100)
}

func (c *Classes) delaysDocument() map[string]string {
	texts := make(map[string]string, len(c.Delays))
	for name, delay := range c.Delays {
		texts[name] = formatDelay(delay)
	}
	return texts
}
