package dashboard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
)

// planned lets the planner run until the test ends, and waits for its first plan.
func (d *visitor) planned() {
	d.t.Helper()
	site := d.dashboard.sites.list[0]
	ctx, stop := context.WithCancel(d.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); site.planner.run(ctx, site.queue, time.Now) }()
	d.t.Cleanup(func() { stop(); <-ended })
	_, _ = site.planner.last(d.t.Context())
	<-site.planner.first
}

func TestThePlanNamesItsPeakAndWhatThatNeeds(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		expect(t, d.page(home+"plan"), "is being computed")
		for i := range 30 {
			d.put(fmt.Sprintf(`"uid":"m%d","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`, i))
		}
		d.put(`"uid":"a","refresh":"now","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=5;BYSECOND=0"`)
		d.start()
		d.Clock.Turn(2 * time.Minute)
		d.answer("success", "a")
		d.planned()
		page := d.page(home + "plan")
		expect(t, page, "Most starts at 09:00: 31 in 10 minutes, which needs 7 slots at 2m each.", "<title>09:00: 31 starts</title>", "Computed at ")
		expectNone(t, page, "is being computed", "style=")
		d.put(`"uid":"b","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`)
		expect(t, d.page(home+"plan"), "31 in 10 minutes") // it is kept for a while
	})
}

func TestThePlanOfAnEmptyQueueIsWhole(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.planned()
	expect(t, d.page(home+"plan"), "Nothing starts within 24 hours.")
}

// A plan takes as long as it takes: no page waits for it.
func TestAPageDoesNotWaitForThePlan(t *testing.T) {
	p := newPlanner()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	plan, err := p.last(ctx)
	failIf(t, plan != nil || err != nil || len(p.wanted) != 1, "expected a plan asked for and none waited for, found %v, %v", plan, err)
	before := p.version()
	failIf(t, !strings.Contains(before, "0"), "expected no computation yet, found %s", before)
}
