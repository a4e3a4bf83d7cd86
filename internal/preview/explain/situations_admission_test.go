package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

func held(until time.Time) func(*world) {
	return func(w *world) {
		w.blockers.Holds = []model.Hold{{ID: "h1", Since: at("05:00"), Until: until, By: "ann", Reason: "moving"}}
	}
}

func closed(w *world) {
	nightly := calendar(new(testing.T), `{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0","dtstart":"2026-01-01T00:00:00","timezone":"UTC","for":"2h"}`)
	w.blockers.Calendars = map[string]schedule.Calendar{"nightly": nightly}
}

const (
	tenant  = `"labels":{"tenant":"t1"},` + atSixAnd16
	limited = tenant + `,"policy":{"timeout":"1h","retries":["10m"],"limits":[{"key":"{label.tenant}","running":1}]}`
	cut     = tenant + `,"policy":{"timeout":"1h","retries":["10m"],"circuit":{"key":"{label.tenant}","open_after":"2 of 3","probe":"5m"}}`
)

const heldByGuard = atSixAnd16 + `,"policy":{"timeout":"1h","guard":[{"rows":{"min":1}}],"on_suspect":"hold"}`

func full(w *world) {
	w.limiters.Learn(model.Limiters{Keys: map[string]*model.LimiterState{"tenant=t1": {Running: 1}}})
	w.turn = [2]int64{1, 2}
}

func open(circuit flow.KeyCircuit) func(*world) {
	return func(w *world) {
		circuit.Key, circuit.OpenedAt = "tenant=t1", at("05:58")
		w.circuit = &circuit
		w.limiters.Learn(model.Limiters{Circuits: map[string]*model.CircuitState{"tenant=t1": &circuit.CircuitState}})
	}
}

func probeAt(clock string) model.CircuitState { return model.CircuitState{ProbeAt: at(clock)} }

var stopping = []situation{
	{"held, with an end", daily, "06:00 start", "06:30", held(at("08:00")), nil},
	{"held, without an end", daily, "06:00 start", "06:30", held(time.Time{}), nil},
	{"held later", daily, "", "05:30", held(at("08:00")), nil},
	{"calendar closed", atSixAnd16 + `,"policy":{"timeout":"1h","closed":["nightly"]}`, "06:00 start", "06:30", closed, nil},
	{"calendar open again", atSixAnd16 + `,"policy":{"timeout":"1h","closed":["nightly"]}`, "06:00 start", "07:00", closed, nil},
	{"calendar closed later", atSixAnd16 + `,"policy":{"timeout":"1h","closed":["nightly"]}`, "", "04:30", closed, nil},
	{"limit full", limited, "06:00 start", "06:30", full, nil},
	{"limit full now", limited, "", "05:30", full, nil},
	{"circuit open", cut, "06:00 start", "06:01", open(flow.KeyCircuit{CircuitState: probeAt("06:03"), Recent: "011"}), nil},
	{"another probes", cut, "06:00 start", "06:04", open(flow.KeyCircuit{CircuitState: model.CircuitState{ProbeAt: at("06:03"), Probe: "tbl_2"}, Recent: "011"}), nil},
	{"it probes", cut, "06:03 start | 06:03 taken", "06:04", open(flow.KeyCircuit{CircuitState: probeAt("06:03"), Recent: "011"}), nil},
	{"opened by hand", cut, "06:00 start", "06:01", open(flow.KeyCircuit{CircuitState: probeAt("07:00"), By: "bob", Reason: "their proxy"}), nil},
	{"queue circuit open", banner, twice, "06:21", func(w *world) { w.queue = model.QueueCircuit{On: true, Open: true} }, nil},
}

const fresh = `"policy":{"timeout":"1h","retries":["2h"],"fresh_within":"12h","warn_within":"11h"}`

// usual are three successes by which a guard knows what is usual.
const usual = `07:00 run | 07:00 start | 07:10 success "metrics":{"rows":100} | 08:00 run | 08:00 start | 08:10 success "metrics":{"rows":100} | ` +
	`09:00 run | 09:00 start | 09:10 success "metrics":{"rows":100}`

func guarded(onSuspect string) string {
	return atSixAnd16 + `,"policy":{"timeout":"1h","retries":["10m"],"guard":[{"rows":{"min":1}},{"rows":{"drop":"50%"}}],"on_suspect":` + onSuspect + `}`
}

var troubles = []situation{
	{"late", fresh, `06:00 start | 06:10 success | 16:00 run | 16:00 start | 16:00 taken | 17:00 timeout | 17:10 ages`, "17:12", nil, nil},
	{"stale", fresh, `06:00 start | 06:10 success | 16:00 run | 16:00 start | 16:00 taken | 17:00 timeout | 17:10 ages | 18:10 ages`, "18:20", nil, nil},
	{"never fresh", atSixAnd16 + `,"policy":{"timeout":"1h","fresh_within":"12h"}`, "", "05:00", nil, nil},
	{"broken key", daily, "", "05:00", func(w *world) { w.broken = true }, nil},
	{"rejected command", daily, "", "05:00", func(w *world) {
		w.rejected = &Rejection{"1-0", "2026-03-27T04:00:00Z", "control", "rrule: expected a rule, found \"soon\""}
	}, nil},
	{"suspect", guarded(`"hold"`), usual + ` | 10:00 run | 10:00 start | 10:10 success "metrics":{"rows":40}`, "11:00", nil, nil},
	{"no poller", daily, "06:00 start | 06:00 taken", "06:20", func(w *world) { without(model.RolePoller, 0)(w); w.liveness.Messages = 4 }, nil},
}

func TestAHeldModelTellsWhetherItsDoubtedResultIsPublished(t *testing.T) {
	for published, want := range map[string]bool{"true": false, "false": true} {
		row := situation{definition: heldByGuard, steps: `06:00 start | 06:10 success "metrics":{"rows":0},"published":` + published, now: "06:30"}
		told := row.told(t, row.explanation(t))
		failIf(t, strings.Contains(told, " It is not published.") != want, "published %s: told %s", published, told)
	}
}
