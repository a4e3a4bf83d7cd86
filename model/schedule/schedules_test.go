package schedule

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestACachedScheduleIsCompiledOnceAndTheCacheIsBounded(t *testing.T) {
	var c Cache
	get := func(minute int) *Schedule {
		s, err := c.Get("FREQ=DAILY", "", time.Unix(int64(minute)*60, 0).UTC().Format(dtstartLayout))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := get(0)
	for i := range 5 * maxGeneration {
		get(i)
		if i%1000 == 0 && get(0) != first {
			t.Fatalf("a schedule in use was compiled again after %d others", i)
		}
	}
	if n := len(c.recent) + len(c.previous); n > 2*maxGeneration {
		t.Errorf("the cache holds %d schedules", n)
	}
	if get(1) == nil || len(c.previous) == 0 {
		t.Error("the cache has no second generation")
	}
	if _, err := c.Get("FREQ=NEVER", "", "2026-01-01"); err == nil {
		t.Error("a bad rule was cached as a good one")
	}
}

func TestTheCacheMayBeUsedByManyAtOnce(t *testing.T) {
	var c Cache
	group := sync.WaitGroup{}
	for range 8 {
		group.Go(func() {
			for i := range 200 {
				s, err := c.Get(fmt.Sprintf("FREQ=DAILY;BYHOUR=%d", i%24), "Europe/Berlin", "2026-01-01")
				if err != nil {
					t.Error(err)
					return
				}
				if _, ok := s.Next(time.Unix(0, 0)); !ok {
					t.Error("no occurrence")
				}
			}
		})
	}
	group.Wait()
}
