package document

import (
	"errors"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	failIf = check.FailIf
	stopIf = check.StopIf
)

const dayLong, weekLong = 24 * time.Hour, 7 * 24 * time.Hour

func TestADurationIsReadInFourWays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		// Nothing
		"": 0, "0": 0, "null": 0, "NULL": 0, "  ": 0, "0s": 0, "PT0M": 0, "P0D": 0, "0 minutes": 0, "0.0": 0,

		// ISO 8601
		"PT5M": 5 * time.Minute, "P1W": weekLong, "P1DT2H": 26 * time.Hour, "PT1H30M": 90 * time.Minute, "pt5m": 5 * time.Minute,
		"PT90M": 90 * time.Minute, "PT0.25S": 250 * time.Millisecond, "P3650D": MaxDuration, "P1W1DT1S": 8*dayLong + time.Second,

		// Go
		"1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "1d": dayLong, "1w": weekLong, "1H30M": 90 * time.Minute,
		"1w2d3h4m5s6ms": weekLong + 2*dayLong + 3*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond, "1h30m0s": 90 * time.Minute,

		// English
		"10 minutes": 10 * time.Minute, "1 hour": time.Hour, "5 minute": 5 * time.Minute, "1 hour 30 minutes": 90 * time.Minute,
		"2 days": 2 * dayLong, "1 week": weekLong, "1 hour and 30 minutes": 90 * time.Minute, "1 day, 2 hours": 26 * time.Hour,
		"1 hour,  and 5 secs": time.Hour + 5*time.Second, " 10  Minutes ": 10 * time.Minute, "10minutes": 10 * time.Minute, "250 milliseconds": 250 * time.Millisecond,

		// Bare seconds
		"90": 90 * time.Second, "0.5": 500 * time.Millisecond, "007": 7 * time.Second, "315360000": MaxDuration, "1.250000000000": 1250 * time.Millisecond,
	} {
		got, err := ParseDuration(text)
		failIf(t, err != nil || got != want, "ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
	}
}

func TestADurationIsRefusedWithTheReason(t *testing.T) {
	for text, reason := range map[string]string{
		// No fixed length
		"P1M": "no fixed length", "P1Y": "no fixed length", "P1Y2M": "no fixed length", "1 month": "no fixed length", "2 years": "no fixed length", "1y": "no fixed length",

		// Below zero
		"-5m": "number from 0", "-1": "number from 0", "-PT5M": "number from 0", "PT-5M": "number from 0", "1h-5m": "number from 0", "+5m": "number from 0",

		// Above ten years, and far above
		"3651d": "ten years", "P522W": "ten years", "315360001": "ten years", "3650d1ms": "ten years",
		"9223372036854775807": "ten years", "99999999999999999999999h": "ten years", "9223372036854775807w": "ten years", "30500568906w": "ten years", // the last one is 2^64 ms and a bit

		// Finer than a millisecond
		"0.5ms": "millisecond", "0.0001": "millisecond", "0.0000000001w": "millisecond", "100us": "unit", "5ns": "unit", "3µs": "unit",

		// Not a duration at all
		"soon": "number", "5 parsecs": `"parsecs"`, "1h30": "unit", "5m 90": "unit", "1h 1h": "each once", "30m1h": "longest", "P": "nothing after P",
		"PT": "missing", "P1DT": "missing", "P5": "missing", "PT5D": "unit", "P5H": "unit", "PT5": "missing", "P1H": "unit", ".5h": "not a number", "1.2.3s": "not a number", "5m,": "number",
		"5m and": "number", "m": "number", "PTT5M": "number", "PT1M1H": "longest", "1e3": "unit", "0x10": "unit", "٣m": "number", "infinity": "number", "5 m\x00": "number", "\"5m\"": "number",
	} {
		got, err := ParseDuration(text)
		field := (*Error)(nil)
		failIf(t, !errors.As(err, &field) || got != 0 || !strings.Contains(field.Found, reason),
			"ParseDuration(%q) = %v, %v; want a refusal with %q", text, got, err, reason)
	}
}

func TestADurationIsWrittenInItsShortestCanonicalForm(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m": time.Minute, "1h30m": 90 * time.Minute, "1d": dayLong, "1w": weekLong, "2w": 2 * weekLong, "8d": 8 * dayLong,
		"250ms": 250 * time.Millisecond, "1s500ms": 1500 * time.Millisecond, "10d12h": 252 * time.Hour, "-5m": -5 * time.Minute, "3650d": MaxDuration,
	} {
		got := FormatDuration(d)
		failIf(t, got != want, "FormatDuration(%v) = %q, want %q", d, got, want)
	}
}

func TestAWrittenDurationIsReadBackUnchanged(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	units := []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, dayLong, weekLong}
	for range 20_000 {
		unit := units[random.Intn(len(units))]
		d := time.Duration(random.Int63n(int64(MaxDuration/unit))) * unit
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%v was written as %q and read as %v, %v", d, FormatDuration(d), got, err)
		}
		if got, err := ParseDuration(d.String()); err != nil || got != d {
			t.Fatalf("Go writes %q, read as %v, %v", d.String(), got, err)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"PT5M", "P1W", "1h30m", "10 minutes", "1 hour and 30 minutes", "90", "null", "0.25", "P1DT", "-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		field := (*Error)(nil)
		stopIf(t, err != nil && !errors.As(err, &field), "%q: the error is a %T", text, err)
		stopIf(t, d < 0 || d > MaxDuration || d%time.Millisecond != 0, "%q was read as %v", text, d)
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d {
			t.Fatalf("%q: %v became %v, %v", text, d, again, err)
		}
	})
}

func TestADurationInWordsNamesOneAndMany(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour + 30*time.Minute: "1 hour 30 minutes", 2*time.Hour + time.Minute: "2 hours 1 minute", dayLong: "1 day", weekLong: "1 week", 2 * weekLong: "2 weeks", 0: "0 seconds",
	} {
		got := FormatDurationInWords(d)
		failIf(t, got != want, "%s: got %q, want %q", d, got, want)
	}
}
