package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// A policy may carry the schedule, for models that have none of their own.
const nightly = `"policy":{"rrule":"FREQ=DAILY;BYHOUR=6","timezone":"Europe/Berlin","timeout":"1h","retries":[]}`

func TestAModelRunsByTheScheduleOfItsPolicy(t *testing.T) {
	runStories(t, []storyTest{
		{nightly, "", "#0, next 05:00: planned"},
		{nightly, "05:00 wake | 05:10 success", "#0, next 05:00+1: planned"},
		{nightly, "05:00 wake", "#1 a1 until 06:00, next 05:00+1: if lost: exhausted after 1, planned"},
		{nightly, "05:00 wake | 05:10 failure | 05:00+1 wake", "#1 a2 until 06:00+1, next 05:00+2: if lost: exhausted after 1, planned"},
	})
}

func TestTheOwnRuleOfAModelWinsAsAWhole(t *testing.T) {
	runStories(t, []storyTest{
		// Not the zone of the policy either
		{`"rrule":"FREQ=DAILY;BYHOUR=7",` + nightly, "", "#0, next 07:00: planned"},
		{`"rrule":"FREQ=DAILY;BYHOUR=7","timezone":"America/New_York",` + nightly, "", "#0, next 12:00: planned"},
		// … nor its dtstart: the model's is midnight of the day on which it was created
		{`"rrule":"FREQ=HOURLY;INTERVAL=5",` + strings.Replace(nightly, `"rrule"`, `"dtstart":"2026-01-01T01:00:00","rrule"`, 1), "", "#0, next 05:00: planned"},

		// A rule of its own may go again: then that of the policy holds
		{`"rrule":"FREQ=DAILY;BYHOUR=7",` + nightly, `01:00 put "rrule":null`, "#0, next 05:00: planned"},
	})
}

func TestAModelMayPutTheRuleOfItsPolicyInItsOwnZone(t *testing.T) {
	runStories(t, []storyTest{
		{`"timezone":"America/New_York",` + nightly, "", "#0, next 11:00: planned"},
		{`"timezone":"UTC",` + nightly, "", "#0, next 06:00: planned"},
		{`"dtstart":"2026-01-06T00:00:00",` + nightly, "", "#0, next 05:00+1: planned"},
	})
	everyTenDays := `"policy":{"rrule":"FREQ=DAILY;INTERVAL=10","timezone":"Europe/Berlin"}`
	if m := tell(t, `"dtstart":"2026-01-02T08:00:00",`+everyTenDays, "").m; !m.RefreshAt.Equal(clock("07:00+7")) || m.Dtstart != "2026-01-02T08:00:00" {
		t.Errorf("from its own dtstart it runs at %s", clockText(m.RefreshAt))
	}
}

// Every second day, every second week: on the same days for all models, whenever they were created.
func TestTheRuleOfAPolicyCountsFromOneInstantForAll(t *testing.T) {
	for _, test := range []struct{ policy, want string }{
		{`"rrule":"FREQ=DAILY;INTERVAL=2"`, "2026-01-06T00:00:00"},  // Monday, 5 January, is 9135 days after the anchor,
		{`"rrule":"FREQ=WEEKLY;INTERVAL=2"`, "2026-01-12T00:00:00"}, // which are 1305 weeks
		{`"rrule":"FREQ=HOURLY;INTERVAL=5"`, "2026-01-05T00:00:00"}, // and 43848 times five hours
		{`"rrule":"FREQ=HOURLY;INTERVAL=7"`, "2026-01-05T00:00:00"}, // and 31320 times seven
		{`"rrule":"FREQ=MONTHLY"`, "2026-02-01T00:00:00"},
		{`"rrule":"FREQ=YEARLY"`, "2027-01-01T00:00:00"},
		{`"rrule":"every 2 hours"`, "2026-01-05T00:00:00"},
		{`"rrule":"30 6 * * *","timezone":"Europe/Berlin"`, "2026-01-05T05:30:00"},

		// On the wall clock of a zone, and from an anchor of its own
		{`"rrule":"FREQ=DAILY;INTERVAL=2","timezone":"Europe/Berlin"`, "2026-01-05T23:00:00"},
		{`"rrule":"FREQ=DAILY;INTERVAL=2","dtstart":"2026-01-01"`, "2026-01-05T00:00:00"},
		{`"rrule":"FREQ=DAILY;INTERVAL=2","dtstart":"20260102T080000"`, "2026-01-06T08:00:00"},
	} {
		m := Model{UID: "tbl_1"}
		if err := m.Resolve(policyOf(t, "{"+test.policy+"}"), schedule.Parse); err != nil {
			t.Fatal(err)
		}
		if got := FormatTime(m.Planned(monday.Add(-time.Millisecond))); got != test.want+".000Z" {
			t.Errorf("%s: %s, want %s", test.policy, got, test.want)
		}
	}
}

// A schedule that cannot be used delays its model and loses it not.
func TestAModelWhosePolicyHasABrokenRuleLooksAgainLater(t *testing.T) {
	m := Model{UID: "tbl_1"}
	err := m.Resolve(policy.Policy{Rule: "FREQ=NEVER", Timeout: time.Hour, OnExhausted: policy.NextPlanned}, schedule.Parse)
	if at, found := m.planned(monday); err == nil || !found || !at.Equal(clock("01:00")) {
		t.Errorf("planned at %s, %v, %v", at, found, err)
	}
}
