package dispatcher

import (
	"slices"
	"testing"
)

// With room for one a round, hands and the schedule take turns.
func TestHandsGetAtMostHalfOfTheRoomWhileOthersAreDue(t *testing.T) {
	var d Dispatcher
	urgent, due := []string{"u1", "u2", "u3", "u4"}, []string{"d1", "d2", "d3", "d4"}
	started := []int{}
	for range 4 {
		hands, others := d.admit(urgent, due, 1, 0)
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
		if hands, _ := d.admit(urgent, due, room, 0); len(hands) != want {
			t.Errorf("room %d: want %d of hands, got %q", room, want, hands)
		}
	}
	if hands, _ := d.admit(urgent, nil, 3, 0); len(hands) != 3 {
		t.Errorf("want all the room where nothing else is due, got %q", hands)
	}
}
