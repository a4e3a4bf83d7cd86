package model

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/refreshd/refreshd/model/document"
)

// TraceID is the id of the trace of an attempt, 32 hexadecimal digits. It follows from the uid of the attempt, so that whoever knows that needs no
// more to add to the trace.
func TraceID(attemptUID string) string {
	sum := sha256.Sum256([]byte(attemptUID))
	return hex.EncodeToString(sum[:16])
}

// SpanID is the id of a part of that trace, 16 hexadecimal digits.
func SpanID(attemptUID, part string) string {
	sum := sha256.Sum256([]byte(attemptUID + " " + part))
	return hex.EncodeToString(sum[:8])
}

// The parts of a trace.
const (
	SpanSchedule = "schedule" // from refresh_at to the start: the root
	SpanWait     = "wait"     // from the start until a worker begins
	SpanRun      = "run"      // the work
	SpanApply    = "apply"    // from when a poller has the result until it is applied
)

// Traceparent is what W3C Trace Context says of a part of the trace of an attempt.
func Traceparent(attemptUID, part string) string {
	return "00-" + TraceID(attemptUID) + "-" + SpanID(attemptUID, part) + "-01"
}

var traceparentPattern = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// validateTraceparent refuses what is no traceparent of version 00; empty: there is none.
func validateTraceparent(text string) error {
	if text == "" || traceparentPattern.MatchString(text) {
		return nil
	}
	return document.Refuse(traceparentName, "a traceparent of W3C Trace Context", document.Found(text))
}

const traceparentName = "traceparent"

// SpanWithin is the span that a traceparent names; empty: it is none of the trace of that attempt.
func SpanWithin(traceparent, attemptUID string) string {
	found := traceparentPattern.FindStringSubmatch(traceparent)
	if found == nil || found[1] != TraceID(attemptUID) {
		return ""
	}
	return found[2]
}
