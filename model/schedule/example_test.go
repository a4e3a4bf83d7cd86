package schedule_test

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/schedule"
)

func ExampleParse() {
	daily, err := schedule.Parse("FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "Europe/Berlin", "2026-01-01")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // in the following night the clocks go forward
	for range 3 {
		at, _ = daily.Next(at)
		fmt.Println(at.Format(time.RFC3339))
	}
	// Output:
	// 2026-03-28T15:00:00Z
	// 2026-03-29T04:00:00Z
	// 2026-03-29T14:00:00Z
}

func ExampleRuleText() {
	for _, text := range []string{
		"every 2 hours",
		"on the last Friday of the month at 18:00",
		"30 6 * * 1-5", // cron
		"@daily",
		"every day at 25:00",
	} {
		rule, err := schedule.RuleText(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(rule)
	}
	// Output:
	// FREQ=HOURLY;INTERVAL=2
	// FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0
	// FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6;BYMINUTE=30;BYSECOND=0
	// FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0
	// rrule: expected RRULE such as "FREQ=DAILY;BYHOUR=6", cron, or English such as "every day at 6 AM and 4 PM", found "every day at 25:00" ("25:00" is no time of day)
}
