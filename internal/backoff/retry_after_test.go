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
		"half a second":       {"0.5", "", 500 * time.Millisecond},
		"more than a second":  {"1.5", "", 1500 * time.Millisecond},
		"a bare fraction":     {".25", "", 250 * time.Millisecond},
		"spaces":              {" 120\t", "", 2 * time.Minute},
		"two points":          {"1.2.3", "", never},
		"a point":             {".", "", never},
		"an exponent":         {"1e3", "", never},
		"infinity":            {"inf", "", never},
		"a minus and a point": {"-0.5", "", never},
		"a unit":              {"120s", "", never},
		"a comma":             {"1,5", "", never},
		"ages with a point":   {"9223372036854775807.5", "", 9223372036 * time.Second},
		"milliseconds":        {"60000", "", 60000 * time.Second}, // it cannot be told from 17 hours
		"Unix time":           {"1795244490", "", 90 * time.Second},
		"Unix time, fraction": {"1795244490.25", "", 90*time.Second + 250*time.Millisecond},
		"Unix time in ms":     {"1795244490500", "", 90*time.Second + 500*time.Millisecond},
		"past Unix time":      {"1795244340", "", -time.Minute},
		"server's Unix time":  {"1795244490", "Sat, 21 Nov 2026 07:01:00 GMT", 30 * time.Second},
		"a date":              {"Sat, 21 Nov 2026 07:01:30 GMT", "", 90 * time.Second},
		"of RFC 850":          {"Saturday, 21-Nov-26 07:01:30 GMT", "", 90 * time.Second},
		"of asctime":          {"Sat Nov 21 07:01:30 2026", "", 90 * time.Second},
		"by the server":       {"Sat, 21 Nov 2026 09:01:30 GMT", "Sat, 21 Nov 2026 09:01:00 GMT", 30 * time.Second},
		"a past date":         {"Sat, 21 Nov 2026 06:59:00 GMT", "", -time.Minute},
		"past by the server":  {"Sat, 21 Nov 2026 09:00:00 GMT", "Sat, 21 Nov 2026 09:01:00 GMT", -time.Minute},
		"of the year before":  {"Fri, 21 Nov 2025 07:00:00 GMT", "", -365 * 24 * time.Hour},
		"no zone but +0000":   {"Sat, 21 Nov 2026 07:01:30 +0000", "", 90 * time.Second},
		"another zone":        {"Sat, 21 Nov 2026 08:01:30 +0100", "", 90 * time.Second},
		"an ISO date":         {"2026-11-21T07:01:30Z", "", 90 * time.Second},
		"with a fraction":     {"2026-11-21T07:01:30.5Z", "", 90*time.Second + 500*time.Millisecond},
		"with an offset":      {"2026-11-21T08:01:30+01:00", "", 90 * time.Second},
		"spaces and a date":   {"  2026-11-21T07:01:30Z ", "", 90 * time.Second},
		"ISO by the server":   {"2026-11-21T09:01:30Z", "Sat, 21 Nov 2026 09:01:00 +0000", 30 * time.Second},
		"an ISO day":          {"2026-11-21", "", never},
		"no such ISO day":     {"2026-11-31T07:01:30Z", "", never},
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
