package faults

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// behind returns a drill whose daemons and workers reach Redis through a link.
func behind(t *testing.T) (*drill, *link) {
	t.Helper()
	t.Parallel()
	server := testkit.Redis(t)
	l := newLink(t, server.Addr)
	return newDrill(t, server.URL, l.URL()), l
}

func TestLatencyAndJitterLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	l.change(weather{delay: 50 * time.Millisecond, jitter: 50 * time.Millisecond})
	d.hold(2 * time.Second)
	d.refreshAll()
	l.change(weather{})
	d.settle()
	d.conclude()
}

func TestConnectionsThatAreResetAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	resets := 0
	d.again(20, func(context.Context) error { resets += l.reset(); return nil })
	d.settle()
	d.conclude()
	t.Logf("%d connections were reset", resets)
}

func TestConnectionsThatAreLeftHalfOpenLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	l.change(weather{dark: true})
	left := l.darken()
	d.hold(2 * time.Second)
	l.change(weather{})
	d.settle()
	d.conclude()
	t.Logf("%d connections were left half-open", left)
}

func TestANarrowNetworkLosesNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	l.change(weather{perSecond: 100 << 10})
	d.hold(2 * time.Second)
	d.refreshAll()
	l.change(weather{})
	d.settle()
	d.conclude()
}

func TestConnectionsThatCloseSlowlyLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	l.change(weather{slowClose: time.Second})
	d.again(5, func(ctx context.Context) error {
		return d.clients.Write.ClientKillByFilter(ctx, "TYPE", "normal").Err()
	})
	l.change(weather{})
	d.settle()
	d.conclude()
}
