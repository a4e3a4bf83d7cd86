package dashboard

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

const (
	maxTries    = 10   // tokens of one address in a tryWindow that are compared at once
	maxTriesAll = 1000 // of all addresses
	tryWindow   = time.Minute
	tryWait     = 5 * time.Second // how long each further one waits
	maxWaiting  = 100             // of one address; what is more is refused

	knownTime = 24 * time.Hour
	maxKnown  = 10_000
)

// tries slows down who guesses tokens, by address. Who was right lately never waits there, so nobody can lock others out.
type tries struct {
	clock func() time.Time
	wait  func(ctx context.Context, how time.Duration)

	mu      sync.Mutex
	since   time.Time           // guarded by mu: when the window began
	tried   map[string]int      // guarded by mu: tokens in the window by address, without the right ones
	all     int                 // guarded by mu: of all addresses
	waiting map[string]int      // guarded by mu: by address
	known   map[known]time.Time // guarded by mu: when a token was right there last
}

type known struct{ address, token string }

func newTries(clock func() time.Time) tries {
	rest := func(ctx context.Context, how time.Duration) { backoff.Rest(ctx, how, nil) }
	return tries{clock: clock, wait: rest, waiting: map[string]int{}, known: map[known]time.Time{}}
}

// admit waits until a token may be compared, which nobody may tell to be right by how long that takes. slow: it was not at once; refused: it is not to be
// compared at all.
func (t *tries) admit(ctx context.Context, address string, right *Token) (slow, refused bool) {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Unmap().Is6() { // one host may have all addresses of its network
		network, _ := ip.Prefix(64)
		address = network.String()
	}
	one := known{address: address}
	if right != nil {
		one.token = right.Text
	}
	if slow, refused = t.enter(one); slow && !refused {
		t.wait(ctx, tryWait)
		refused = ctx.Err() != nil
	}
	t.leave(one, slow, refused)
	return slow, refused
}

func (t *tries) enter(one known) (slow, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if last, seen := t.known[one]; seen && now.Sub(last) < knownTime {
		return false, false
	}
	if now.Sub(t.since) >= tryWindow {
		t.since, t.tried, t.all = now, map[string]int{}, 0
	}
	if t.tried[one.address] < maxTries && t.all < maxTriesAll {
		t.tried[one.address]++
		t.all++
		return false, false
	}
	t.waiting[one.address]++
	return true, t.waiting[one.address] > maxWaiting
}

// leave ends what enter began, and remembers a right token.
func (t *tries) leave(one known, slow, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slow {
		if t.waiting[one.address]--; t.waiting[one.address] == 0 {
			delete(t.waiting, one.address)
		}
	}
	if one.token == "" || refused {
		return
	}
	_, seen := t.known[one]
	if !seen && !slow && t.tried[one.address] > 0 { // it was no guess
		t.tried[one.address]--
		t.all--
	}
	for old := range t.known {
		if seen || len(t.known) < maxKnown {
			break
		}
		delete(t.known, old)
	}
	t.known[one] = t.clock()
}
