package poller_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/poller"
)

// jumps are what a clock does in the life of a poller: it is set by hand, or by NTP after a long time without.
var jumps = map[string][]time.Duration{
	"it runs on":                       {0},
	"a second back":                    {-time.Second},
	"five seconds back":                {-5 * time.Second},
	"a minute back":                    {-time.Minute},
	"an hour back":                     {-time.Hour},
	"a minute forward":                 {time.Minute},
	"an hour forward":                  {time.Hour},
	"an hour forward, and back again":  {time.Hour, -time.Hour},
	"an hour back, and forward again":  {-time.Hour, time.Hour},
	"back again and again":             {-time.Minute, -time.Minute, -time.Minute, -time.Hour},
	"back at every round of the lease": {-5 * time.Second, -time.Second, -5 * time.Second, -time.Second, -time.Minute, -5 * time.Second, -time.Hour},
}

func TestADeadPollerIsAdoptedWithinItsLeaseHoweverTheClockJumps(t *testing.T) {
	const lease, tick = 10 * time.Second, time.Second
	for name, jumps := range jumps {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.running("a")
				b.Say(b.result("success", "a"))
				adopter := b.poller(b.Store, poller.Config{Owner: "adopter", Lease: lease})
				dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
				if _, err := dead.RunOnce(t.Context()); err == nil {
					t.Fatal("want a crash")
				}
				b.roundOf(adopter)
				rounds := 0
				// A look comes four times in a lease, and what is found is applied in the round after.
				for most := int((lease+lease/4)/tick) + 1; b.Stats()["success"] == 0; rounds++ {
					if rounds > most {
						t.Fatalf("want the message applied within %d rounds, got %v", most, b.Scores(b.Store.Keys.Pollers))
					}
					if rounds < len(jumps) {
						b.Clock.Turn(jumps[rounds])
					}
					b.Clock.Turn(tick)
					b.roundOf(adopter)
				}
				t.Logf("applied in round %d after the jump", rounds)
			})
		})
	}
}
