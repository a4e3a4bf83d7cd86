package dispatcher

import (
	"testing"
	"time"
)

func TestTheWindowGrowsByDrainAndShrinksWhenItsFrontWaitsForLong(t *testing.T) {
	const most, timeout = 300, 10 * time.Second
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000).Add(time.Duration(ms) * time.Millisecond) }
	p := newPace(most)
	for _, step := range []struct {
		what string
		next func(pace) pace
		want int
	}{
		{"empty, and never filled", func(p pace) pace { return p.drain(0, most) }, 100},
		{"filled and drained", func(p pace) pace { return p.fill(at(0)).drain(0, most) }, 200},
		{"empty still", func(p pace) pace { return p.drain(0, most) }, 200},
		{"filled, and little taken", func(p pace) pace { return p.fill(at(5)).drain(151, most) }, 200},
		{"filled, and drained, at its end", func(p pace) pace { return p.fill(at(10)).drain(150, most) }, 300},
		{"the front waits a tenth", func(p pace) pace { return p.front(at(0), timeout, at(1000)) }, 300},
		{"the front waits longer", func(p pace) pace { return p.front(at(0), timeout, at(1001)) }, 150},
		{"another that was started before the cut", func(p pace) pace { return p.front(at(900), timeout, at(9000)) }, 150},
		{"one that was started after it", func(p pace) pace { return p.front(at(2000), timeout, at(9000)) }, 75},
		{"one without a timeout", func(p pace) pace { return p.front(at(9500), 0, at(99_000)) }, 75},
	} {
		if p = step.next(p); p.window != step.want {
			t.Fatalf("%s: want a window of %d, got %d", step.what, step.want, p.window)
		}
	}
	if p = newPace(1).front(at(0), timeout, at(5000)); p.window != 1 {
		t.Errorf("want a window of one at least, got %d", p.window)
	}
}

func TestAWindowThatMayGrowIsLookedAtOftenForAWhileOnly(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	p := newPace(1000)
	if p.mayGrow(1000, time.Second, at) {
		t.Error("want a window that was never filled left alone")
	}
	p = p.fill(at).fill(at.Add(500 * time.Millisecond))
	if !p.mayGrow(1000, time.Second, at.Add(999*time.Millisecond)) || p.mayGrow(1000, time.Second, at.Add(time.Second)) {
		t.Error("want it looked at for a second from when it was filled first")
	}
	if p.mayGrow(100, time.Second, at) {
		t.Error("want a window that is as large as it may be left alone")
	}
}
