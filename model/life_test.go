package model

import (
	"testing"
	"time"
)

// The names below serve the tests that move to package policy; they go with them.
type (
	life     = story
	lifeTest = storyTest
)

func live(t testing.TB, definition, steps string) *story {
	t.Helper()
	return tell(t, definition, steps)
}

func runLives(t *testing.T, tests []lifeTest) {
	t.Helper()
	runStories(t, tests)
}

func (s *story) on(steps string) *story { return s.then(steps) }

func (s *story) step(now time.Time, verb, extra string) { s.do(now, verb, extra) }
