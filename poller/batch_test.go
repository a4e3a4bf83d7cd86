package poller_test

import (
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/poller"
)

func TestAHundredMessagesAreABatchUnlessToldOtherwise(t *testing.T) {
	for batch, want := range map[int][]int{0: {100, 100, 30, 0}, 7: {7, 7, 7, 7}, 1000: {230, 0, 0, 0}} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				for range 230 {
					b.Say("garbage")
				}
				p := b.poller(b.Store, poller.Config{Batch: batch})
				var claimed []int
				for range want {
					claimed = append(claimed, b.roundOf(p).Claimed)
				}
				equal(t, want, claimed)
			})
		})
	}
}
