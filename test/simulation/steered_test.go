package simulation

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// The names that operators of steered worlds use. Nothing else is steered by.
var (
	keyNames   = []string{"tenant=t1", "tenant=t2", "n=0", "n=1", "n=2"}
	labelTerms = []string{"tenant=t1", "tenant=t2", "kind=k1", "host=own", "host=h0.example", "host=h1.example", "host=h2.example"}
	holdNames  = []string{"h1", "h2", "h3"}
)

// lastHold is the hold that ends no more.
const lastHold = "h4"

const calendarName = "c1"

var blockerNames = func() (blockers []model.Blocker) {
	for _, name := range append(slices.Clip(holdNames), lastHold) {
		blockers = append(blockers, model.NewBlocker(model.BlockerHold, name))
	}
	for _, name := range keyNames {
		blockers = append(blockers, model.NewBlocker(model.BlockerLimit, name), model.NewBlocker(model.BlockerCircuit, name))
	}
	return append(blockers, model.NewBlocker(model.BlockerCalendar, calendarName), model.BySuspect)
}()

// steered is the content of Redis about blockers, keys, labels and bulks.
type steered struct {
	failing, disabled        map[string]float64
	ages, late, stale        map[string]float64
	errors                   map[string]float64           // by the id of a fingerprint
	fingerprints             map[string]map[string]string // likewise: the facts about each that exists or did a moment ago
	parked, blockers         map[string]float64
	parkedBy, keys           map[string]map[string]float64 // by blocker, and by the name of a key
	holds, limits, calendars map[string]string
	rates                    map[string]string            // by key
	circuits                 map[string]map[string]string // likewise
	labels                   map[string][]string          // by term
	openBulks                map[string]float64
	bulks                    map[string]map[string]string
	zones                    map[string]string // the data that planned the queue

	read *model.Blockers // what holds, limits and calendars say; nil: nobody has asked
}

// lookAround reads that. What no operator steers has indexes only.
func (r *server) lookAround(steers bool) (s steered) {
	k := r.store.Keys
	s.ages, s.late, s.stale, s.errors = r.scores(k.StaleAt), r.scores(k.Late), r.scores(k.Stale), r.scores(k.Errors)
	if r.few {
		s.fingerprints = map[string]map[string]string{}
		for _, ids := range []map[string]float64{s.errors, r.scores(k.PastErrors)} {
			for id := range ids {
				s.fingerprints[id] = r.hash(k.Error(id))
			}
		}
	}
	s.failing, s.disabled, s.parked, s.blockers = r.scores(k.Failing), r.scores(k.Disabled), r.scores(k.Parked), r.scores(k.Blockers)
	s.bulks, s.zones = map[string]map[string]string{}, r.hash(k.Zones)
	for _, ids := range []map[string]float64{r.scores(k.Bulks), r.scores(k.BulksEnded)} {
		for id := range ids {
			if id != store.ReplanID(sharedPolicy) {
				s.bulks[id] = r.hash(k.Bulk(id))
			}
		}
	}
	s.openBulks, s.parkedBy = r.scores(k.Bulks), map[string]map[string]float64{}
	blockers := blockerNames
	if !steers {
		blockers = blockers[len(blockers)-1:]
	}
	for _, blocker := range blockers {
		if uids := r.scores(k.ParkedBy(string(blocker))); len(uids) > 0 {
			s.parkedBy[string(blocker)] = uids
		}
	}
	if !steers {
		return s
	}
	s.holds, s.limits, s.calendars = r.hash(k.Holds), r.hash(k.Limits), r.hash(k.Calendars)
	s.keys, s.rates = map[string]map[string]float64{}, map[string]string{}
	s.circuits, s.labels = map[string]map[string]string{}, map[string][]string{}
	for _, name := range keyNames {
		if uids := r.scores(k.Limit(name)); len(uids) > 0 {
			s.keys[name] = uids
		}
		if next, err := r.mini.Get(k.Rate(name)); err == nil {
			s.rates[name] = next
		}
		if state := r.hash(k.Circuit(name)); len(state) > 0 {
			s.circuits[name] = state
		}
	}
	for _, term := range labelTerms {
		if uids, err := r.mini.Members(k.Label(term)); err == nil {
			s.labels[term] = uids
		}
	}
	return s
}

// stops reads the blockers of models.
func (s *steered) stops() *model.Blockers {
	if s.read != nil {
		return s.read
	}
	g := model.Blockers{HoldChanges: s.holds["changes"], Limits: map[string]model.Limit{}, Calendars: map[string]schedule.Calendar{}}
	for _, id := range slices.Sorted(maps.Keys(s.holds)) {
		if id != "changes" {
			hold, _ := store.ReadHold(id, s.holds[id])
			g.Holds = append(g.Holds, hold)
		}
	}
	slices.SortFunc(g.Holds, func(a, b model.Hold) int { return a.Since.Compare(b.Since)*2 + strings.Compare(a.ID, b.ID) })
	for name, text := range s.limits {
		limit, _ := store.ReadLimit(name, text)
		if key, err := policy.ParseKey(name); err == nil {
			g.QueueLimits = append(g.QueueLimits, model.QueueLimit{Key: key, Limit: limit})
		} else {
			g.Limits[name] = limit
		}
	}
	for name, text := range s.calendars {
		known, found := calendars.Load(text)
		if !found {
			known, _ = store.ReadCalendar(text)
			calendars.Store(text, known)
		}
		g.Calendars[name] = known.(schedule.Calendar)
	}
	s.read = &g
	return &g
}

// calendars that were read, by their texts: to read one looks far ahead.
var calendars sync.Map

func (s *steered) circuit(name string) circuit {
	hash := s.circuits[name]
	return circuit{hash["recent"], instant(hash["opened_at"]), instant(hash["probe_at"]), hash["probe"]}
}

// circuit is the circuit of a key; with a zero opened it is closed.
type circuit struct {
	recent          string
	opened, probeAt time.Time
	probe           string
}
