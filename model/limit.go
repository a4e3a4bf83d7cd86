package model

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Limit bounds the models of one key, such as host=example.com. One that is set at run time goes before those of policies and of the queue.
type Limit struct {
	Name    string // the key, or of a limit of the queue the template of its keys
	Running int    // attempts at a time; 0: any number
	Rate    policy.Rate
	Until   time.Time // from then on it is forgotten; zero: never
	Since   time.Time
	Reason  string
	By      string
}

// MaxRunning is the largest number of attempts at a time that a limit may name.
const MaxRunning = 100_000

var limitName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}=[A-Za-z0-9_.:/@+~-]{1,100}$`)

// Validate reports the first field out of range.
func (l *Limit) Validate() error {
	_, err := policy.ParseKey(l.Name)
	switch {
	case err != nil && !limitName.MatchString(l.Name):
		return document.Refuse("key", "a key such as host=example.com, or a template such as {host(input_url)}", document.Found(l.Name))
	case l.Running < 0 || l.Running > MaxRunning:
		return document.Refuse("running", fmt.Sprint("1 to ", MaxRunning), document.Found(l.Running))
	case l.Running == 0 && l.Rate.Count == 0:
		return document.Refuse("", "running or rate, or both", "neither")
	case !l.Until.IsZero() && !l.Until.After(l.Since):
		return document.Refuse("until", "a time after "+FormatTime(l.Since), FormatTime(l.Until))
	default:
		return nil
	}
}

// QueueLimit is a limit that was set for all keys of a template.
type QueueLimit struct {
	Key policy.Key
	Limit
}

// Ended reports whether the limit is not in force at now any more.
func (l *Limit) Ended(now time.Time) bool { return !l.Until.IsZero() && !l.Until.After(now) }

// Ended names the limits set at run time that are not in force at now any more.
func (g *Blockers) Ended(now time.Time) (names []string) {
	for name, limit := range g.Limits {
		if limit.Ended(now) {
			names = append(names, name)
		}
	}
	for _, limit := range g.QueueLimits {
		if limit.Ended(now) {
			names = append(names, limit.Name)
		}
	}
	return names
}

// part is what one part of a queue may have of a limit: each has a share, and at least one attempt.
func (l Limit) part(place, parts int) Limit {
	if parts < 2 {
		return l
	}
	if l.Running > 0 {
		turn := (place + int(crc32.ChecksumIEEE([]byte(l.Name)))%parts) % parts
		share := l.Running / parts
		if turn < l.Running%parts {
			share++
		}
		l.Running = max(1, share)
	}
	if l.Rate.Count > 0 {
		l.Rate.Per *= time.Duration(parts)
	}
	return l
}

// LimitsOf are the limits of a model that are in force at now, in the order of their keys: those of its policy, those of the queue, and in
// their place what was set for a key at run time.
func (g *Blockers) LimitsOf(m *Model, now time.Time) (limits []Limit) {
	if len(m.Policy.Limits)+len(g.QueueLimits) == 0 {
		return nil
	}
	add := func(limit policy.Limit) {
		name := limit.Key.Of(m.Payload, m.Labels, cmp.Or(m.PolicyName, policy.DefaultName))
		if name == "" || slices.ContainsFunc(limits, func(other Limit) bool { return other.Name == name }) {
			return
		}
		l := Limit{Name: name, Running: limit.Running, Rate: limit.Rate}
		if own, set := g.Limits[name]; set && !own.Ended(now) {
			l = own
		}
		limits = append(limits, l.part(g.Part, g.Parts))
	}
	for _, limit := range m.Policy.Limits {
		add(limit)
	}
	for _, limit := range g.QueueLimits {
		if !limit.Ended(now) {
			add(policy.Limit{Key: limit.Key, Running: limit.Running, Rate: limit.Rate})
		}
	}
	slices.SortFunc(limits, func(a, b Limit) int { return cmp.Compare(a.Name, b.Name) })
	return limits
}

// LimiterState is what a key has left, as it was read.
type LimiterState struct {
	Running int      // attempts that run
	Lapsed  []string // some of the models that hold a slot past its deadline
	Slots
}

// Limiters are what a dispatcher knows of keys within a round: what it has read, and what it has decided since. It belongs to one goroutine.
type Limiters struct {
	Keys     map[string]*LimiterState
	Circuits map[string]*CircuitState
}

// Learn adds what was read of keys that nothing is known of yet.
func (r *Limiters) Learn(other Limiters) {
	if r.Keys == nil {
		r.Keys, r.Circuits = map[string]*LimiterState{}, map[string]*CircuitState{}
	}
	for name, room := range other.Keys {
		if r.Keys[name] == nil {
			r.Keys[name] = room
		}
	}
	for name, state := range other.Circuits {
		if r.Circuits[name] == nil {
			r.Circuits[name] = state
		}
	}
}

func (r *Limiters) key(name string) *LimiterState {
	if r.Keys[name] == nil {
		r.Learn(Limiters{Keys: map[string]*LimiterState{name: {}}})
	}
	return r.Keys[name]
}

// Acquire is what a start takes of a key, or who waits reserves of it: all of it or nothing.
type Acquire struct {
	Name          string // the key
	Limit         int    // attempts that may run, this one included; 0: any number
	Before, After Slots  // as they were read, and as they are from now on
}

// full finds a limit that lets no more attempts run.
func (r *Limiters) full(limits []Limit) (name string, full bool) {
	for _, limit := range limits {
		if limit.Running > 0 && r.key(limit.Name).Running >= limit.Running {
			return limit.Name, true
		}
	}
	return "", false
}

// closed finds the key that opens last of those that are closed, though a slot of them is held.
func (r *Limiters) closed(limits []Limit, held []string, now time.Time) (name string, opens time.Time) {
	for _, limit := range limits {
		if at := r.key(limit.Name).opens(); slices.Contains(held, limit.Name) && at.After(now) && at.After(opens) {
			name, opens = limit.Name, at
		}
	}
	return name, opens
}

// reserve is what it takes to hold a slot of all keys, and the first instant from now on that none of them comes after.
func (r *Limiters) reserve(limits []Limit, held []string, now time.Time) (at time.Time, takes []Acquire, holds []string) {
	at = now
	for _, limit := range limits {
		room, interval := r.key(limit.Name), limit.Rate.Interval()
		take := Acquire{limit.Name, limit.Running, room.Slots, room.Slots}
		switch {
		case slices.Contains(held, limit.Name):
			holds = append(holds, limit.Name)
		case interval > 0 || room.Free.After(now) || room.Closed.After(now):
			var slot time.Time
			slot, take.After = room.reserve(interval, now)
			at, holds = latest(at, slot), append(holds, limit.Name)
		}
		takes = append(takes, take)
	}
	return wholeMillis(at), takes, holds
}

// start adds what a start takes of keys of which slots are held, since an instant or from now on.
func (r *Limiters) start(limits []Limit, takes []Acquire, held []string, since, now time.Time) {
	for i, limit := range limits {
		slot := now
		if since.Before(now) && slices.Contains(held, limit.Name) {
			slot = since
		}
		if interval := limit.Rate.Interval(); interval > 0 {
			takes[i].After = takes[i].After.start(slot, interval, now)
		}
		r.key(limit.Name).Running++
	}
}

func (r *Limiters) take(takes []Acquire) {
	for _, take := range takes {
		r.key(take.Name).Slots = take.After
	}
}

// names joins what an attempt is counted by.
func names(kind string, takes []Acquire) (all []string) {
	for _, take := range takes {
		all = append(all, string(NewBlocker(kind, take.Name)))
	}
	return all
}

// CountedBy are the keys of a kind by which an attempt is counted, as State.Counted tells.
func CountedBy(all, kind string) (keys []string) {
	for _, counted := range strings.Fields(all) {
		if of, name := Blocker(counted).Split(); of == kind {
			keys = append(keys, name)
		}
	}
	return keys
}
