package notifier

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestWhatARecipientIsToldNext(t *testing.T) {
	now := fixture.Start
	since := now.Add(-time.Minute).UnixMilli()
	hook := &webhook{}
	for name, test := range map[string]struct {
		above, waiting int
		before, after  store.Delivery
		until          time.Duration // from now; 0: at once
	}{
		"nothing waits":               {above: 1, before: store.Delivery{Since: since, Sent: 1}},
		"the first":                   {above: 2, waiting: 1, after: store.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
		"several":                     {above: 2, waiting: 3, after: store.Delivery{Size: 3, Since: now.UnixMilli(), Sent: 2}},
		"no more than may be":         {above: 2, waiting: 2, after: store.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
		"the last that may be":        {above: 2, waiting: 1, before: store.Delivery{Since: since, Sent: 1}, after: store.Delivery{Size: 1, Since: since, Sent: 2}},
		"more than are left":          {above: 2, waiting: 2, before: store.Delivery{Since: since, Sent: 1}, after: store.Delivery{Size: 2, Since: since, Sent: 2}},
		"too many within the time":    {above: 2, waiting: 9, before: store.Delivery{Since: since, Sent: 2}, after: store.Delivery{Since: since, Sent: 2}, until: 4 * time.Minute},
		"one in hand, whatever waits": {above: 2, waiting: 9, before: store.Delivery{By: "dead", Size: 4, Tries: 2, Since: since, Sent: 1}, after: store.Delivery{By: "dead", Size: 4, Tries: 2, Since: since, Sent: 1}},
		"one in hand that was cut":    {above: 2, waiting: 3, before: store.Delivery{Size: 4}, after: store.Delivery{Size: 3}},
		"no digests":                  {waiting: 9, after: store.Delivery{Size: 1}},
		"the clock was set back meanwhile": {above: 1, waiting: 1, before: store.Delivery{Since: now.Add(time.Hour).UnixMilli(), Sent: 1},
			after: store.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
	} {
		c := &Channel{sender: hook, digest: digest{test.above, 5 * time.Minute}}
		after, until := c.next(test.before, test.waiting, now)
		wait := time.Duration(0)
		if !until.IsZero() {
			wait = until.Sub(now)
		}
		if after != test.after || wait != test.until {
			t.Errorf("%s: got %+v, in %s, want %+v, in %s", name, after, wait, test.after, test.until)
		}
	}
}
