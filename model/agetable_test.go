package model

import (
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// Beyond the highest age the model is not dropped in silence: its owner reads why it ended.
func TestBeyondTheLastRowAModelIsExhausted(t *testing.T) {
	const table = `"policy":{"timeout":"1h","retries":{"by_age":[{"up_to":"1h","delay":"10m"},{"up_to":"2h","delay":"next"}]},"on_exhausted":"give_up"}`
	const hourly = `"rrule":"FREQ=HOURLY","dtstart":"2026-01-05",`
	runStories(t, []storyTest{
		// The age counts from the first start of a model that never succeeded
		{table, "00:00 wake | 00:30 failure", "#1, next 00:40: retry 1 +10m, none planned"},
		{table, "00:00 wake | 01:00 failure", "#1, next 01:10: retry 1 +10m, none planned"},
		{table, "00:00 wake | 01:00:00.001 failure", "#1 disabled (Cannot refresh after 1 attempt): final: none planned to wait for"},
		{hourly + table, "01:00 wake | 02:30 failure", "#1, next 03:00: retry 1 when planned"},
		{hourly + table, "01:00 wake | 03:00:00.001 failure", "#1 disabled (Cannot refresh after 1 attempt): final: exhausted after 1"},

		// … and then from the last success
		{table, "00:00 wake | 00:30 success | 05:00 run | 05:00 wake | 05:01 failure", "#1 disabled (Cannot refresh after 1 attempt): final: exhausted after 1"},
		{table, "00:00 wake | 00:30 success | 01:00 run | 01:00 wake | 01:30 failure", "#1, next 01:40: retry 1 +10m, none planned"},
	})
	goOn := strings.Replace(table, "give_up", "next_planned", 1)
	tell(t, hourly+goOn, "01:00 wake | 03:00:00.001 failure").expect("#0, next 04:00: exhausted after 1, planned")
}
