package dispatcher_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

const sixAMinute = `{"timeout":"1h","retries":[],"limits":[{"key":"{host(input_url)}","rate":"6/m"}]}`

// begun are when the attempts of models were started, in seconds since the world began, in that order.
func (b *bundle) begun(uids ...string) (at []string) {
	b.t.Helper()
	for _, uid := range uids {
		if since := b.Model(uid)["started_at"]; since != "" {
			began, err := time.Parse(time.RFC3339, since)
			must(b.t, err)
			at = append(at, fmt.Sprintf("%05.1f %s", began.Sub(fixture.Start).Seconds(), uid))
		}
	}
	slices.Sort(at)
	return at
}

func TestAnOutageEndsInNoBurstAndWhoHoldsASlotStartsInItsTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		held, newcomers := uidsOf("t1", 5), []string{"t1/a0", "t1/a1"}
		b.fleet(sixAMinute, held...)
		b.settle(d)
		b.Clock.Turn(25 * time.Second) // no dispatcher runs: two slots pass, and two are to come
		b.settle(d)
		if hash := b.Model("t1/m02"); hash["parked_by"] != "limit:host=t1" || hash["reserved"] != "host=t1" {
			t.Errorf("what is late and not first waits at %q, and holds %q", hash["parked_by"], hash["reserved"])
		}
		b.fleet(sixAMinute, newcomers...)
		for range 100 {
			b.settle(d)
			b.Clock.Turn(time.Second)
		}
		want := []string{"000.0 t1/m00", "025.0 t1/m01", "035.0 t1/m02", "045.0 t1/m03", "055.0 t1/m04", "065.0 t1/a0", "075.0 t1/a1"}
		equal(t, want, b.begun(append(held, newcomers...)...))
		left := b.Scores(b.Store.Keys.Gates)
		failIf(t, len(left) > 0, "still looked at: %v", left)
	})
}
