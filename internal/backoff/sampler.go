package backoff

import (
	"maps"
	"strings"
	"time"
)

// Sampler does log sampling: of each kind of text it picks the 1st, 2nd, 4th, 8th ... to be logged. Texts that differ only in
// digits, such as ports, are of one kind. The count of a kind starts again when it has not come up for a minute, or
// when the clock was set back. The zero value is ready for use. One goroutine only.
type Sampler struct {
	kinds map[string]*kind
}

type kind struct {
	count int
	last  time.Time
}

const (
	// forgetAfter is how long a kind must not have come up to be counted from 1 again.
	forgetAfter = time.Minute
	// maxKinds bounds the memory; all kinds beyond it are counted as one.
	maxKinds = 64
	// maxPrefix is how much of a text decides about its kind, in bytes.
	maxPrefix = 200
)

// Sample counts a text. It returns how many of its kind there were, and whether to log this one.
func (s *Sampler) Sample(text string, now time.Time) (count int, log bool) {
	name := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text[:min(len(text), maxPrefix)])
	if s.kinds == nil {
		s.kinds = map[string]*kind{}
	}
	if s.kinds[name] == nil && len(s.kinds) >= maxKinds {
		maps.DeleteFunc(s.kinds, func(_ string, k *kind) bool { return !Recent(k.last, now, forgetAfter) })
		if len(s.kinds) >= maxKinds {
			name = ""
		}
	}
	k := s.kinds[name]
	if k == nil || !Recent(k.last, now, forgetAfter) {
		k = new(kind)
		s.kinds[name] = k
	}
	k.count++
	k.last = now
	return k.count, k.count&(k.count-1) == 0
}
