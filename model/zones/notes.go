package zones

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Notes are the zone data that planned a queue, and the data of its daemons, as fields of a hash in Redis.
type Notes struct {
	PlannedBy string            // the newest release that has planned it; empty: one without a name, or nobody knows
	Known     bool              // that is noted
	Older     bool              // daemons with older data have lived since the models were planned anew last
	Daemons   map[string]Origin // by the names of daemons that have noted it; some are gone
	Zones     map[string]Note   // of the zones in use
	Prior     map[string]Note   // the notes by the data before, of the zones that it has changed
}

// The fields beside the fields of zones.
const (
	fieldPlannedBy = "planned_by"
	fieldOlder     = "older"
	fieldDaemon    = "daemon:"
	fieldPrior     = "was:"
)

// ReadNotes reads the hash.
func ReadNotes(hash map[string]string) *Notes {
	n := &Notes{Older: hash[fieldOlder] != "", Daemons: map[string]Origin{}, Zones: map[string]Note{}, Prior: map[string]Note{}}
	n.PlannedBy, n.Known = hash[fieldPlannedBy]
	n.PlannedBy = strings.TrimPrefix(n.PlannedBy, noRelease)
	for field, value := range hash {
		if name, is := strings.CutPrefix(field, fieldDaemon); is {
			release, source, _ := strings.Cut(value, of)
			n.Daemons[name] = Origin{strings.TrimPrefix(release, noRelease), source}
		} else if name, is := strings.CutPrefix(field, fieldPrior); is {
			n.Prior[name] = readNote(value)
		} else if field != fieldPlannedBy && field != fieldOlder {
			n.Zones[field] = readNote(value)
		}
	}
	return n
}

// Moved reports whether the offsets that planned models of a zone may differ from the newest release, and returns the old ones; the zero Note:
// nobody knows them.
func (n *Notes) Moved(zone string) (was Note, moved bool) {
	if was, moved = n.Prior[zone]; moved {
		return was, true
	}
	noted, is := n.Zones[zone]
	return Note{}, zone != "" && zone != "UTC" && (!is || noted.Release == n.PlannedBy)
}

// mostDaemons is how many daemons are noted before those are forgotten that are gone.
const mostDaemons = 100

// Update decides what a daemon with this data notes: it sets and drops fields. replan: the models are to be planned anew, because its release is the
// first of this or a newer one, or because no daemon with older data lives any more. living are the names of all that do.
func (n *Notes) Update(d *Data, daemon string, living []string, now time.Time) (set map[string]string, drop []string, replan bool) {
	set = map[string]string{}
	if n.Daemons[daemon] != d.Origin {
		set[fieldDaemon+daemon] = d.String()
	}
	for name := range n.Daemons {
		if len(n.Daemons) > mostDaemons && name != daemon && !slices.Contains(living, name) {
			drop = append(drop, fieldDaemon+name)
		}
	}
	behind := n.PlannedBy > d.Release // it plans by older data itself
	older := behind || slices.ContainsFunc(living, func(name string) bool {
		origin, noted := n.Daemons[name]
		return name != daemon && (!noted || d.NewerThan(origin.Release))
	})
	if replan = !n.Known || d.NewerThan(n.PlannedBy); replan {
		set[fieldPlannedBy] = d.named()
		for name, was := range n.Zones {
			if _, differs := was.differs(was.by(name, d)); differs {
				set[fieldPrior+name], set[name] = was.String(), d.note(name, now)
			}
		}
	}
	switch {
	case older && !n.Older:
		set[fieldOlder] = "1"
	case !older && n.Older:
		drop, replan = append(drop, fieldOlder), true
	}
	for loaded := range d.loaded.Range {
		name := loaded.(string)
		noted, is := n.Zones[name]
		switch {
		case !behind && !is:
			set[name] = d.note(name, now)
		case behind && n.Prior[name].at == nil && (!is || noted.Release != d.Release): // which nobody has noted before newer data came
			set[fieldPrior+name] = d.note(name, now)
		}
	}
	return set, drop, replan
}

// note notes a zone that is loaded, ten years ahead. Beyond that nobody knows by what a model was planned.
func (d *Data) note(name string, now time.Time) string {
	n, _ := d.Note(name, now.AddDate(0, 0, -1), now.AddDate(10, 0, 0))
	return n.String()
}

// Doubts describes what different data has planned: the data of live daemons, and others, by their names.
func (n *Notes) Doubts(living []string, others map[string]*Data) (texts []string) {
	var origins []string
	for _, name := range living {
		origins = append(origins, n.Daemons[name].String())
	}
	slices.Sort(origins)
	if origins = slices.Compact(origins); n.Older && len(origins) > 1 { // else the last one with older data has just gone
		texts = append(texts, "daemons with zone data of "+strings.Join(origins, " and ")+n.moves(func(name string) Note { return n.Prior[name] }))
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		moved := n.moves(func(zone string) Note { return n.Zones[zone].by(zone, others[name]) })
		if moved != noMoves {
			texts = append(texts, name+" with zone data of "+others[name].String()+moved)
		}
	}
	return texts
}

// mostNamed bounds how many zones are named.
const mostNamed = 5

const noMoves = ", which differ for no zone in use"

// moves describes which zones in use differ by others, and from when on.
func (n *Notes) moves(other func(zone string) Note) string {
	var zones []string
	for _, name := range slices.Sorted(maps.Keys(n.Zones)) {
		if from, is := other(name).differs(n.Zones[name]); is {
			zones = append(zones, name+" from "+from.UTC().Format(time.DateOnly))
		}
	}
	switch {
	case len(zones) == 0:
		return noMoves
	case len(zones) > mostNamed:
		zones = append(zones[:mostNamed], "and others")
	}
	return ", which differ for " + strings.Join(zones, ", ")
}
