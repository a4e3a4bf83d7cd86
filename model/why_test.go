package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// eachWhy calls visit with every combination of the facts behind a failure, with the longest numbers.
func eachWhy(visit func(why)) {
	const flags = 6
	for b := retryAfterDelay; b <= retryNeverPlanned; b++ {
		for _, retries := range []int{1000, policy.Unlimited} {
			for _, delay := range []time.Duration{0, 59*time.Second + 999*time.Millisecond, document.MaxDuration - time.Millisecond} {
				for _, overlap := range []policy.Overlap{policy.NonePlanned, policy.Before, policy.OverlapsStart, policy.Same, policy.OverlapsEnd, policy.After} {
					for set := range 1 << flags {
						is := func(flag int) bool { return set>>flag&1 == 1 }
						w := why{
							reason: b, k: 1000, retries: retries, class: "never retry NetworkError", window: document.MaxDuration - time.Millisecond, delay: delay, overlap: overlap,
							moved: is(0), asked: is(1), inWindow: is(2), policyError: is(3), plannedFirst: is(4), ownTime: is(5),
						}
						visit(w)
						w.jitter, w.held = time.Second, delay
						visit(w)
					}
				}
			}
		}
	}
}

func TestEveryWhyFitsIntoSixtyBytesWithoutBeingCut(t *testing.T) {
	told := map[string]bool{}
	eachWhy(func(w why) {
		for _, condition := range []string{"", onTimeout, ifNotBegun} {
			told[w.behind(condition)] = true
		}
	})
	for text := range told {
		if len(text) > maxWhy || strings.Contains(text, "…") || strings.Contains(text, "  ") {
			t.Errorf("expected at most %d bytes and no cut, found %d in %q", maxWhy, len(text), text)
		}
	}
	if len(told) < 100 {
		t.Errorf("expected the texts of all situations, found %d", len(told))
	}
}

func TestAWhyIsReadWithoutKnowingWhoWroteIt(t *testing.T) {
	retry := why{k: 2, retries: 6, delay: 5 * time.Minute, overlap: policy.Before}
	for want, change := range map[string]func(*why){
		"retry 2 of 6 after 5m, ends before planned":            func(*why) {},
		"retry 2 of 6 waits for planned, would overlap":         func(w *why) { w.overlap, w.plannedFirst = policy.OverlapsStart, true },
		"retry 2 of 6 waits for planned, which comes first":     func(w *why) { w.overlap, w.plannedFirst = policy.After, true },
		"retry 2 of 6 waits for planned, delayed by the worker": func(w *why) { w.moved, w.plannedFirst = true, true },
		"retry 2 of 6 after 5m, as the worker asked":            func(w *why) { w.asked = true },
		"retry 2 of 6 when the policy says":                     func(w *why) { w.ownTime = true },
		"queue circuit open: retry after 5m, not disabled":      func(w *why) { w.reason, w.held = exhausted, 5*time.Minute },
		"disabled after 2 failures, no retry left":              func(w *why) { w.reason = exhausted },
		"waits for planned after 2 failures":                    func(w *why) { w.reason = exhaustedPlanned },
	} {
		w := retry
		change(&w)
		if got := w.behind(""); got != want {
			t.Errorf("expected %q, found %q", want, got)
		}
	}
}
