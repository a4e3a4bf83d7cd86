package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/faces/metrics"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

type loopStore interface {
	dispatcher.Store
	poller.Store
}

// BenchmarkRound measures a round of a dispatcher that starts 100 models, and rounds of a poller that apply what their worker says: begun and
// succeeded. Each model is due again at once.
func BenchmarkRound(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with metrics"}[on], func(b *testing.B) {
			queue := fixture.Live(b, testkit.Redis(b))
			measure := func(string) (loopStore, func() func(error)) {
				return queue.Store, func() func(error) { return func(error) {} }
			}
			if on {
				m := metrics.New(metrics.Build{}, time.Now)
				m.Watch(&store.Clients{Read: queue.Redis, Write: queue.Redis, Block: queue.Redis})
				measure = func(name string) (loopStore, func() func(error)) {
					loop := m.Loop("bigtables", name)
					return measured{queue.Store, loop}, loop.Begin
				}
			}
			starts, starting := measure("dispatcher")
			applies, applying := measure("poller")
			d, _ := dispatcher.New(starts, dispatcher.Config{Owner: "d"})
			p, _ := poller.New(applies, poller.Config{Owner: "p", Batch: 200})
			for i := range 100 {
				queue.Command(fmt.Sprintf(`{"type":"put","uid":"m%d","refresh":"now","rrule":"FREQ=DAILY","policy":{"timeout":"10m"}}`, i))
			}
			round := func(begin func() func(error), run func() error) {
				ended := begin()
				err := run()
				if ended(err); err != nil {
					b.Fatal(err)
				}
			}
			apply := func() { round(applying, func() error { _, err := p.RunOnce(b.Context()); return err }) }
			apply()
			for b.Loop() {
				round(starting, func() error { _, err := d.RunOnce(b.Context()); return err })
				b.StopTimer()
				for entry, found := queue.Take(); found; entry, found = queue.Take() {
					queue.Say(fixture.Result("started", entry.UID, entry.AttemptUID), fixture.Result("success", entry.UID, entry.AttemptUID))
					queue.Command(fmt.Sprintf(`{"type":"run","uid":%q}`, entry.UID))
				}
				b.StartTimer()
				apply()
				b.StopTimer()
				apply() // the commands
				b.StartTimer()
			}
		})
	}
}
