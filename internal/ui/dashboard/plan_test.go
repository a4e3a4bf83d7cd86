package dashboard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// planned lets the planner run until the test ends, and waits for its first plan.
func (d *visitor) planned() {
	d.t.Helper()
	site := d.dashboard.sites.list[0]
	ctx, stop := context.WithCancel(d.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); site.planner.run(ctx, site.queue, time.Now) }()
	d.t.Cleanup(func() { stop(); <-ended })
	d.page(home + "plan") // for which it is wanted
	check.Eventually(d.t, "a plan", func() bool { return site.planner.last.Load() != nil })
}

func TestThePlanNamesItsPeakAndIsKeptForAWhile(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		before := d.dashboard.sites.list[0].planner.version()
		expect(t, d.page(home+"plan"), "is being computed") // no page waits for it
		for i := range 30 {
			d.put(fmt.Sprintf(`"uid":"m%d","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`, i))
		}
		d.put(`"uid":"a","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=5;BYSECOND=0"`)
		d.planned()
		page := d.page(home + "plan")
		expect(t, page, "Most starts at 09:00: 31 in 10 minutes.", "<title>09:00: 31 starts</title>", "Computed at ")
		expectNone(t, page, "is being computed", "style=")
		d.put(`"uid":"b","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`)
		expect(t, d.page(home+"plan"), "31 in 10 minutes")
		failIf(t, d.dashboard.sites.list[0].planner.version() == before, "expected a page that waits for the plan read again")
	})
}

func TestThePlanOfAnEmptyQueueIsWhole(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.planned()
	expect(t, d.page(home+"plan"), "Nothing starts within 24 hours.")
}
