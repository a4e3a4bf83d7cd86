package poller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

// pair is a queue of two parts with a poller each.
type pair struct {
	t       *testing.T
	redis   redis.UniversalClient
	parts   []*scripts.Store
	pollers []*poller.Poller
}

func newPair(t *testing.T, server *testkit.Server) *pair {
	t.Helper()
	client := server.Client(t)
	clients := &scripts.Clients{Read: client, Write: client, Block: client}
	clock := fixture.Start
	config := scripts.Config{Queue: "q", Clock: func() time.Time { clock = clock.Add(2 * time.Second); return clock }}
	if err := scripts.Create(t.Context(), clients, config, 2); err != nil {
		t.Fatal(err)
	}
	queue, err := scripts.Open(t.Context(), clients, config)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, redis: client, parts: queue.Parts}
	for _, part := range queue.Parts {
		poller, err := poller.New(part, poller.Config{Owner: "p"})
		if err != nil {
			t.Fatal(err)
		}
		p.pollers = append(p.pollers, poller)
	}
	return p
}

// in names models of a part.
func (p *pair) in(part, count int) (uids []string) {
	for i := 0; len(uids) < count; i++ {
		if uid := fmt.Sprint("m", i); scripts.PartOf(uid, len(p.parts)) == part {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (p *pair) push(list string, messages ...string) {
	p.t.Helper()
	for _, message := range messages {
		if err := p.redis.RPush(p.t.Context(), list, message).Err(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pair) round(part int) poller.Round {
	p.t.Helper()
	round, err := p.pollers[part].RunOnce(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return round
}

func (p *pair) expectStats(part int, want map[string]int64) {
	p.t.Helper()
	stats, err := p.parts[part].Stats(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for name, count := range want {
		if stats.Counters[name] != count {
			p.t.Errorf("part %d: want %s counted %d times, got %v", part, name, count, stats.Counters)
		}
	}
}

func TestACommandIsAppliedInThePartOfItsModelWhereverItWasPushed(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		p := newPair(t, server)
		here, there := p.in(0, 1)[0], p.in(1, 1)[0]
		control := p.parts[0].Keys.Control()
		p.push(control, put(here), put(there), "garbage",
			fmt.Sprintf(`{"type":"disable","uid":%q,"reason":"first"}`, there), fmt.Sprintf(`{"type":"enable","uid":%q}`, there),
			fmt.Sprintf(`{"type":"disable","uid":%q,"reason":"last"}`, there))
		p.round(0)
		p.expectStats(0, map[string]int64{"create": 1, "forwarded": 4, "malformed": 1})
		p.round(1)
		p.expectStats(1, map[string]int64{"create": 1, "disable": 2, "enable": 1, "forwarded": 0})
		records, err := p.parts[1].Load(t.Context(), []string{there})
		if err != nil || records[there].DisabledReason != "last" {
			t.Errorf("want the commands in their order, got %+v, %v", records[there], err)
		}
	})
}

func TestResultsGoOnWhileThePartOfACommandDoesNotAnswer(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		p := newPair(t, server)
		here, there := p.in(0, 1)[0], p.in(1, 1)[0]
		broken := p.parts[1].Keys.Control()
		if err := p.redis.Set(t.Context(), broken, "no list", 0).Err(); err != nil {
			t.Fatal(err)
		}
		p.push(p.parts[0].Keys.Control(), put(there), put(here), strings.Replace(put(there), "http://feed", "http://new", 1))
		p.push(p.parts[0].Keys.Output(), "garbage")
		if round := p.round(0); round.Waiting != 2 || round.Left != 2 || round.Applied != 1 || round.Rejected != 1 {
			t.Errorf("want two commands waiting and the rest done, got %+v", round)
		}
		p.push(p.parts[0].Keys.Output(), "garbage")
		if round := p.round(0); round.Waiting != 2 || round.Rejected != 1 {
			t.Errorf("want the commands waiting still and the result done, got %+v", round)
		}
		if err := p.redis.Del(t.Context(), broken).Err(); err != nil {
			t.Fatal(err)
		}
		p.round(0)
		p.round(1)
		p.expectStats(1, map[string]int64{"create": 1, "update": 1})
	})
}

func TestAResultInTheWrongListIsRejectedAndTheRightOneNamed(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		p := newPair(t, server)
		there := p.in(1, 1)[0]
		p.push(p.parts[0].Keys.Output(), fmt.Sprintf(`{"type":"success","big_table_uid":%q,"refresh_attempt_uid":"a"}`, there))
		p.round(0)
		reason, err := p.parts[0].LastRejected(t.Context())
		if want := `big_table_uid: expected in {q:1}-output, as reply_to said, found "` + there + `"`; err != nil || reason != want {
			t.Errorf("want %s, got %s, %v", want, reason, err)
		}
	})
}
