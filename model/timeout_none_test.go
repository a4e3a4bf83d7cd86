package model

import (
	"testing"
)

func TestWithoutTimeoutThePlannedRefreshTakesThePlaceOfTheAttempt(t *testing.T) {
	const (
		twice = `"rrule":"FREQ=DAILY;BYHOUR=6,16","dtstart":"2026-01-01",`
		none  = twice + `"policy":{"timeout":"none","retries":["5m","5m"],"on_exhausted":"give_up"}`
	)
	runStories(t, []storyTest{
		// Two variables: no deadline but the next planned time
		{none, "06:00 wake", "#1 a1 until 16:00, next 16:00: if lost: retry 1/2 at once: no answer until planned"},
		{none, "06:00 wake | 16:00 timeout", "#1, next 16:00: retry 1/2 at once: no answer until planned"},
		{none, "06:00 wake | 16:00 timeout | 16:00 wake", "#2 a2 until 06:00+1, next 06:00+1: if lost: retry 2/2 at once: no answer until planned"},
		{none, "06:00 wake | 16:00 timeout | 16:00 wake | 06:00+1 timeout | 06:00+1 wake", "#3 a3 until 16:00+1, next never: if lost: final: exhausted after 3"},
		{none, "06:00 wake | 07:00 success", "#0, next 16:00: planned"},
		{none, "06:00 wake | 07:00 failure", "#1, next 07:05: retry 1/2 +5m, before planned"},
		{none, "06:00 wake | 15:00 started", "#1 a1 until 16:00, next 16:00: if lost: retry 1/2 at once: no answer until planned"},

		// Nobody noticed the planned time until later
		{none, "06:00 wake | 18:00 timeout", "#1, next 18:00: retry 1/2 at once: no answer until planned"},
		{none, "06:00 wake | 18:00 success", "#0, next 06:00+1: planned"},

		// No retry is left: the planned refresh runs all the same, or the model gives up
		{twice + `"policy":{"timeout":"none","retries":[]}`, "06:00 wake", "#1 a1 until 16:00, next 16:00: if lost: exhausted after 1, planned now"},
		{twice + `"policy":{"timeout":"none","retries":[]}`, "06:00 wake | 16:00 timeout", "#0, next 16:00: exhausted after 1, planned now"},
		{twice + `"policy":{"timeout":"none","retries":[],"on_exhausted":"give_up"}`, "06:00 wake | 16:00 timeout", "#1 disabled (Cannot refresh after 1 attempt: timeout): final: exhausted after 1"},
		{twice + `"policy":{"timeout":"none","retries":["next"]}`, "06:00 wake | 16:00 timeout", "#1, next 16:00: retry 1/1 at once: no answer until planned"},
		{twice + `"policy":{"timeout":"none","retries":["5m"],"never_retry":["timeout"]}`, "06:00 wake | 16:00 timeout",
			"#1 disabled (Cannot refresh after 1 attempt: timeout): final: never retry timeout"},

		// Between planned, it begins a new cycle
		{twice + `"policy":{"timeout":"none","retries":["5m"],"alignment":"between_planned"}`, "06:00 wake | 16:00 timeout", "#0, next 16:00: retry 1/1 at once: no answer until planned"},
	})
}

func TestWithoutTimeoutAndPlanNothingEndsTheWaitButTheWindow(t *testing.T) {
	runStories(t, []storyTest{
		{`"policy":{"timeout":"none","retries":[]}`, "00:00 wake", "#1 a1 until 00:00+3650, next never: if lost: final: exhausted, none planned"},
		{`"policy":{"timeout":"none","retries":[]}`, "00:00 wake | 09:00+300 success", "#0, next never: finished: one-shot"},
		{`"policy":{"timeout":"none","give_up_after":"2d","retries":["1m"]}`, "00:00 wake", "#1 a1 until 00:00+2, next never: if lost: final: no success for 2d"},
		{atSixteen + `"policy":{"timeout":"none","give_up_after":"2d","retries":["1m","1m","1m"]}`, "16:00 wake | 16:00+1 timeout | 16:00+1 wake",
			"#2 a2 until 16:00+2, next never: if lost: final: no success for 2d"},
		{atSixteen + `"policy":{"timeout":"none","give_up_after":"2d","retries":["1m","1m","1m"]}`, "15:00 run | 15:00 wake | 16:00 timeout",
			"#1, next 16:00: retry 1/3 at once: no answer until planned"},
	})
}
