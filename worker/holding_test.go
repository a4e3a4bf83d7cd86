package worker

import (
	"testing"

	"github.com/refreshd/refreshd/internal/store"
)

func TestAnEntryThatWasAnsweredWhileTheWholeListWasOnItsWayIsNotNew(t *testing.T) {
	h := newHolding()
	asked := h.ask(2)
	if fresh := h.receive(asked, store.Taken{Entries: []string{"a"}}); len(fresh) != 1 {
		t.Fatalf("want it new, got %q", fresh)
	}
	h.doubted()
	asked = h.ask(2)
	h.release([]message{{owner: asked.Owner, entry: "a", ends: true}})
	if fresh := h.receive(asked, store.Taken{Entries: []string{"a", "b"}, Whole: true}); len(fresh) != 1 || fresh[0] != "b" {
		t.Errorf("want only b new, got %q", fresh)
	}
	asked = h.ask(2)
	if fresh := h.receive(asked, store.Taken{Entries: []string{"b", "a"}, Whole: true}); len(fresh) != 1 || fresh[0] != "a" {
		t.Errorf("want a that came again new, got %q", fresh)
	}
}
