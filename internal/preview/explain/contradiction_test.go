package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
)

// Each of these was told once, and was untrue.
func TestWhatIsToldOfAModelDoesNotContradictItself(t *testing.T) {
	const gives = atSixAnd16 + `,"policy":{"timeout":"1h","retries":[],"on_exhausted":"next_planned","give_up_after":"3h"}`
	const once = `06:00 start | 06:05 failure "reason":"HTTP 503"`
	openQueue := func(w *world) { w.queue = model.QueueCircuit{On: true, Open: true} }
	parkedBy := func(definition string, world func(*world)) *Explanation {
		e := (&situation{definition: definition, steps: "06:00 start", now: "06:30", world: world}).explanation(t)
		failIf(t, !e.m.Parked(), "expected a parked model, found %+v", e.m.State)
		return e
	}
	circuit := parkedBy(cut, open(flow.KeyCircuit{CircuitState: probeAt("06:40"), Recent: "011"}))
	circuit.admission.Circuit = &flow.KeyCircuit{}
	limit := parkedBy(limited, full)
	limit.admission.Rooms.Keys["tenant=t1"].Running = 0
	rate := parkedBy(limited, full)
	rate.admission.Rooms.Keys["tenant=t1"] = &model.LimiterState{Slots: model.Slots{Closed: at("06:40")}}
	explained := func(s situation) *Explanation { return s.explanation(t) }
	opened := explained(situation{definition: cut, steps: once, now: "06:06"})
	opened.admission.Circuit = &flow.KeyCircuit{Key: "tenant=t1", CircuitState: model.CircuitState{OpenedAt: at("06:05"), ProbeAt: at("07:00")}, Recent: "011"}
	opened.admission.Rooms.Learn(model.Limiters{Circuits: map[string]*model.CircuitState{"tenant=t1": &opened.admission.Circuit.CircuitState}})
	opened.Forecast, opened.WaitsFor = opened.admission.Gates.Forecast(opened.m, &opened.admission.Rooms, opened.Now)
	for name, row := range map[string]struct {
		e     *Explanation
		never []string
	}{
		"a hold parks what would be skipped": {explained(situation{definition: atSixAnd16 + `,"policy":{"timeout":"1h","misfire":"skip"}`, now: "08:00", world: held(at("09:00"))}), []string{"skipped"}},
		"a full limit parks nothing that will be skipped": {explained(situation{
			definition: tenant + `,"policy":{"timeout":"1h","misfire":"skip","limits":[{"key":"{label.tenant}","running":1}]}`, now: "08:00", world: full,
		}), []string{"starts", "is full"}},
		"the queue circuit disables nothing": {explained(situation{definition: gives, steps: once, now: "06:06", world: openQueue}), []string{"will be disabled", "disabled at"}},
		"nor does a window end in the past": {explained(situation{
			definition: atSixAnd16 + `,"policy":{"timeout":"1h","retries":["110m"],"give_up_after":"2h"}`,
			steps:      once + ` | 07:55 start | 07:55 taken`, now: "08:30",
		}), []string{"disabled at 08:00"}},
		"a circuit that is open when the retry is due": {opened, []string{"Next retry"}},
		"a rate that is used up when the retry is due": {explained(situation{
			definition: tenant + `,"policy":{"timeout":"1h","retries":["10m"],"limits":[{"key":"{label.tenant}","rate":"1/30m"}]}`, steps: once, now: "06:06",
		}), []string{"Next retry", "is full"}},
		"a hold keeps it beyond the end of its window": {explained(situation{
			definition: atSixAnd16 + `,"policy":{"timeout":"1h","retries":["10m"],"give_up_after":"3h"}`, steps: once, now: "06:06", world: func(w *world) {
				w.blockers.Holds = []model.Hold{{ID: "h1", Since: at("06:05"), Until: at("12:00"), By: "ann", Reason: "moving"}}
				w.blockers.Holds[0].Selector, _ = model.ParseSelector("status=failing")
			},
		}), []string{"disabled at 09:00"}},
		"another rule moves what is planned": {explained(situation{
			definition: atSixAnd16 + `,"policy":{"timeout":"none","retries":["10m"]}`,
			steps:      `06:00 start | 06:00 taken | 06:10 put "rrule":"FREQ=DAILY;BYHOUR=20","refresh":"planned","policy":{"timeout":"none","retries":["10m"]}`, now: "07:00",
		}), []string{"planned refresh"}},
		"a worker has it only once it took it": {explained(situation{
			definition: atSixAnd16 + `,"policy":{"timeout":"1h","queue_timeout":"5m","retries":["10m"]}`, steps: "06:00 start | 06:04 taken", now: "06:04:30",
		}), []string{"since 06:00"}},
		"a phase longer than the way to the next": {explained(situation{
			definition: `"rrule":"FREQ=HOURLY;BYMINUTE=5,10","dtstart":"2026-01-01"`, steps: "00:01 level 7m", now: "00:02",
		}), []string{"from 00:00"}},
		"a circuit that has closed":         {circuit, []string{"is open"}},
		"a limit that lets one start later": {rate, []string{"in a moment", "ends"}},
		"a limit with room":                 {limit, []string{"is full", "ends"}},
	} {
		all := strings.Join(append(row.e.Story(), row.e.ends()), " ")
		requireSentences(t, strings.TrimSpace(all))
		failIf(t, slices.ContainsFunc(row.never, func(text string) bool { return strings.Contains(all, text) }), "%s: expected nothing of %q in %q", name, row.never, all)
	}
}

func TestADoubtIsToldWhileItLasts(t *testing.T) {
	const doubted = ` | 10:00 run | 10:00 start | 10:10 success "metrics":{"rows":0}`
	both := []string{"Rows 0: expected at least 1.", "Rows 0: over 50% less than the usual 100."}
	for name, row := range map[string]struct {
		on, steps, now string
		want, never    []string
	}{
		"a result that counts": {`"tell"`, doubted, "11:00", append(both, "It counts, but is doubted."), []string{"verdict", "accepts"}},
		"one that fails":       {`"fail"`, doubted, "10:12", []string{"(rows 0: expected at least 1; rows 0: over 50% less than the usual 100)"}, both},
		"one that is held":     {`"hold"`, doubted, "11:00", append(both, "Waits for a verdict since 10:10", `"refreshd suspect accept tbl_1"`), []string{"It counts", "Due"}},
		"one that was run":     {`"hold"`, doubted + ` | 10:20 run`, "10:20", nil, append(both, "verdict")},
		"one before another":   {`"tell"`, doubted + ` | 10:20 run | 10:20 start | 10:30 success "metrics":{"rows":100}`, "11:00", nil, append(both, "doubted")},
	} {
		e := (&situation{definition: guarded(row.on), steps: usual + row.steps, now: row.now}).explanation(t)
		all := strings.Join(e.Story(), " ")
		if row.on != `"fail"` { // it quotes both reasons, as those of a worker
			requireSentences(t, all)
		}
		for _, want := range row.want {
			failIf(t, !strings.Contains(all, want), "%s: expected %q in %q", name, want, all)
		}
		failIf(t, slices.ContainsFunc(row.never, func(text string) bool { return strings.Contains(all, text) }), "%s: expected nothing of %q in %q", name, row.never, all)
		failIf(t, e.Summarize().Act != (name == "one that is held"), "%s: expected that somebody must act only about what is held", name)
	}
}
