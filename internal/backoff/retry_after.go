package backoff

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Asked is how long a server wants to be left alone: for a time, or until an instant that only our own clock can judge. Either may be past.
type Asked struct {
	Wait  time.Duration
	Until time.Time // zero: Wait says it
}

// RetryAfter reads the header Retry-After of an answer: seconds, or a date (RFC 9110, section 10.2.3), and what servers write in their place:
// fractions, ISO dates, dates with another zone than GMT, and Unix times in seconds or milliseconds, of this century. An instant is measured by
// the clock of the server where it has one, because its clock need not be ours. false: the answer asks for nothing.
func RetryAfter(answer http.Header) (Asked, bool) {
	text := strings.TrimSpace(answer.Get("Retry-After"))
	at, err := readDate(text)
	if seconds, failed := strconv.ParseFloat(text, 64); failed == nil && strings.Trim(text, "0123456789.") == "" {
		if seconds >= from*1000 {
			seconds /= 1000
		}
		if seconds < from || seconds >= to {
			return Asked{Wait: time.Duration(min(seconds, mostSeconds)*1000) * time.Millisecond}, true
		}
		at, err = time.UnixMilli(int64(seconds*1000)), nil
	}
	if err != nil {
		return Asked{}, false
	}
	if now, err := readDate(strings.TrimSpace(answer.Get("Date"))); err == nil {
		return Asked{Wait: at.Sub(now)}, true
	}
	return Asked{Until: at}, true
}

// Numbers from the first to below the second are Unix times: the years 2001 to 2099. As a wait they would be decades.
const from, to, mostSeconds = 978_307_200, 4_102_444_800, math.MaxInt64 / 1_000_000_000

func readDate(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC1123Z, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return http.ParseTime(text)
}

// At is until when to leave the server alone, for an answer of now.
func (a Asked) At(now time.Time) time.Time {
	if !a.Until.IsZero() {
		return a.Until
	}
	return now.Add(a.Wait)
}
