package zones_test

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/zones"
)

func TestDaemonsThatAreGoneAreForgottenWhenThereAreMany(t *testing.T) {
	data, now := dataOf(t, "2026f", "America/Phoenix"), time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for daemons, forgets := range map[int]bool{100: false, 101: true} {
		hash := map[string]string{}
		for i := range daemons {
			hash[fmt.Sprint("daemon:d", i)] = data.String()
		}
		set, drop, _ := zones.ReadNotes(hash).Update(data, "d0", []string{"d0", "d1"}, now)
		want := 0
		if forgets {
			want = daemons - 2
		}
		check.FailIf(t, len(drop) != want || slices.Contains(drop, "daemon:d0") || slices.Contains(drop, "daemon:d1"), "%d daemons: %d forgotten, want %d", daemons, len(drop), want)
		_, again := set["daemon:d0"]
		check.FailIf(t, again, "what is noted is noted again")
	}
}

func TestEachFieldOfTheNotesIsReadAsWhatItIs(t *testing.T) {
	const note = "2025b 2026-11-27T04:00:00-08:00"
	notes := zones.ReadNotes(map[string]string{"planned_by": "none", "older": "1", "daemon:d": "2026f of /usr/share of zones", "was:Europe/Paris": note, "Europe/Berlin": note})
	check.FailIf(t, notes.PlannedBy != "" || !notes.Known || !notes.Older, "got %+v", notes)
	check.Equal(t, map[string]zones.Origin{"d": {Release: "2026f", Source: "/usr/share of zones"}}, notes.Daemons)
	check.FailIf(t, len(notes.Zones) != 1 || notes.Zones["Europe/Berlin"].String() != note, "zones: %v", notes.Zones)
	check.FailIf(t, len(notes.Prior) != 1 || notes.Prior["Europe/Paris"].String() != note, "prior: %v", notes.Prior)
	none := zones.ReadNotes(nil)
	check.FailIf(t, none.Known || none.Older || none.PlannedBy != "", "nothing is noted: %+v", none)
	was, _ := zones.ReadNotes(map[string]string{"was:Europe/Paris": note + " yesterday"}).Moved("Europe/Paris")
	check.FailIf(t, was.String() != note, "a time that cannot be read became %s", was)
}

func TestAZoneMayHaveMovedUnlessNewerDataHasNotedItAlike(t *testing.T) {
	notes := zones.ReadNotes(map[string]string{"planned_by": "2026f", "Europe/Berlin": "2025b", "Europe/Rome": "2026f"})
	for zone, want := range map[string]bool{"": false, "UTC": false, "Europe/Berlin": false, "Europe/Rome": true, "Asia/Tokyo": true} {
		_, moved := notes.Moved(zone)
		check.FailIf(t, moved != want, "%q: moved: %t", zone, moved)
	}
}

func TestDaemonsWithDifferentDataAreNamedInOneOrder(t *testing.T) {
	notes := zones.ReadNotes(map[string]string{"older": "1", "daemon:a": "2026f of x", "daemon:b": "2025b of x", "daemon:c": "2025b of x"})
	const want = "daemons with zone data of 2025b of x and 2026f of x, which differ for no zone in use"
	for _, living := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		check.Equal(t, []string{want}, notes.Doubts(living, nil))
	}
	check.FailIf(t, notes.Doubts([]string{"b", "c"}, nil) != nil, "one release is doubted")
	notes.Older = false
	check.FailIf(t, notes.Doubts([]string{"a", "b"}, nil) != nil, "the last one with older data has just gone")
}

func TestOnlyALinkOfTheListOfZonesIsAnotherName(t *testing.T) {
	archive := check.Got(zip.OpenReader("zones.zip"))(t)
	t.Cleanup(func() { _ = archive.Close() })
	berlin := &fstest.MapFile{Data: check.Got(fs.ReadFile(archive, "Europe/Berlin"))(t)}
	list := &fstest.MapFile{Data: []byte("# version 2099a\nL Europe/Berlin Linked/Name\nR Europe/Berlin Ruled/Name\nL Europe/Berlin Long/Name #\n")}
	data := zones.Open(fstest.MapFS{"Europe/Berlin": berlin, "tzdata.zi": list}, "x")
	for name, known := range map[string]bool{"Linked/Name": true, "Ruled/Name": false, "Long/Name": false} {
		_, err := data.Load(name)
		check.FailIf(t, err == nil != known, "%s: %v", name, err)
	}
	check.FailIf(t, data.Loaded() != 1, "%d names are loaded, want 1", data.Loaded())
	check.Must(t, check.Only(data.Load("Linked/Name")))
	check.FailIf(t, data.Loaded() != 1, "a name counts twice: %d", data.Loaded())
}

func TestTheClocksOfAZoneAreChangedAtTheSecondFromOneInstantUpToAnother(t *testing.T) {
	berlin := check.Got(zones.Own().Load("Europe/Berlin"))(t)
	change := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		from, to time.Time
		want     int
	}{
		{change.AddDate(0, 0, -1), change.AddDate(0, 0, 1), 1},
		{change.Add(-time.Second), change.Add(time.Second), 1},
		{change.Add(-time.Second), change, 0},
		{change, change.AddDate(0, 0, 1), 0},
		{change.AddDate(-1, 0, 0), change.Add(time.Second), 3},
	} {
		all := slices.Collect(zones.Changes(berlin, test.from, test.to))
		check.FailIf(t, len(all) != test.want, "from %s to %s: got %v, want %d", test.from, test.to, all, test.want)
		check.FailIf(t, test.want > 0 && !all[len(all)-1].Equal(change), "from %s to %s: got %v", test.from, test.to, all)
	}
	for range zones.Changes(berlin, change.AddDate(-9, 0, 0), change) {
		break // a walk may end early
	}
	note := check.Got(zones.Own().Note("Europe/Berlin", change.Add(-time.Hour), change.Add(time.Hour)))(t)
	for after, want := range map[time.Duration]string{
		-time.Hour - 1: "0s false", -time.Hour: "1h0m0s true", -1: "1h0m0s true", 0: "2h0m0s true", time.Hour - 1: "2h0m0s true", time.Hour: "0s false",
	} {
		ahead, known := note.Offset(change.Add(after))
		got := fmt.Sprint(ahead, " ", known)
		check.FailIf(t, got != want, "%s after the change: got %s, want %s", after, got, want)
	}
	_, err := zones.Own().Note("Mars/Olympus", change, change)
	check.FailIf(t, err == nil || !strings.Contains(err.Error(), "Mars/Olympus"), "got %v", err)
}
