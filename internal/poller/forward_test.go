package poller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// pair is a queue of two parts with a poller each.
type pair struct {
	t       *testing.T
	redis   goredis.UniversalClient
	parts   []*store.Store
	pollers []*poller.Poller
}

func newPair(t *testing.T, server *testkit.Server) *pair {
	t.Helper()
	client := server.Client(t)
	clients := &redis.Clients{Read: client, Write: client, Block: client}
	clock := fixture.Start
	config := store.Config{Queue: "q", Clock: func() time.Time { clock = clock.Add(2 * time.Second); return clock }}
	must(t, store.Create(t.Context(), clients, config, 2))
	queue, err := store.Open(t.Context(), clients, config)
	must(t, err)
	p := &pair{t: t, redis: client, parts: queue.Parts}
	for _, part := range queue.Parts {
		poller, err := poller.New(poller.RoomsOf(part), poller.Config{Owner: "p"})
		must(t, err)
		p.pollers = append(p.pollers, poller)
	}
	return p
}

// onPair runs a test on a pair of each server that is to be had.
func onPair(t *testing.T, test func(t *testing.T, p *pair)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) { test(t, newPair(t, server)) })
}

func (p *pair) in(part, count int) (uids []string) {
	for i := 0; len(uids) < count; i++ {
		if uid := fmt.Sprint("m", i); store.PartOf(uid, len(p.parts)) == part {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (p *pair) push(list string, messages ...string) {
	p.t.Helper()
	for _, message := range messages {
		must(p.t, p.redis.RPush(p.t.Context(), list, message).Err())
	}
}

func (p *pair) round(part int) poller.Round {
	p.t.Helper()
	round, err := p.pollers[part].RunOnce(p.t.Context())
	must(p.t, err)
	return round
}

// rounds lets the poller of a part work until no command waits: a part that is slow to answer has its commands in a later round.
func (p *pair) rounds(part int) {
	p.t.Helper()
	for range 1000 {
		if p.round(part).Waiting == 0 {
			return
		}
	}
	p.t.Fatalf("part %d: want its commands carried out, they wait after 1000 rounds", part)
}

func (p *pair) expectStats(part int, want map[string]int64) {
	p.t.Helper()
	stats, err := report.Of(p.parts[part]).Stats(p.t.Context())
	must(p.t, err)
	for name, count := range want {
		failIf(p.t, stats.Counters[name] != count, "part %d: want %s counted %d times, got %v", part, name, count, stats.Counters)
	}
}

func TestACommandIsAppliedInThePartOfItsModelWhereverItWasPushed(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		here, there := p.in(0, 1)[0], p.in(1, 1)[0]
		control := p.parts[0].Keys.Control
		p.push(control, put(here), put(there), "garbage",
			fmt.Sprintf(`{"type":"disable","uid":%q,"reason":"first"}`, there), fmt.Sprintf(`{"type":"enable","uid":%q}`, there),
			fmt.Sprintf(`{"type":"disable","uid":%q,"reason":"last"}`, there))
		p.round(0)
		p.expectStats(0, map[string]int64{"create": 1, "forwarded": 4, "malformed": 1})
		p.round(1)
		p.expectStats(1, map[string]int64{"create": 1, "disable": 2, "enable": 1, "forwarded": 0})
		records, err := p.parts[1].Load(t.Context(), []string{there})
		failIf(t, err != nil || records[there].DisabledReason != "last", "want the commands in their order, got %+v, %v", records[there], err)
	})
}

func TestResultsGoOnWhileThePartOfACommandDoesNotAnswer(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		here, there := p.in(0, 1)[0], p.in(1, 1)[0]
		broken := p.parts[1].Keys.Control
		must(t, p.redis.Set(t.Context(), broken, "no list", 0).Err())
		p.push(p.parts[0].Keys.Control, put(there), put(here), strings.Replace(put(there), "http://feed", "http://new", 1))
		p.push(p.parts[0].Keys.Output, "garbage")
		if round := p.round(0); round.Waiting != 2 || round.Left != 2 || round.Applied != 1 || round.Rejected != 1 {
			t.Errorf("want two commands waiting and the rest done, got %+v", round)
		}
		p.push(p.parts[0].Keys.Output, "garbage")
		round := p.round(0)
		failIf(t, round.Waiting != 2 || round.Rejected != 1, "want the commands waiting still and the result done, got %+v", round)
		must(t, p.redis.Del(t.Context(), broken).Err())
		p.round(0)
		p.round(1)
		p.expectStats(1, map[string]int64{"create": 1, "update": 1})
	})
}

func TestAResultInTheWrongListIsRejectedAndTheRightOneNamed(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		there := p.in(1, 1)[0]
		p.push(p.parts[0].Keys.Output, fmt.Sprintf(`{"type":"success","big_table_uid":%q,"refresh_attempt_uid":"a"}`, there))
		p.round(0)
		reason, err := outbox.Of(p.parts[0]).LastRejected(t.Context())
		want := `big_table_uid: expected in {q:1}-output, as reply_to said, found "` + there + `"`
		failIf(t, err != nil || reason != want, "want %s, got %s, %v", want, reason, err)
	})
}

// hanging is a part of a queue whose others do not answer, and do not refuse either.
type hanging struct {
	*store.Store
	asked int
}

func (h *hanging) Forward(ctx context.Context, _ []store.Forwarded) (map[*store.Keys]bool, error) {
	h.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAPartThatHangsIsLeftAloneWhileResultsAreApplied(t *testing.T) {
	server := testkit.Miniredis(t)
	p := newPair(t, server)
	client := server.Client(t)
	now := fixture.Start
	queue, err := store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client},
		store.Config{Queue: "q", Clock: func() time.Time { return now }})
	must(t, err)
	part := &hanging{Store: queue.Parts[0]}
	const tick = 10 * time.Millisecond
	poller, err := poller.New(poller.Rooms{Store: part, Flow: flow.Of(part.Store)}, poller.Config{Owner: "p", Tick: tick, Lease: time.Second})
	must(t, err)
	round := func() {
		t.Helper()
		p.push(part.Keys.Output, "garbage")
		if round, err := poller.RunOnce(t.Context()); err != nil || round.Rejected != 1 || round.Waiting != 1 {
			t.Errorf("want the result handled and the command waiting, got %+v, %v", round, err)
		}
	}
	p.push(part.Keys.Control, put(p.in(1, 1)[0]))
	round()
	now = now.Add(tick) // for so long it was waited for
	for range 20 {
		round()
	}
	failIf(t, part.asked != 1, "want the part asked once, got %d times", part.asked)
	now = now.Add(2 * tick)
	round()
	now = now.Add(-time.Hour) // the clock is set back
	round()
	failIf(t, part.asked != 3, "want the part asked again when its time has come, got %d times", part.asked)
}

// TestCommandsThatWaitLeaveRoomForResultsAndOtherCommands fills the lane with what another part does not take.
func TestCommandsThatWaitLeaveRoomForResultsAndOtherCommands(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		here, there := p.in(0, 60), p.in(1, 49)
		must(t, p.redis.Set(t.Context(), p.parts[1].Keys.Control, "no list", 0).Err())
		for _, uid := range there {
			p.push(p.parts[0].Keys.Control, put(uid))
		}
		p.round(0)
		for i, uid := range here {
			p.push(p.parts[0].Keys.Control, put(uid))
			p.push(p.parts[0].Keys.Output, fmt.Sprint("garbage ", i))
		}
		for range here {
			p.round(0)
		}
		p.expectStats(0, map[string]int64{"create": 60, "malformed": 60})
	})
}

func TestACommandThatWasClaimedBeforeThereWerePartsIsRejectedAndNotInTheWay(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		here, there := p.in(0, 1)[0], p.in(1, 1)[0]
		p.push(p.parts[0].Keys.ClaimedCommands, "c"+put(there), "c"+put(here))
		p.round(0)
		p.expectStats(0, map[string]int64{"create": 1, "malformed": 1})
		reason, err := outbox.Of(p.parts[0]).LastRejected(t.Context())
		failIf(t, err != nil || reason != "uid: expected a command for this part of the queue, found one for {q:1}", "got %s, %v", reason, err)
	})
}
