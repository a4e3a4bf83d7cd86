package policy

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestARateIsReadAndWrittenInItsShortestForm(t *testing.T) {
	for text, want := range map[string]struct {
		rate     Rate
		form     string
		interval time.Duration
	}{
		"60/1m":        {Rate{60, time.Minute}, "60/m", time.Second},
		"10/s":         {Rate{10, time.Second}, "10/s", 100 * time.Millisecond},
		" 5 / hour ":   {Rate{5, time.Hour}, "5/h", 12 * time.Minute},
		"5/PT1H":       {Rate{5, time.Hour}, "5/h", 12 * time.Minute},
		"7/15m":        {Rate{7, 15 * time.Minute}, "7/15m", 15 * time.Minute / 7},
		"120/2m":       {Rate{120, 2 * time.Minute}, "120/2m", time.Second}, // another burst than 60/m
		"1000/1d":      {Rate{1000, 24 * time.Hour}, "1000/d", 86400 * time.Millisecond},
		"7/10m":        {Rate{7, 10 * time.Minute}, "7/10m", 10 * time.Minute / 7},
		"3/1500ms":     {Rate{3, 1500 * time.Millisecond}, "3/1s500ms", 500 * time.Millisecond},
		"1000000/1s":   {Rate{1_000_000, time.Second}, "1000000/s", time.Microsecond},
		"60/60":        {Rate{60, time.Minute}, "60/m", time.Second},
		"1/1h and 30m": {Rate{1, 90 * time.Minute}, "1/1h30m", 90 * time.Minute},
	} {
		rate, err := ParseRate(text)
		failIf(t, err != nil || rate != want.rate || rate.String() != want.form || rate.Interval() != want.interval,
			"%q is read as %+v, written %s, every %s: %v", text, rate, rate, rate.Interval(), err)
		again, err := ParseRate(rate.String())
		failIf(t, err != nil || again != rate, "%s is read back as %+v, %v", rate, again, err)
	}
	failIf(t, (Rate{}).Interval() != 0 || (Rate{}).String() != "", "no rate has an interval or a text")
}

func TestWhatIsNoRateIsRefused(t *testing.T) {
	for _, text := range []string{"", "60", "60/", "/1m", "0/1m", "-1/1m", "1.5/s", "1000001/s", "60/0", "60/999ms", "60/25h", "60/1m/2", "sixty/m", "60 per minute", "60/month", "60/p"} {
		rate, err := ParseRate(text)
		failIf(t, err == nil || rate != (Rate{}), "%q is read as %+v", text, rate)
	}
}

func TestLimitsAreReadAndReadBack(t *testing.T) {
	p := policyOf(t, `{"limits":[{"key":"{ host(input_url) }","running":4,"rate":"60/1m"},{"key":"{label.tenant}","concurrency":"50"},{"key":"{policy}","rate":"10/1s"}]}`)
	want := []Limit{
		{Key{KeyHost, "input_url"}, 4, Rate{60, time.Minute}}, {Key{KeyLabel, "tenant"}, 50, Rate{}},
		{Key{Kind: KeyPolicy}, 0, Rate{10, time.Second}},
	}
	equal(t, want, p.Limits)
	text, _ := json.Marshal(p)
	const canonical = `{"timeout":"10m","retries":["0s","1m","5m"],"alignment":"align_planned","on_exhausted":"next_planned",` +
		`"limits":[{"key":"{host(input_url)}","running":4,"rate":"60/m"},{"key":"{label.tenant}","running":50},{"key":"{policy}","rate":"10/s"}]}`
	failIf(t, string(text) != canonical, "\n got %s\nwant %s", text, canonical)
	again := policyOf(t, string(text))
	failIf(t, !again.Equal(p), "%s is read back as %s", text, again.canonical())
}

func TestABadLimitIsRefusedWithTheField(t *testing.T) {
	one := `{"key":"{a}","running":1}`
	refusals(t, map[string]string{
		`{"limits":{"key":"{a}"}}`:                                                      `limits: expected a list such as [{key: "{host(input_url)}", running: 4}], found an object`,
		`{"limits":[4]}`:                                                                "limits[0]: expected an object with key, running, rate, found 4",
		`{"limits":[` + one + `,{"key":"{b}"}]}`:                                        "limits[1]: expected running or rate, or both, found neither",
		`{"limits":[{"running":1}]}`:                                                    `limits[0].key: expected ` + wantKey + `, found ""`,
		`{"limits":[{"key":"{hst(a)}","running":1}]}`:                                   `limits[0].key: expected ` + wantKey + `, found "{hst(a)}"; nearest: {host(a)}`,
		`{"limits":[{"key":7,"running":1}]}`:                                            "limits[0].key: expected a text, found 7",
		`{"limits":[{"key":"{a}","running":0}]}`:                                        "limits[0].running: expected a whole number from 1 to 100000, found 0",
		`{"limits":[{"key":"{a}","running":100001}]}`:                                   "limits[0].running: expected a whole number from 1 to 100000, found 100001",
		`{"limits":[{"key":"{a}","rate":"fast"}]}`:                                      `limits[0].rate: expected ` + wantRate + `, found "fast"`,
		`{"limits":[{"key":"{a}","rate":60}]}`:                                          "limits[0].rate: expected a text, found 60",
		`{"limits":[{"key":"{a}","runs":1}]}`:                                           "limits[0].runs: expected one of key, running, rate, found an unknown field",
		`{"limits":[{"key":"{a}","running":1,"concurrency":1}]}`:                        "limits[0].concurrency: expected one of key, running, rate, found an unknown field",
		`{"limits":[` + one + `,` + one + `]}`:                                          "limits[1].key: expected one limit for each key, found {a} after {a}, and both count by a",
		`{"limits":[{"key":"{host(a)}","running":1},{"key":"{host(b)}","rate":"1/s"}]}`: "limits[1].key: expected one limit for each key, found {host(b)} after {host(a)}, and both count by host",
		`{"limits":[{},{},{},{},{}]}`:                                                   "limits: expected at most 4 limits, found 5",
	})
}

func TestAPaceHoldsHoweverOftenItIsAsked(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	for text, step := range map[string]time.Duration{"50/s": 70 * time.Millisecond, "3/s": 10 * time.Millisecond, "7000/s": time.Second, "1/m": time.Second, "2/1h": 5 * time.Minute} {
		rate, err := ParseRate(text)
		must(t, err)
		next, started := began, 0
		for now := began; now.Before(began.Add(1000 * step)); now = now.Add(step) {
			n := rate.Allow(next, now, 2*time.Second)
			next = rate.Spend(next, now, 2*time.Second, n)
			started += n
			most := 1 + int(now.Sub(began)/rate.Interval())
			stopIf(t, started > most, "%s: %d within %v, want at most %d", text, started, now.Sub(began), most)
		}
		least := int(999*step/rate.Interval()) * 9 / 10
		failIf(t, started < least, "%s: %d in all, want at least %d", text, started, least)
		if n, most := rate.Allow(began, began.Add(24*time.Hour), 2*time.Second), 1+int(2*time.Second/rate.Interval()); n != most {
			t.Errorf("%s: %d at once after a day, want %d", text, n, most)
		}
		if n := rate.Allow(began.Add(time.Millisecond), began, time.Second); n != 0 {
			t.Errorf("%s: %d before the time", text, n)
		}
		share := rate.Share(4)
		failIf(t, share.Interval() < 4*rate.Interval(), "%s: the share of four is %v", text, share)
	}
	if n := (Rate{}).Allow(began, began, 0); n != math.MaxInt || !(Rate{}).Spend(began, began, 0, 7).IsZero() {
		t.Errorf("without a rate: %d", n)
	}
	share := (Rate{Count: 100, Per: 24 * time.Hour}).Share(8)
	failIf(t, share != (Rate{12, 24 * time.Hour}), "the share of eight is %v", share)
}

func TestABadWindowIsRefusedWithTheField(t *testing.T) {
	const want = "retry_window: expected one rule of the hours in which retries may start, such as FREQ=DAILY;BYHOUR=9,10,11, found "
	refusals(t, map[string]string{
		`{"retry_window":"FREQ=DAILY;BYSECOND=0"}`:               want + "BYSECOND",
		`{"retry_window":"FREQ=DAILY;COUNT=3"}`:                  want + "COUNT",
		`{"retry_window":"FREQ=DAILY;UNTIL=20300101T000000Z"}`:   want + "UNTIL",
		`{"retry_window":"FREQ=DAILY\nFREQ=WEEKLY"}`:             want + "several lines",
		`{"retry_window":"FREQ=DAILY;BYMINUTE=0,30"}`:            "retry_window: expected BYHOUR with BYMINUTE, found BYMINUTE alone",
		`{"retry_window":"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}`: "retry_window: expected a rule that occurs at least once, from dtstart to the year 2299, found one that never does",
		`{"retry_window":"FREQ=DAILY","timezone":"Mars/Base"}`:   `timezone: expected an IANA time zone such as "Europe/Berlin", found "Mars/Base"`,
	})
	for _, text := range []string{"soon", "9 to 17", "0 9 * * *", "RDATE:20260101T000000", "FREQ=DAILY;DTSTART=20260101T000000"} {
		_, err := Parse(map[string]any{"retry_window": text})
		failIf(t, !strings.HasPrefix(refusedField(err), "retry_window"), "%s: %v", text, err)
	}
}

func TestARateLetsThroughFromItsInstantOnAndWhatWasNotUsedForAWhile(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	rate := Rate{60, time.Minute}
	for _, test := range []struct {
		next   time.Duration // from now
		behind time.Duration
		allow  int
		spent  time.Duration // from now on, behind two
	}{
		{1, 0, 0, 2*time.Second + time.Millisecond},
		{0, 0, 1, 2 * time.Second},
		{-1, 0, 1, 2 * time.Second},
		{1 - time.Second, time.Minute, 1, time.Second + time.Millisecond},
		{-time.Second, time.Minute, 2, time.Second},
		{-time.Hour, 2 * time.Second, 3, 0},
		{-2 * time.Second, 2 * time.Second, 3, 0},
	} {
		got := rate.Allow(at.Add(test.next), at, test.behind)
		failIf(t, got != test.allow, "%s from now, %s behind: %d, want %d", test.next, test.behind, got, test.allow)
		spent := rate.Spend(at.Add(test.next), at, test.behind, 2).Sub(at)
		failIf(t, spent != test.spent, "%s from now, %s behind: the next %s from now, want %s", test.next, test.behind, spent, test.spent)
	}
}

func TestAShareOfARateIsRarerOrSmaller(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		rate  Rate
		parts int
		want  Rate
	}{
		{Rate{6, time.Minute}, 1, Rate{6, time.Minute}},
		{Rate{6, time.Minute}, 4, Rate{6, 4 * time.Minute}},
		{Rate{6, day / 4}, 4, Rate{6, day}},
		{Rate{6, day/4 + 1}, 4, Rate{1, day/4 + 1}},
		{Rate{6, day}, 7, Rate{1, day}},
	} {
		got := test.rate.Share(test.parts)
		failIf(t, got != test.want, "%v of %d parts: got %v, want %v", test.rate, test.parts, got, test.want)
	}
}

func TestARateIsAcceptedUpToItsBounds(t *testing.T) {
	for text, good := range map[string]bool{
		"1/s": true, "0/s": false, "1000000/s": true, "1000001/s": false, "1/1s": true, "1/999ms": false, "1/24h": true, "1/24h1ms": false,
	} {
		_, err := ParseRate(text)
		failIf(t, err == nil != good, "%s: %v", text, err)
	}
}

func TestTheWishOfAServerIsBoundedAndRemembered(t *testing.T) {
	for _, test := range []struct {
		most, wish time.Duration
		byServer   bool
		got, asked time.Duration
	}{
		{0, 24 * time.Hour, true, 24 * time.Hour, 0},
		{0, 24*time.Hour + 1, true, 24 * time.Hour, 24*time.Hour + 1},
		{time.Minute, time.Minute + 1, true, time.Minute, time.Minute + 1},
		{time.Minute, time.Minute, true, time.Minute, 0},
		{time.Minute, time.Hour, false, time.Hour, 0},
	} {
		f := Failure{RetryAfter: test.wish, ByServer: test.byServer}
		(&Policy{MaxRetryAfter: test.most}).Bound(&f)
		failIf(t, f.RetryAfter != test.got || f.Asked != test.asked, "%s of at most %s: got %s, asked %s", test.wish, test.most, f.RetryAfter, f.Asked)
	}
}
