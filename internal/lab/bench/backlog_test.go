package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// BenchmarkCommandsBesideALongInputList measures how many commands a poller applies that take an entry back, beside none and
// beside 1,000 queued entries of 64 KiB: the input list must not be read for them.
func BenchmarkCommandsBesideALongInputList(b *testing.B) {
	commands := map[string]string{
		"run":     `{"type":"run","uid":"m%d","force":true}`,
		"disable": `{"type":"disable","uid":"m%d"}`,
		"remove":  `{"type":"remove","uid":"m%d"}`,
	}
	for name, command := range commands {
		for _, beside := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/beside=%d", name, beside), func(b *testing.B) { commandsBeside(b, command, beside) })
		}
	}
}

func commandsBeside(b *testing.B, command string, beside int) {
	const commands = 1000
	ctx := context.Background()
	q := fixture.Live(b, testkit.Redis(b))
	p, err := poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "p"})
	if err != nil {
		b.Fatal(err)
	}
	d, err := dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{MaxQueued: beside + 2*commands})
	if err != nil {
		b.Fatal(err)
	}
	other := fmt.Sprintf(`{"payload":%q}`, strings.Repeat("x", 64<<10))
	for range beside {
		q.Redis.RPush(ctx, q.Store.Keys.Input, other)
	}
	drain := func(command string) {
		var messages []any
		for i := range commands {
			messages = append(messages, fmt.Sprintf(command, i))
		}
		q.Redis.RPush(ctx, q.Store.Keys.Control, messages...)
		for applied := 0; applied < commands; {
			round, err := p.RunOnce(ctx)
			if err != nil || round.Settled > 0 {
				b.Fatal(round, err)
			}
			applied += round.Applied
		}
	}
	for b.Loop() {
		b.StopTimer()
		drain(`{"type":"put","uid":"m%d","payload":{},"refresh":"now"}`)
		var taken []any // by a worker that hands all back: the list fills no further than workers drain it
		for started := 0; started < commands; {
			round, err := d.RunOnce(ctx)
			if err != nil {
				b.Fatal(err)
			}
			started += round.Started
			for _, entry := range q.Redis.LPopCount(ctx, q.Store.Keys.Input, beside+commands).Val() {
				taken = append(taken, entry)
			}
		}
		q.Redis.RPush(ctx, q.Store.Keys.Input, taken...)
		b.StartTimer()
		drain(command)
		b.StopTimer()
		drain(`{"type":"put","uid":"m%d","payload":{"again":1}}`)
		drain(`{"type":"remove","uid":"m%d"}`)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*commands)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(0, "ns/op")
}
