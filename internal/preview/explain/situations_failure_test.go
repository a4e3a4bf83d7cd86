package explain

import (
	"fmt"
	"strings"
)

// joining is planned at 16:00.
func joining(alignment, delay string) string {
	return fmt.Sprintf(`"rrule":"FREQ=DAILY;BYHOUR=16","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":[%q],"alignment":%q}`, delay, alignment)
}

const fails = `13:50 run | 13:50 start | 14:00 failure "reason":"HTTP 503"`

// delays are how a retry lies to the planned refresh, if it fails at 14:00.
var delays = map[string]string{"before": "30m", "overlaps start": "90m", "same": "2h", "overlaps end": "150m", "after": "4h"}

// joined are all pairs of some alignments and overlaps: they are told alike, but for the clock.
func joined(title string, alignments, overlaps string) situation {
	s := situation{title: title, steps: fails, now: "14:01"}
	for alignment := range strings.SplitSeq(alignments, ", ") {
		for overlap := range strings.SplitSeq(overlaps, ", ") {
			s.also = append(s.also, joining(alignment, delays[overlap]))
		}
	}
	s.definition = s.also[0]
	s.title += " (" + alignments + ")"
	return s
}

var aligned = []situation{
	joined("ends before planned", "align_planned, until_success, whichever_first, between_planned", "before"),
	joined("does not end before", "align_planned, between_planned", "overlaps start, same, overlaps end, after"),
	joined("starts before", "whichever_first", "overlaps start"),
	joined("starts with it or later", "whichever_first", "same, overlaps end, after"),
	joined("does not end before", "until_success", "overlaps start"),
	joined("starts with it or later", "until_success", "same, overlaps end, after"),
	joined("any retry", "planned_only", "before, overlaps start, same, overlaps end, after"),
	{title: "a formula chooses", definition: `"rrule":"FREQ=DAILY;BYHOUR=16","dtstart":"2026-01-01","policy":{"timeout":"1h","retries":["90m"],"alignment":{"expr":"retry_at"}}`, steps: fails, now: "14:01"},
}

const twice = `06:00 start | 06:05 failure "reason":"HTTP 503" | 06:15 start | 06:20 failure "reason":"HTTP 503"`

var failed = []situation{
	{"unlimited retries", `"policy":{"timeout":"1h","retries":{"strategy":"fixed","base":"10m"},"jitter":0}`, twice, "06:21", nil, nil},
	{"jitter", `"policy":{"timeout":"1h","retries":["1h","1h"],"jitter":0.2}`, `06:00 start | 06:05 failure "reason":"HTTP 503"`, "06:06", nil, nil},
	{"a lost worker", banner, "06:00 start | 06:00 taken | 07:00 timeout", "07:01", nil, nil},
	{"retry_after", banner, `06:00 start | 06:05 failure "reason":"HTTP 429","retry_after":1800`, "06:06", nil, nil},
	{"retry_after beyond planned", daily, `14:00 run | 14:00 start | 14:05 failure "reason":"HTTP 429","retry_after":10800`, "14:06", nil, nil},
	{"retry_window", `"policy":{"timeout":"1h","retries":["10m"],"retry_window":"FREQ=DAILY;BYHOUR=9,10,11"}`, `06:00 start | 06:05 failure "reason":"HTTP 503"`, "06:06", nil, nil},
	{"postponed", banner, `06:00 start | 06:05 postponed "retry_after":600`, "06:06", nil, nil},
	{"interrupted", daily, "06:00 start | 06:05 interrupted", "06:05", nil, nil},
	{"too many in a row", banner, eleven, "07:02", nil, nil},
	{"exhausted, next_planned", atSixAnd16 + `,"policy":{"timeout":"1h","retries":["10m"],"on_exhausted":"next_planned"}`, twice, "06:21", nil, nil},
	{"give_up_after ends first", atSixAnd16 + `,"policy":{"timeout":"1h","retries":[],"on_exhausted":"next_planned","give_up_after":"3h"}`, `06:00 start | 06:05 failure "reason":"HTTP 503"`, "06:06", nil, nil},
	{"give_up_after ends later", `"policy":{"timeout":"1h","retries":["10m"],"give_up_after":"1w"}`, `06:00 start | 06:05 failure "reason":"HTTP 503"`, "06:06", func(w *world) { w.alike = 3 }, nil},
}

var eleven = func() string {
	steps := "06:00 start"
	for i := range 10 {
		minute := 6 * i
		steps += fmt.Sprintf(` | 06:%02d postponed "retry_after":300 | 06:%02d start`, minute, minute+5)
	}
	return steps + ` | 07:01 postponed "retry_after":300`
}()

var ends = []situation{
	{"exhausted, give_up", atSixAnd16 + `,"policy":{"timeout":"1h","retries":["10m"],"on_exhausted":"give_up"}`, twice, "06:30", nil, nil},
	{"not retryable", atSixAnd16 + `,"policy":{"timeout":"1h","retries":["10m"],"never_retry":["http_404"]}`, `06:00 start | 06:05 failure "reason":"HTTP 404","error_type":"http_404"`, "06:30", nil, nil},
	{"with a reason for the owner", daily, `06:00 start | 06:05 failure "reason":"HTTP 410","retryable":false,"user_friendly_reason":"Your feed is gone."`, "06:30", nil, nil},
	{"give_up_after has ended", atSixAnd16 + `,"policy":{"timeout":"1h","retries":[],"on_exhausted":"next_planned","give_up_after":"3h"}`, `06:00 start | 06:05 failure "reason":"HTTP 503" | 09:00 start`, "09:10", nil, nil},
	{"by hand, with a reason", daily, `05:00 disable "by":"ann","reason":"not paid"`, "05:30", nil, nil},
	{"by hand, without one", daily, `05:00 disable`, "05:30", nil, nil},
}
