package poller_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// A poller whose user lacks a right that the handover needs leaves places to dispatchers.
func TestAPollerThatMayNotReadWhoWaitsAppliesResultsAndSaysSo(t *testing.T) {
	for name, refused := range map[string]func(k *store.Keys, command string) bool{
		"the window": func(k *store.Keys, command string) bool { return strings.HasPrefix(command, "hget "+k.Heard+" ") },
		"the first of it": func(k *store.Keys, command string) bool {
			return strings.HasPrefix(command, "zrange "+k.ParkedBy(gate))
		},
		"holds":  func(k *store.Keys, command string) bool { return command == "hgetall "+k.Holds },
		"places": func(k *store.Keys, command string) bool { return command == "zcard "+k.Limit("host=feed") },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.line(oneAHost, "a", "b")
				b.Intercept(testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
					for _, c := range commands {
						if refused(&b.Store.Keys, words(c.Args())) {
							for _, all := range commands {
								all.SetErr(noPermission("NOPERM this user has no permissions"))
							}
							return commands[0].Err()
						}
					}
					return next()
				}))
				var text bytes.Buffer
				log := zerolog.New(&text)
				b.Say(b.result("success", "a"))
				round := b.roundOf(b.poller(b.Store, poller.Config{Log: &log}))
				failIf(t, round.Applied != 1 || round.Started != 0, "want the result applied and no start, got %+v", round)
				b.expectLeft("b")
				failIf(t, !strings.Contains(text.String(), "may start no model"), "want it logged, got %q", text.String())
			})
		})
	}
}

// noPermission is an answer of Redis.
type noPermission string

func (n noPermission) Error() string { return string(n) }

func (noPermission) RedisError() {}

func words(args []any) string {
	var all []string
	for _, arg := range args {
		all = append(all, fmt.Sprint(arg))
	}
	return strings.Join(all, " ")
}

func TestAPollerThatIsLostAtAnyCallOfAHandoverLosesNothing(t *testing.T) {
	t.Parallel()
	for n, struck := 1, true; struck; n++ {
		b := setup(t, testkit.Miniredis(t))
		b.line(twoAHost, "a", "b", "c", "d", "e")
		b.Say(b.result("success", "a"), b.result("success", "b"))
		fault := new(testkit.Fault)
		b.Intercept(fault)
		fault.Arm(n)
		p := b.poller(b.Store, poller.Config{})
		_, err := p.RunOnce(t.Context())
		struck = fault.Struck()
		fault.Arm(0)
		failIf(t, struck != (err != nil), "call %d (%s): told: %v", n, fault.Call(), err)
		b.roundOf(b.poller(b.Store, poller.Config{}))
		equal(t, []string{"c", "d"}, b.holding())
		b.ExpectStats(fmt.Sprint("call ", n, " failed"), map[string]int{"success": 2, "start": 4, "duplicate": 0})
		failIf(t, !struck && n < 6, "want more calls than %d", n)
	}
}

// Each part has its share of a limit, and its own line.
func TestAPartHandsOverItsOwnPlaces(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		part := p.parts[1]
		uids := p.in(1, 3)
		d, err := dispatcher.New(dispatcher.RoomsOf(part), dispatcher.Config{Owner: "d"})
		must(t, err)
		for _, uid := range uids {
			p.push(part.Keys.Control, fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"input_url":"http://feed/x"},"policy":{"timeout":"1h","retries":[]%s}}`, uid, twoAHost))
			p.round(1)
			for range 3 {
				must(t, check.Only(d.RunOnce(t.Context())))
			}
		}
		holding := func() []string { return p.redis.ZRange(t.Context(), part.Keys.Limit("host=feed"), 0, -1).Val() }
		equal(t, uids[:1], holding())
		p.redis.HSet(t.Context(), part.Keys.Heard, store.HeardWindow, fmt.Sprint("100 ", fixture.Start.Add(time.Hour).UnixMilli()))
		attempt := p.redis.HGet(t.Context(), part.Keys.Model(uids[0]), "attempt_uid").Val()
		p.push(part.Keys.Output, fixture.Result("success", uids[0], attempt))
		round := p.round(1)
		failIf(t, round.Started != 1, "want one of its share started, got %+v", round)
		equal(t, uids[1:2], holding())
	})
}
