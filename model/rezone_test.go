package model

import (
	"archive/zip"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/zones"
)

// pacific is data in which Vancouver shows what another zone does: as Los Angeles until 2026 (-08:00 in winter), or an hour more than now (-06:00).
func pacific(t *testing.T, like string) zones.Note {
	t.Helper()
	archive := check.Got(zip.OpenReader("zones/zones.zip"))(t)
	t.Cleanup(func() { _ = archive.Close() })
	content := check.Got(fs.ReadFile(archive, like))(t)
	data := zones.Open(fstest.MapFS{"America/Vancouver": {Data: content}, "+VERSION": {Data: []byte("2025b\n")}}, "x")
	return check.Got(data.Note("America/Vancouver", at("12-01T00:00"), at("12-30T00:00")))(t)
}

func at(text string) time.Time {
	parsed, err := time.Parse("2006-01-02T15:04", "2026-"+text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// TestAModelThatOlderZoneDataPlannedIsPlannedAnew has Vancouver at -07:00, where older data had it at -08:00 (west) or -06:00 (east). 09:00 is 16:00Z now.
func TestAModelThatOlderZoneDataPlannedIsPlannedAnew(t *testing.T) {
	west, east, unknown := pacific(t, "America/Los_Angeles"), pacific(t, "America/Costa_Rica"), zones.Note{}
	const nine, three = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "FREQ=DAILY;BYHOUR=8,9,10;BYMINUTE=0;BYSECOND=0"
	window := policy.Policy{RetryWindow: "FREQ=DAILY;BYHOUR=9,10,11"}
	closing := policy.Policy{GiveUpAfter: 20 * time.Hour}
	workdays := policy.Policy{Timeout: 30 * time.Minute, RetryWindow: "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"}
	slot, released, ending := planned("12-02T17:02"), planned("12-02T17:40"), givesUp("12-02T16:45", "12-01T20:45")
	slot.Reserved, released.Why, ending.Trigger = "host=x", whyReleased+"hold:h", TriggerGiveUp
	for name, test := range map[string]struct {
		was       zones.Note
		rule      string
		policy    policy.Policy
		state     State // RefreshAt as the older data had it
		now, want string
		trigger   Trigger // as it is then; empty: as before

	}{
		"to an earlier time":                   {was: west, rule: nine, state: planned("12-02T17:00"), now: "12-02T15:30", want: "12-02T16:00"},
		"past by the new data: due now":        {was: west, rule: nine, state: planned("12-02T17:00"), now: "12-02T16:30", want: "12-02T16:30"},
		"to a later time":                      {was: east, rule: nine, state: planned("12-02T15:00"), now: "12-02T14:30", want: "12-02T16:00"},
		"to a later time, another one between": {was: east, rule: three, state: planned("12-02T15:00"), now: "12-02T14:30", want: "12-02T15:00"}, // 08:00 runs twice
		"the time of another one":              {was: west, rule: three, state: planned("12-02T17:00"), now: "12-02T16:30", want: "12-02T16:30"},
		"the time of another one that has run": {was: west, rule: three, state: ran("12-02T17:00", "12-02T16:01"), now: "12-02T16:30", want: "12-02T17:00"},
		"planned by the new data since":        {was: west, rule: nine, state: planned("12-02T16:00"), now: "12-02T12:00", want: "12-02T16:00"},
		"planned by the new data since, later": {was: east, rule: nine, state: planned("12-02T16:00"), now: "12-02T12:00", want: "12-02T16:00"},
		"beyond what was noted":                {was: west, rule: "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0;BYSECOND=0", state: planned("12-31T17:00"), now: "12-02T15:30", want: "12-31T16:00"},
		"nobody knows, to an earlier time":     {was: unknown, rule: nine, state: planned("12-02T17:00"), now: "12-02T15:30", want: "12-02T16:00"},
		"nobody knows, past":                   {was: unknown, rule: nine, state: planned("12-02T17:00"), now: "12-02T16:30", want: "12-02T16:30"},
		"nobody knows, to a later time":        {was: unknown, rule: nine, state: planned("12-02T15:00"), now: "12-02T14:30", want: "12-02T15:00"}, // and at 16:00
		"nobody knows, one that occurs":        {was: unknown, rule: three, state: planned("12-02T17:00"), now: "12-02T16:30", want: "12-02T17:00"},
		"little by little after a hold":        {was: east, rule: nine, state: planned("12-02T15:17"), now: "12-02T14:30", want: "12-02T15:17"},
		"a wish of the worker":                 {was: west, rule: nine, state: State{RefreshAt: at("12-02T17:00"), NotBefore: at("12-02T17:00"), Trigger: TriggerPlanned}, now: "12-02T16:30", want: "12-02T17:00"},
		"not before a wish of the worker":      {was: west, rule: nine, state: State{RefreshAt: at("12-02T17:00"), NotBefore: at("12-02T16:20"), Trigger: TriggerPlanned}, now: "12-02T12:00", want: "12-02T16:20"},
		"not beyond the end of giving up":      {was: east, rule: nine, policy: closing, state: givesUp("12-02T15:00", "12-01T19:30"), now: "12-02T14:30", want: "12-02T15:30", trigger: TriggerGiveUp},
		"a run by hand":                        {was: west, rule: nine, state: State{RefreshAt: at("12-02T17:00"), Trigger: TriggerHand}, now: "12-02T16:30", want: "12-02T17:00"},
		"what is due":                          {was: west, rule: nine, state: planned("12-02T17:00"), now: "12-02T17:30", want: "12-02T17:00"},
		"a disabled model":                     {was: west, rule: nine, state: State{RefreshAt: at("12-02T17:00"), Trigger: TriggerPlanned, Disabled: true}, now: "12-02T16:30", want: "12-02T17:00"},
		"a parked model":                       {was: west, rule: nine, state: State{RefreshAt: at("12-02T17:00"), Trigger: TriggerPlanned, ParkedBy: "hold:h"}, now: "12-02T16:30", want: "12-02T17:00"},
		"a retry that waits for its window":    {was: west, rule: nine, policy: window, state: retry("12-02T17:00"), now: "12-02T15:30", want: "12-02T16:00"},
		"one whose window has opened":          {was: west, rule: nine, policy: window, state: retry("12-02T17:00"), now: "12-02T16:30", want: "12-02T16:30"},
		"one whose window opens later":         {was: east, rule: nine, policy: window, state: retry("12-02T15:00"), now: "12-02T14:30", want: "12-02T16:00"},
		"one that lies in its window":          {was: west, rule: nine, policy: window, state: retry("12-02T17:20"), now: "12-02T16:30", want: "12-02T17:20"},
		"one whose window is closed then":      {was: west, rule: nine, policy: window, state: retry("12-02T19:20"), now: "12-02T16:30", want: "12-03T16:00"},
		"nobody knows, closed then":            {was: unknown, rule: nine, policy: window, state: retry("12-02T15:20"), now: "12-02T14:30", want: "12-02T16:00"},
		"one whose window is closed for days":  {was: west, rule: "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", policy: workdays, state: retry("12-05T00:35"), now: "12-05T00:20", want: "12-05T13:00", trigger: TriggerPlanned},
		"one that holds a slot":                {was: unknown, rule: nine, state: slot, now: "12-02T17:00", want: "12-02T17:02"},
		"nobody knows, released by a hold":     {was: unknown, rule: nine, state: released, now: "12-02T16:50", want: "12-02T17:40"},
		"past by the new data, before the end": {was: west, rule: nine, policy: closing, state: ending, now: "12-02T16:30", want: "12-02T16:30", trigger: TriggerPlanned},
		"a retry without a window":             {was: west, rule: nine, state: retry("12-02T17:00"), now: "12-02T16:30", want: "12-02T17:00"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Model{UID: "m", Rule: test.rule, Timezone: "America/Vancouver", Dtstart: "2026-01-01T00:00:00", State: test.state}
			check.Must(t, m.Resolve(test.policy, schedule.Parse))
			for _, now := range []time.Time{at(test.now), at(test.now).Add(5 * time.Minute)} { // twice, as a step may be repeated
				if decision, outcome := m.Rezone(test.was, now); outcome == Applied {
					m.State = decision.Next
				}
				if want := at(test.want); !m.RefreshAt.Equal(want) || test.trigger != "" && m.Trigger != test.trigger {
					t.Errorf("at %s: expected %s, found %s: %s (%s)", now, want, m.RefreshAt, m.Why, m.Trigger)
				}
			}
		})
	}
}

func planned(refreshAt string) State { return State{RefreshAt: at(refreshAt), Trigger: TriggerPlanned} }

func ran(refreshAt, succeeded string) State {
	return State{RefreshAt: at(refreshAt), Trigger: TriggerPlanned, LastSuccessAt: at(succeeded)}
}

func retry(refreshAt string) State {
	return State{RefreshAt: at(refreshAt), Trigger: TriggerRetry, AttemptNo: 1, FailingSince: at("12-02T10:00"), TryingSince: at("12-02T10:00")}
}

func givesUp(refreshAt, since string) State {
	return State{RefreshAt: at(refreshAt), Trigger: TriggerPlanned, FailingSince: at(since), TryingSince: at(since)}
}
