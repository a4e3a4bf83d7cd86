package dashboard

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// countWaits counts the tokens that wait, and lets them pass.
func (d *visitor) countWaits() *atomic.Int32 {
	var waits atomic.Int32
	d.dashboard.auth.tries.wait = func(context.Context) { waits.Add(1) }
	return &waits
}

func behindProxy(c *Config) {
	withTokens(c)
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

func TestBehindTenWrongTokensEveryTokenWaitsUnlessItWasRightThereWithinADay(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), behindProxy)
	waits := d.countWaits()
	guess := func() {
		for range maxTries {
			d.try("wrong", "192.0.2.1")
		}
		waits.Store(0)
	}
	expectTry := func(words, token, client string, status, waited int) {
		t.Helper()
		before := int(waits.Load())
		got := d.try(token, client)
		failIf(t, got != status || int(waits.Load())-before != waited, "%s: expected %d after %d waits, found %d after %d", words, status, waited, got, int(waits.Load())-before)
	}
	guess()
	expectTry("a wrong one", "wrong", "192.0.2.1", 429, 1)
	expectTry("a right one that is new there", secret, "192.0.2.1", 303, 1)
	expectTry("that one again", secret, "192.0.2.1", 303, 0)
	expectTry("another right one", ofOperator, "192.0.2.1", 303, 1)
	expectTry("a right one from elsewhere", secret, "192.0.2.2", 303, 0)
	d.Clock.Turn(knownTime - time.Minute)
	guess()
	expectTry("within a day", secret, "192.0.2.1", 303, 0)
	d.Clock.Turn(knownTime)
	guess()
	expectTry("behind a day", secret, "192.0.2.1", 303, 1)
}

func TestASessionPassesAtOnceWhateverElseComesFromItsAddress(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	waits := d.countWaits()
	d.signIn()
	for range 2 * maxTries {
		d.ask(d.request("POST", "/login", url.Values{"token": {"wrong"}}))
	}
	waits.Store(0)
	d.page(home)
	failIf(t, waits.Load() != 0, "expected a session to pass at once")
}

func TestSignInsThatSucceedAreNoGuesses(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) {
		for n := range 2 * maxTries {
			c.Tokens = append(c.Tokens, Token{Name: fmt.Sprint("n", n), Text: fmt.Sprintf("%s-%d", secret, n)})
		}
	})
	waits := d.countWaits()
	for n := range 2 * maxTries {
		got := d.try(fmt.Sprintf("%s-%d", secret, n), "")
		failIf(t, got != 303, "expected a session, found %d", got)
	}
	failIf(t, waits.Load() != 0, "expected none to wait, found %d", waits.Load())
}

func TestGuessesOfManyAddressesLockNobodyOutAndFillNoMemory(t *testing.T) {
	clock := &fixture.Clock{}
	clock.Set(fixture.Start)
	tries := newTries(clock.Now)
	waits := 0
	tries.wait = func(context.Context) { waits++ }
	for n := range 5 * maxAddresses {
		tries.admit(t.Context(), fmt.Sprintf("10.0.%d.%d", n/250, n%250), nil)
	}
	failIf(t, len(tries.tried) > maxAddresses || len(tries.waiting) != 0, "expected few addresses, found %d and %d", len(tries.tried), len(tries.waiting))
	waits = 0
	_, may := tries.admit(t.Context(), "192.0.2.1", &Token{Text: secret})
	failIf(t, !may || waits != 1, "expected a right token after one wait, found %v after %d", may, waits)
	for n := range maxAddresses + 100 {
		tries.admit(t.Context(), fmt.Sprintf("10.%d.%d.1", n/250, n%250), &Token{Text: secret})
	}
	failIf(t, len(tries.known) > maxAddresses, "expected at most %d addresses, found %d", maxAddresses, len(tries.known))

	clock.Turn(tryWindow)
	for n := range maxTries + 1 { // one network of IPv6 counts as an address
		_, atOnce := tries.admit(t.Context(), fmt.Sprintf("2001:db8::%x", n), nil)
		failIf(t, atOnce != (n < maxTries), "%d: at once: %v", n, atOnce)
	}
}

func TestOfAnAddressOnlySoManyTokensWaitAtATime(t *testing.T) {
	clock := &fixture.Clock{}
	tries := newTries(clock.Now)
	begun, end := make(chan struct{}), make(chan struct{})
	tries.wait = func(context.Context) { begun <- struct{}{}; <-end }
	for range maxTries {
		tries.admit(t.Context(), "192.0.2.1", nil)
	}
	ended := make(chan bool, maxWaiting)
	for range maxWaiting {
		go func() {
			_, may := tries.admit(t.Context(), "192.0.2.1", &Token{Text: secret})
			ended <- may
		}()
	}
	for range maxWaiting {
		check.Await(t, begun, "a token that waits")
	}
	tries.wait = func(context.Context) {}
	_, may := tries.admit(t.Context(), "192.0.2.1", &Token{Text: secret})
	failIf(t, may, "expected one more refused, as guesses at the same time would not be slow")
	close(end)
	for range maxWaiting {
		failIf(t, !check.Await(t, ended, "a token that waited"), "expected it compared")
	}
	failIf(t, len(tries.waiting) != 0, "expected none to wait, found %v", tries.waiting)
}
