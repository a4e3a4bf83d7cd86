package schedule

import (
	"strings"
	"sync"
)

// Cache keeps compiled schedules by their text, because many models share few. It keeps at most 8192 of them, about a
// kilobyte each and ten at most, and drops those that were not asked for lately. It is safe for concurrent use. The zero value is ready.
type Cache struct {
	mu       sync.Mutex
	recent   map[scheduleText]*Schedule // guarded by mu
	previous map[scheduleText]*Schedule // guarded by mu
}

type scheduleText struct{ rule, timezone, dtstart string }

// maxGeneration bounds each of the two maps.
const maxGeneration = 4096

// Get returns the schedule that Parse would return, or its error, which is not kept.
func (c *Cache) Get(rule, timezone, dtstart string) (*Schedule, error) {
	text := scheduleText{rule, timezone, dtstart}
	c.mu.Lock()
	s := c.recent[text]
	if s == nil {
		if s = c.previous[text]; s != nil {
			c.keep(text, s)
		}
	}
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := Parse(rule, timezone, dtstart)
	if err != nil {
		return nil, err
	}
	// A copy, because the texts may be small parts of a large document, which would stay in memory with them.
	text = scheduleText{strings.Clone(rule), strings.Clone(timezone), strings.Clone(dtstart)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(text, s)
	return s, nil
}

// keep needs mu.
func (c *Cache) keep(text scheduleText, s *Schedule) {
	if len(c.recent) >= maxGeneration || c.recent == nil {
		c.previous, c.recent = c.recent, make(map[scheduleText]*Schedule)
	}
	c.recent[text] = s
}
