package dispatcher

import (
	"slices"
	"testing"
	"time"
)

func TestTheWindowGrowsByDrainAndShrinksWhenItsFrontWaitsForLong(t *testing.T) {
	const most, timeout = 300, 10 * time.Second
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000).Add(time.Duration(ms) * time.Millisecond) }
	w := newWindow(most)
	for _, step := range []struct {
		what string
		next func(window) window
		want int
	}{
		{"empty, and never filled", func(w window) window { return w.drain(0, most) }, 100},
		{"filled and drained", func(w window) window { return w.fill(at(0)).drain(0, most) }, 200},
		{"empty still", func(w window) window { return w.drain(0, most) }, 200},
		{"filled, and little taken", func(w window) window { return w.fill(at(5)).drain(151, most) }, 200},
		{"filled, and drained, at its end", func(w window) window { return w.fill(at(10)).drain(150, most) }, 300},
		{"the front waits a tenth", func(w window) window { return w.waited(at(0), timeout, at(1000)) }, 300},
		{"the front waits longer", func(w window) window { return w.waited(at(0), timeout, at(1001)) }, 150},
		{"another that was started before the cut", func(w window) window { return w.waited(at(900), timeout, at(9000)) }, 150},
		{"one that was started after it", func(w window) window { return w.waited(at(2000), timeout, at(9000)) }, 75},
		{"one without a timeout", func(w window) window { return w.waited(at(9500), 0, at(99_000)) }, 75},
	} {
		if w = step.next(w); w.size != step.want {
			t.Fatalf("%s: want a window of %d, got %d", step.what, step.want, w.size)
		}
	}
	if w = newWindow(1).waited(at(0), timeout, at(5000)); w.size != 1 {
		t.Errorf("want a window of one at least, got %d", w.size)
	}
}

func TestAWindowThatMayGrowIsLookedAtOftenForAWhileOnly(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	w := newWindow(1000)
	if w.mayGrow(1000, time.Second, at) {
		t.Error("want a window that was never filled left alone")
	}
	w = w.fill(at).fill(at.Add(500 * time.Millisecond))
	if !w.mayGrow(1000, time.Second, at.Add(999*time.Millisecond)) || w.mayGrow(1000, time.Second, at.Add(time.Second)) {
		t.Error("want it looked at for a second from when it was filled first")
	}
	if w.mayGrow(100, time.Second, at) {
		t.Error("want a window that is as large as it may be left alone")
	}
}

// With room for one a round, hands and the schedule take turns.
func TestHandsGetAtMostHalfOfTheRoomWhileOthersAreDue(t *testing.T) {
	var d Dispatcher
	urgent, due := []string{"u1", "u2", "u3", "u4"}, []string{"d1", "d2", "d3", "d4"}
	started := []int{}
	for range 4 {
		hands, others, _ := d.admit(urgent, due, 1, 0)
		started = append(started, len(hands))
		if len(hands)+len(others) != 1 {
			t.Errorf("want one start in a room of one, got %q and %q", hands, others)
		}
	}
	if !slices.Equal(started, []int{1, 0, 1, 0}) {
		t.Errorf("want every other place for hands, got %v", started)
	}
	for room, want := range map[int]int{0: 0, 4: 2, 7: 4, 8: 4} {
		d.oddTurn = false
		if hands, _, _ := d.admit(urgent, due, room, 0); len(hands) != want {
			t.Errorf("room %d: want %d of hands, got %q", room, want, hands)
		}
	}
	if hands, _, _ := d.admit(urgent, nil, 3, 0); len(hands) != 3 {
		t.Errorf("want all the room where nothing else is due, got %q", hands)
	}
}
