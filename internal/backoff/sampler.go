package backoff

import (
	"maps"
	"strings"
	"time"
)

// Sampler picks from many lines that are alike those to write: the 1st, 2nd, 4th, 8th ... of each kind. Lines are of one kind when
// they differ only in digits, such as ports. The zero value is ready. One goroutine only.
type Sampler struct {
	kinds map[string]*kind
}

type kind struct {
	count int
	last  time.Time
}

const (
	// calm is how long a kind must not have come up to be news again.
	calm = time.Minute
	// maxKinds bounds the memory; kinds beyond it count as one.
	maxKinds = 64
	// maxKind is how much of a text makes its kind, in bytes.
	maxKind = 200
)

// Sample counts a line and tells whether to write it, and how many of its kind there were.
func (t *Sampler) Sample(text string, now time.Time) (count int, tell bool) {
	k := t.find(kindOf(text), now)
	if now.Sub(k.last) >= calm {
		k.count = 0
	}
	k.count++
	k.last = now
	return k.count, k.count&(k.count-1) == 0
}

// find returns the kind of a name, which may be the one of all the others.
func (t *Sampler) find(name string, now time.Time) *kind {
	if t.kinds == nil {
		t.kinds = map[string]*kind{}
	}
	if t.kinds[name] == nil && len(t.kinds) >= maxKinds {
		maps.DeleteFunc(t.kinds, func(_ string, k *kind) bool { return now.Sub(k.last) >= calm })
	}
	if t.kinds[name] == nil && len(t.kinds) >= maxKinds {
		name = ""
	}
	if t.kinds[name] == nil {
		t.kinds[name] = &kind{last: now}
	}
	return t.kinds[name]
}

func kindOf(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text[:min(len(text), maxKind)])
}
