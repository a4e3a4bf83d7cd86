package policy

import "time"

// Failure is what is known of a failed attempt.
type Failure struct {
	Reason             string
	ErrorType          string
	UserFriendlyReason string
	Retryable          *bool         // the result's own word; nil: the policy decides
	RetryAfter         time.Duration // at least this long after now; 0: no wish

	Ours bool // no worker said so: a deadline, or too many deferrals
}

// ReasonTimeout is the reason, and the error type, of an attempt whose deadline passed.
const ReasonTimeout = "timeout"

// TimedOut is the failure of an attempt whose deadline passed.
func TimedOut() Failure {
	return Failure{Reason: ReasonTimeout, ErrorType: ReasonTimeout, Ours: true}
}
