package backoff

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Asked is how long a server wants to be left alone: for a time, or until an instant that only our own clock can judge. Either may be past.
type Asked struct {
	Wait  time.Duration
	Until time.Time // zero: Wait says it
}

// RetryAfter reads the header Retry-After of an answer: seconds, or a date (RFC 9110, section 10.2.3). A date is measured by the clock of
// the server where it tells that, because its clock need not be ours. false: the answer asks for nothing.
func RetryAfter(answer http.Header) (Asked, bool) {
	text := answer.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return Asked{Wait: time.Duration(min(seconds, math.MaxInt64/uint64(time.Second))) * time.Second}, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return Asked{}, false
	}
	if now, err := http.ParseTime(answer.Get("Date")); err == nil {
		return Asked{Wait: at.Sub(now)}, true
	}
	return Asked{Until: at}, true
}

// At is until when to leave the server alone, for an answer of now.
func (a Asked) At(now time.Time) time.Time {
	if !a.Until.IsZero() {
		return a.Until
	}
	return now.Add(a.Wait)
}
