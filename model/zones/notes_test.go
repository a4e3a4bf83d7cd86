package zones_test

import (
	"archive/zip"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/zones"
)

// dataOf is data of a release in which Vancouver shows what another zone does. Berlin is the same in each.
func dataOf(t *testing.T, release, like string) *zones.Data {
	t.Helper()
	archive := check.Got(zip.OpenReader("zones.zip"))(t)
	t.Cleanup(func() { _ = archive.Close() })
	content := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: check.Got(fs.ReadFile(archive, name))(t)}
	}
	data := zones.Open(fstest.MapFS{"America/Vancouver": content(like), "Europe/Berlin": content("Europe/Berlin"), "+VERSION": {Data: []byte(release)}}, release+"/")
	for _, name := range []string{"America/Vancouver", "Europe/Berlin"} {
		check.Must(t, check.Only(data.Load(name)))
	}
	return data
}

// queue is the hash of a queue, and its daemons, each with its data.
type queue struct {
	t       *testing.T
	hash    map[string]string
	daemons map[string]*zones.Data
	now     time.Time
}

// note is a daemon's regular task; true: all models are planned anew.
func (q *queue) note(daemon string) bool {
	set, drop, replan := zones.ReadNotes(q.hash).Update(q.daemons[daemon], daemon, slices.Collect(maps.Keys(q.daemons)), q.now)
	maps.Copy(q.hash, set)
	for _, field := range drop {
		delete(q.hash, field)
	}
	again, dropped, replans := zones.ReadNotes(q.hash).Update(q.daemons[daemon], daemon, slices.Collect(maps.Keys(q.daemons)), q.now)
	if len(again) > 0 || len(dropped) > 0 || replans {
		q.t.Errorf("%s: expected nothing to be noted twice, found %v, %v, %t", daemon, again, dropped, replans)
	}
	return replan
}

func TestNewerDataPlansAnewOnceWhenItComesAndOnceWhenTheLastDaemonWithOlderDataIsGone(t *testing.T) {
	old, newer := dataOf(t, "2025b", "America/Los_Angeles"), dataOf(t, "2026f", "America/Phoenix")
	for name, test := range map[string][]string{
		// A name is a daemon that notes, -name one that has ended, +name one with newer data that lives and has not noted it yet; * where all are planned anew.
		"one after the other":                 {"old1 *", "old2", "new1 *", "old2", "-old1", "new1", "-old2", "new1 *", "new1"},
		"the last one first":                  {"old1 *", "old2", "-old1", "-old2", "new1 *", "new1", "new2", "new1"},
		"an older one comes back":             {"old1 *", "-old1", "new1 *", "new1", "old2", "new1", "-old2", "new1 *", "new1"},
		"an older one between two looks":      {"old1 *", "-old1", "new1 *", "old2", "-old2", "new1 *", "new1"},
		"the newer one dies, and comes back":  {"old1 *", "new1 *", "-new1", "old1", "new2", "-old1", "new2 *"},
		"one of a release that notes nothing": {"?old", "new1 *", "new1", "-?old", "new1 *", "new1"},
		"the same data":                       {"new1 *", "new2", "new1", "-new1", "new2"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue{t, map[string]string{}, map[string]*zones.Data{}, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
			for i, step := range test {
				daemon, expected := strings.CutSuffix(step, " *")
				if gone, is := strings.CutPrefix(daemon, "-"); is {
					delete(q.daemons, gone)
					continue
				}
				q.daemons[daemon] = map[byte]*zones.Data{'o': old, 'n': newer, '?': old}[daemon[0]]
				if daemon[0] == '?' {
					continue
				}
				if replan := q.note(daemon); replan != expected {
					t.Errorf("step %d, %s: expected %t, found %t: %v", i, step, expected, replan, q.hash)
				}
			}
			notes := zones.ReadNotes(q.hash)
			if was, moved := notes.Moved("Europe/Berlin"); name != "one of a release that notes nothing" && name != "the same data" && (moved || notes.PlannedBy != "2026f") {
				t.Errorf("expected Berlin to stay, found %s by %s", was, notes.PlannedBy)
			}
		})
	}
}

func TestWhatOlderDataPlansIsFoundAlsoIfAReleaseCameBetweenThatChangesNothing(t *testing.T) {
	old, newer, newest := dataOf(t, "2025b", "America/Los_Angeles"), dataOf(t, "2026f", "America/Phoenix"), dataOf(t, "2026g", "America/Phoenix")
	q := &queue{t, map[string]string{}, map[string]*zones.Data{"f": newer}, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	q.note("f")
	delete(q.daemons, "f")
	q.daemons["g"] = newest
	q.note("g")
	q.daemons["o"] = old // a host that was left behind
	q.note("o")
	delete(q.daemons, "o")
	if replan := q.note("g"); !replan {
		t.Error("expected all to be planned anew behind the older daemon")
	}
	if was, moved := zones.ReadNotes(q.hash).Moved("America/Vancouver"); !moved || was.Release != "2025b" {
		t.Errorf("expected what 2025b says, found %s, %t", was, moved)
	}
}

func TestAQueueRemembersWhatTheClocksOfAZoneWere(t *testing.T) {
	old, newer := dataOf(t, "2025b", "America/Los_Angeles"), dataOf(t, "2026f", "America/Phoenix")
	q := &queue{t, map[string]string{}, map[string]*zones.Data{"old": old}, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	q.note("old")
	before := zones.ReadNotes(q.hash)
	program := func(d *zones.Data) map[string]*zones.Data { return map[string]*zones.Data{"this program": d} }
	if doubts := before.Doubts(nil, program(newer)); !slices.Equal(doubts, []string{"this program with zone data of 2026f of 2026f/, which differ for America/Vancouver from 2026-11-27"}) {
		t.Errorf("expected Vancouver to differ, found %v", doubts)
	}
	if doubts := before.Doubts([]string{"old"}, program(old)); doubts != nil {
		t.Errorf("expected no difference, found %v", doubts)
	}
	q.daemons["new"] = newer
	q.note("new")
	notes := zones.ReadNotes(q.hash)
	if doubts := notes.Doubts([]string{"old", "new", "?"}, program(newer)); !slices.Equal(doubts, []string{"daemons with zone data of 2025b of 2025b/ and 2026f of 2026f/ and an unknown release, which differ for America/Vancouver from 2026-11-27"}) {
		t.Errorf("expected Vancouver to differ, found %v", doubts)
	}
	was, moved := notes.Moved("America/Vancouver")
	for at, want := range map[time.Time]string{
		time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC):  "-8h0m0s true",
		time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC):   "-7h0m0s true",
		time.Date(2027, 3, 14, 9, 59, 0, 0, time.UTC): "-8h0m0s true",
		time.Date(2027, 3, 14, 10, 0, 0, 0, time.UTC): "-7h0m0s true",
		time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC):   "0s false",
		time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC):   "0s false",
	} {
		offset, known := was.Offset(at)
		if got := offset.String() + " " + map[bool]string{true: "true", false: "false"}[known]; got != want || !moved {
			t.Errorf("%s: expected %s, found %s, %t", at, want, got, moved)
		}
	}
	if got := q.hash["daemon:new"] + ", " + q.hash["planned_by"] + ", " + q.hash["older"]; got != "2026f of 2026f/, 2026f, 1" {
		t.Errorf("expected the daemon and the release noted, found %s", got)
	}
	if text := q.hash["was:America/Vancouver"]; !strings.HasPrefix(text, "2025b 2026-11-27T04:00:00-08:00 2027-03-14T03:00:00-07:00 2027-11-07T01:00:00-08:00 ") {
		t.Errorf("expected the old changes to be readable, found %s", text)
	}

	// Later data that agrees on Vancouver keeps what was before: not all models need have been planned anew since.
	later := dataOf(t, "2027a", "America/Phoenix")
	q.daemons = map[string]*zones.Data{"later": later}
	q.note("later")
	if kept, moved := zones.ReadNotes(q.hash).Moved("America/Vancouver"); !moved || kept.String() != was.String() {
		t.Errorf("expected what Vancouver was to be kept, found %s", kept)
	}
}

func TestNotesThatCannotBeReadSayNothing(t *testing.T) {
	notes := zones.ReadNotes(map[string]string{"planned_by": "2026f", "Europe/Berlin": "nonsense", "was:Europe/Paris": "", "America/Vancouver": "2026f yesterday"})
	for _, zone := range []string{"Europe/Paris", "America/Vancouver", "Asia/Tokyo"} {
		was, moved := notes.Moved(zone)
		if _, known := was.Offset(time.Now()); known || !moved {
			t.Errorf("%s: expected that nobody knows, found %s, %t", zone, was, moved)
		}
	}
	if _, moved := notes.Moved("UTC"); moved {
		t.Error("expected UTC to stay")
	}
	if doubts := notes.Doubts(nil, map[string]*zones.Data{"this program": zones.Own()}); doubts != nil {
		t.Errorf("expected nothing to differ, found %v", doubts)
	}
}
