package backoff

import (
	"net/http"
	"testing"
	"time"
)

func TestWhatAServerAsksFor(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	const never = -1 << 62
	for name, test := range map[string]struct {
		after, date string
		want        time.Duration // from now
	}{
		"nothing":             {"", "", never},
		"seconds":             {"120", "", 2 * time.Minute},
		"no seconds":          {"0", "", 0},
		"ages":                {"9223372036854775807", "", 9223372036 * time.Second},
		"nonsense":            {"soon", "", never},
		"negative":            {"-1", "", never},
		"half a second":       {"0.5", "", never},
		"a date":              {"Sat, 21 Nov 2026 07:01:30 GMT", "", 90 * time.Second},
		"of RFC 850":          {"Saturday, 21-Nov-26 07:01:30 GMT", "", 90 * time.Second},
		"of asctime":          {"Sat Nov 21 07:01:30 2026", "", 90 * time.Second},
		"by the server":       {"Sat, 21 Nov 2026 09:01:30 GMT", "Sat, 21 Nov 2026 09:01:00 GMT", 30 * time.Second},
		"a past date":         {"Sat, 21 Nov 2026 06:59:00 GMT", "", -time.Minute},
		"past by the server":  {"Sat, 21 Nov 2026 09:00:00 GMT", "Sat, 21 Nov 2026 09:01:00 GMT", -time.Minute},
		"a date, no such day": {"Sat, 31 Nov 2026 07:01:30 GMT", "", never},
	} {
		header := http.Header{"Retry-After": {test.after}, "Date": {test.date}}
		asked, found := RetryAfter(header)
		got := asked.At(now).Sub(now)
		if !found {
			got = never
		}
		if got != test.want {
			t.Errorf("%s: expected %s, found %s", name, test.want, got)
		}
	}
}
