package zones

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"time"
)

// Note has the clocks of a zone over some years, by one release: so a queue remembers the data that planned it, as no program has the data
// of another. The zero Note says nothing.
type Note struct {
	Release string // the first that noted it; empty: one without a name

	at []time.Time // the beginning, each change, and the end: on the clocks from then on
}

// Note records the clocks of a zone between two instants. The errors come from Load.
func (d *Data) Note(name string, from, to time.Time) (Note, error) {
	zone, err := d.Load(name)
	if err != nil {
		return Note{}, err
	}
	n := Note{d.Release, []time.Time{from.In(zone).Truncate(time.Second)}}
	n.at = slices.AppendSeq(n.at, Changes(zone, from, to))
	n.at = append(n.at, to.In(zone).Truncate(time.Second))
	return n, nil
}

// Changes yields when the clocks of a zone are changed from one instant to another. They are changed less often than once a day.
func Changes(zone *time.Location, from, to time.Time) iter.Seq[time.Time] {
	const day = 24 * time.Hour
	return func(yield func(time.Time) bool) {
		for at := from.In(zone).Truncate(time.Second); at.Before(to); at = at.Add(day) {
			before := offset(at)
			if offset(at.Add(day)) == before {
				continue
			}
			seconds := sort.Search(int(day/time.Second), func(i int) bool { return offset(at.Add(time.Duration(i)*time.Second)) != before })
			if change := at.Add(time.Duration(seconds) * time.Second); change.Before(to) && !yield(change) {
				return
			}
		}
	}
}

func offset(at time.Time) time.Duration {
	_, seconds := at.Zone()
	return time.Duration(seconds) * time.Second
}

// noRelease means the release of data that names none.
const noRelease = "none"

// String is the note for Redis, such as "2026f 2026-11-28T00:00:00-08:00 2027-03-14T03:00:00-07:00 2031-11-28T01:00:00-07:00".
func (n Note) String() string {
	words := []string{Origin{Release: n.Release}.named()}
	for _, at := range n.at {
		words = append(words, at.Format(time.RFC3339))
	}
	return strings.Join(words, " ")
}

// readNote reads a note; an unreadable one says nothing.
func readNote(text string) (n Note) {
	words := strings.Fields(text)
	for i, word := range words {
		if i == 0 {
			n.Release = strings.TrimPrefix(word, noRelease)
		} else if at, err := time.Parse(time.RFC3339, word); err == nil {
			n.at = append(n.at, at)
		}
	}
	return n
}

// Offset is how far the clocks are ahead of UTC at an instant; false: the note does not reach so far.
func (n Note) Offset(at time.Time) (ahead time.Duration, known bool) {
	i, _ := slices.BinarySearchFunc(n.at, at.Add(1), time.Time.Compare) // the first one that is later
	if i == 0 || i == len(n.at) {
		return 0, false
	}
	return offset(n.at[i-1]), true
}

// by is the same span of a zone by other data.
func (n Note) by(name string, d *Data) (other Note) {
	if len(n.at) > 0 {
		other, _ = d.Note(name, n.at[0], n.at[len(n.at)-1]) // of a zone that is not there nobody knows
	}
	return other
}

// differs returns the first instant from which on the clocks show something else by another note; false: none that both know of.
func (n Note) differs(other Note) (from time.Time, is bool) {
	for _, at := range slices.SortedFunc(slices.Values(slices.Concat(n.at, other.at)), time.Time.Compare) {
		before, known := n.Offset(at)
		if after, also := other.Offset(at); known && also && before != after {
			return at, true
		}
	}
	return from, false
}
