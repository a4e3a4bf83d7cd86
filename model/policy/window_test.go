package policy

import (
	"strings"
	"testing"
)

func TestABadWindowIsRefusedWithTheField(t *testing.T) {
	const want = "retry_window: expected one rule of the hours in which retries may start, such as FREQ=DAILY;BYHOUR=9,10,11, found "
	refusals(t, map[string]string{
		`{"retry_window":"FREQ=DAILY;BYSECOND=0"}`:               want + "BYSECOND",
		`{"retry_window":"FREQ=DAILY;COUNT=3"}`:                  want + "COUNT",
		`{"retry_window":"FREQ=DAILY;UNTIL=20300101T000000Z"}`:   want + "UNTIL",
		`{"retry_window":"FREQ=DAILY\nFREQ=WEEKLY"}`:             want + "several lines",
		`{"retry_window":"FREQ=DAILY;BYMINUTE=0,30"}`:            "retry_window: expected BYHOUR with BYMINUTE, found BYMINUTE alone",
		`{"retry_window":"FREQ=DAILY;BYHOUR=24"}`:                `retry_window BYHOUR: expected numbers from 0 to 23, each once, found "24"`,
		`{"retry_window":7}`:                                     "retry_window: expected a text, found 7",
		`{"retry_window":"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}`: "retry_window: expected a rule that occurs at least once, from dtstart to the year 2299, found one that never does",
		`{"retry_window":"FREQ=DAILY","timezone":"Mars/Base"}`:   `timezone: expected an IANA time zone such as "Europe/Berlin", found "Mars/Base"`,
	})
	for _, text := range []string{"soon", "9 to 17", "0 9 * * *", "RDATE:20260101T000000", "FREQ=DAILY;DTSTART=20260101T000000"} {
		if _, err := Parse(map[string]any{"retry_window": text}); !strings.HasPrefix(refusedField(err), "retry_window") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
