package faults

import (
	"errors"
	"io"
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
	d := newDrill(t, server.URL, l.URL())
	d.admin = server.Client(t)
	return d, l
}

func TestLatencyAndJitterLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	w := d.witness()
	l.change(weather{delay: 50 * time.Millisecond, jitter: 50 * time.Millisecond})
	d.hold(2 * time.Second)
	w.expectSlow(1, 100*time.Millisecond)
	d.refreshAll()
	l.change(weather{})
	d.settle()
	d.conclude()
}

func TestConnectionsThatAreResetAgainAndAgainLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	d.again(20, func() {
		w := d.witness()
		d.struck += l.reset()
		if err := w.expectEnd(); errors.Is(err, io.EOF) {
			t.Error("the fault did not strike: want a reset, got a close")
		}
	})
	d.settle()
	d.conclude()
	t.Logf("%d connections were reset", d.struck)
}

func TestConnectionsThatAreLeftHalfOpenLoseNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	w := d.witness()
	l.change(weather{dark: true})
	d.struck = l.darken()
	w.expectSilence(2 * time.Second * time.Duration(*timesFlag))
	l.change(weather{})
	w.expectSilence(100 * time.Millisecond)
	d.settle()
	d.conclude()
	t.Logf("%d connections were left half-open", d.struck)
}

func TestANarrowNetworkLosesNothing(t *testing.T) {
	long.Only(t)
	d, l := behind(t)
	d.begin()
	w := d.witness()
	l.change(weather{perSecond: 100 << 10})
	d.hold(2 * time.Second)
	w.expectSlow(50<<10, time.Second) // half a second there, and back
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
	d.again(5, func() {
		w := d.witness()
		began := time.Now()
		d.killClients()
		_ = w.expectEnd()
		if told := time.Since(began); told < time.Second {
			t.Errorf("the fault did not strike: want a close told after a second, got %s", told)
		}
	})
	l.change(weather{})
	d.settle()
	d.conclude()
	t.Logf("%d connections were killed", d.struck)
}
