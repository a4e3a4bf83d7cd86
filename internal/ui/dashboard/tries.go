package dashboard

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

const (
	maxTries   = 10 // tokens of one address in a tryWindow that are compared at once
	tryWindow  = time.Minute
	tryWait    = 5 * time.Second // how long each further one waits
	maxWaiting = 100             // of one address; more are refused

	knownTime    = 24 * time.Hour
	maxAddresses = 1000 // with a wrong token in the window, and with a right one
)

// tries slows down whoever guesses tokens, by address. A token that was right there lately never waits, so nobody can lock others out.
type tries struct {
	clock func() time.Time
	wait  func(ctx context.Context)

	mu      sync.Mutex
	since   time.Time           // guarded by mu: when the window began
	tried   map[string]int      // guarded by mu: tokens in the window by address, without the right ones
	waiting map[string]int      // guarded by mu: by address
	known   map[known]time.Time // guarded by mu: when a token was right there last
}

type known struct {
	address string
	token   *Token
}

func newTries(clock func() time.Time) tries {
	return tries{clock: clock, wait: func(ctx context.Context) { backoff.Rest(ctx, tryWait, nil) }, waiting: map[string]int{}, known: map[known]time.Time{}}
}

// admit waits until a token may be compared, as long for a right one as for a wrong one. nil, false: it waited and was wrong, or is not compared.
func (t *tries) admit(ctx context.Context, address string, right *Token) (token *Token, may bool) {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Unmap().Is6() { // one host may have all addresses of its network
		network, _ := ip.Prefix(64)
		address = network.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var slow, refused bool
	one := known{address, right}
	last, seen := t.known[one]
	if !seen || t.clock().Sub(last) >= knownTime {
		slow, refused = t.take(ctx, address)
	}
	if right == nil || refused {
		return nil, !slow
	}
	if !seen && !slow { // it was no guess
		t.tried[address]--
	}
	if !seen && len(t.known) >= maxAddresses {
		clear(t.known)
	}
	t.known[one] = t.clock()
	return right, true
}

// take counts a token of an address, and waits without mu if there were too many.
func (t *tries) take(ctx context.Context, address string) (slow, refused bool) {
	if now := t.clock(); now.Sub(t.since) >= tryWindow {
		t.since, t.tried = now, map[string]int{}
	}
	if tried := t.tried[address]; tried < maxTries && (tried > 0 || len(t.tried) < maxAddresses) {
		t.tried[address]++
		return false, false
	}
	if t.waiting[address] == maxWaiting {
		return true, true
	}
	t.waiting[address]++
	t.mu.Unlock()
	t.wait(ctx)
	t.mu.Lock()
	if t.waiting[address]--; t.waiting[address] == 0 {
		delete(t.waiting, address)
	}
	return true, ctx.Err() != nil
}
