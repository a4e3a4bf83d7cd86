package explain

import (
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
)

const (
	silent     = atSixAnd16 + `,"policy":{"timeout":"1h","silent_after":"2m","retries":["10m"]}`
	atSixAnd16 = `"rrule":"FREQ=DAILY;BYHOUR=6,16","dtstart":"2026-01-01"`
	retrying   = `"policy":{"timeout":"1h","retries":["10m","10m","10m"],"on_exhausted":"give_up"}`
	daily      = atSixAnd16 + `,` + retrying
	banner     = retrying // a one-shot
)

var waiting = []situation{
	{"never run", daily, "", "05:00", nil, nil},
	{"succeeded", daily, "06:00 start | 06:10 success", "07:00", nil, nil},
	{"another zone", `"timezone":"America/New_York",` + daily, "10:00 start | 10:10 success", "15:00", func(w *world) { w.shown = time.UTC }, nil},
	{"levelled", daily, "01:00 level 7m", "05:00", nil, nil},
	{"a missed refresh is skipped", atSixAnd16 + `,"policy":{"timeout":"1h","misfire":"skip"}`, "08:00 start", "08:00", nil, nil},
	{"overdue, to be skipped", atSixAnd16 + `,"policy":{"timeout":"1h","misfire":"skip"}`, "", "08:00", nil, nil},
	{"limited by a rate", `"payload":{"input_url":"http://example.com/x"},"policy":{"timeout":"1h","limits":[{"key":"{host(input_url)}","rate":"1/10m"}]}`, "00:01 start", "00:02", func(w *world) {
		w.limiters.Learn(model.Limiters{Keys: map[string]*model.LimiterState{"host=example.com": {Slots: model.Slots{Free: at("00:10"), Closed: at("00:10")}}}})
	}, nil},
	{"a finished one-shot", banner, "00:00 start | 00:10 success", "01:00", nil, nil},
}

func without(role model.Role, silence time.Duration) func(*world) {
	return func(w *world) {
		if delete(w.liveness.Last, role); silence > 0 {
			w.liveness.Last[role] = w.liveness.Now.Add(-silence)
		}
	}
}

var starting = []situation{
	{"due", daily, "", "06:00", nil, nil},
	{"no dispatcher", daily, "", "06:30", without(model.RoleDispatcher, 0), nil},
	{"a silent dispatcher", daily, "", "06:30", without(model.RoleDispatcher, 30*time.Minute), nil},
	{"no room", daily, "", "06:30", func(w *world) {
		w.liveness.Queued, w.liveness.Held, w.place = 40, 10, report.QueuePosition{No: 43, Rate: 0.5}
	}, nil},
	{"run by hand", daily, "05:00 run", "05:00:01", nil, nil},
	{"saved with refresh: now", daily, `05:00 put "refresh":"now",` + daily, "05:00:01", nil, nil},
	{"withdrawn", daily, "06:00 start | 07:00 withdraw", "07:00", nil, nil},
	{"a new payload", daily, `06:00 start | 06:10 failure "reason":"HTTP 404" | 06:15 put "payload":{"input_url":"http://b"},` + daily, "06:15", nil, nil},
}

var running = []situation{
	{"in line", daily, "06:00 start", "06:00:02", nil, nil},
	{"behind others", daily, "06:00 start", "06:05", func(w *world) {
		w.place, w.liveness.Queued, w.liveness.Held = report.QueuePosition{No: 3, Rate: 0.1}, 3, 1
	}, nil},
	{"no worker", daily, "06:00 start", "06:20", func(w *world) {
		without(model.RoleWorker, 0)(w)
		w.liveness.Queued, w.liveness.HeadStartedAt = 3, at("06:00")
	}, nil},
	{"processing", daily, "06:00 start | 06:00 taken", "06:20", nil, nil},
	{"progress and signs of life", silent, `06:00 start | 06:01 started "worker":"w1","signs_every":30 | 06:19:46 user_friendly_status "status":"importing","progress":40`, "06:20", nil, nil},
	{"near its deadline", daily, "06:00 start | 06:00 taken", "06:59:40", nil, nil},
	{"past its deadline", daily, "06:00 start | 06:00 taken", "07:00:02", nil, nil},
	{"no timeout", atSixAnd16 + `,"policy":{"timeout":"none","retries":["10m"]}`, "06:00 start | 06:00 taken", "07:00", nil, nil},
	{"no timeout, gives up first", atSixAnd16 + `,"policy":{"timeout":"none","retries":["10m"],"give_up_after":"2h"}`, "06:00 start | 06:00 taken", "07:00", nil, nil},
	{"a queue timeout", atSixAnd16 + `,"policy":{"timeout":"1h","queue_timeout":"5m","retries":["10m"]}`, "06:00 start | 06:01 taken", "06:02", nil, nil},
	{"a retry runs", daily, `06:00 start | 06:10 failure "reason":"HTTP 503" | 06:20 start | 06:20 taken`, "06:30", nil, nil},
	{"saved while running", daily, `06:00 start | 06:00 taken | 06:10 put "refresh":"now",` + daily, "06:15", nil, nil},
	{"another payload while running", daily, `06:00 start | 06:00 taken | 06:10 put "payload":{"input_url":"http://b"},` + daily, "06:15", nil, nil},
	{"the same, with refresh: planned", daily, `06:00 start | 06:00 taken | 06:10 put "payload":{"input_url":"http://b"},"refresh":"planned",` + daily, "06:15", nil, nil},
}
