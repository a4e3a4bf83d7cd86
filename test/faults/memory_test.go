package faults

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

var oomCount = regexp.MustCompile(`errorstat_OOM:count=(\d+)`)

// refused is how many commands Redis has refused for lack of memory.
func (d *drill) refused() (int, error) {
	info, err := d.clients.Read.Info(d.ctx, "errorstats").Result()
	if count := oomCount.FindStringSubmatch(info); err == nil && count != nil {
		return strconv.Atoi(count[1])
	}
	return 0, err
}

// take takes entries as a worker does that will be long at work.
func (d *drill) take(count int) (held []fixture.Entry) {
	d.t.Helper()
	d.until("entries to take", func() (bool, error) {
		entry, err := pop(d.ctx, d.clients.Block, d.store.Keys.Input)
		if err == nil {
			d.record.ran(entry.AttemptUID)
			held = append(held, entry)
		}
		return len(held) == count, nil
	})
	return held
}

// answer pushes a success for each entry until Redis takes it.
func (d *drill) answer(held []fixture.Entry) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, entry := range held {
			d.say(ctx, d.clients.Write, d.store.Keys.Output, entry)
		}
		return nil
	}
}

func TestAFullRedisRefusesAndLosesNothingUntilThereIsRoom(t *testing.T) {
	long.Only(t)
	d, _ := on(t, "--maxmemory-policy", "noeviction")
	d.begin()
	for i := range long.Or(2, 3) * *timesFlag {
		held := d.take(5)
		d.check("fill the memory", d.clients.Write.ConfigSet(d.ctx, "maxmemory", "1mb").Err())
		d.workers.run(d.answer(held))
		d.until("refused commands", func() (bool, error) {
			count, err := d.refused()
			return count >= (i+1)*20, err
		})
		d.check("make room", d.clients.Write.ConfigSet(d.ctx, "maxmemory", "0").Err())
		d.progress(50)
	}
	d.settle()
	d.conclude()
	count, err := d.refused()
	if d.record.refusals() == 0 {
		t.Error("want pushes of workers refused")
	}
	t.Logf("%d commands were refused (%v), and with them %d messages of workers", count, err, d.record.refusals())
}
