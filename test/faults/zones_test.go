package faults

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/zones"
)

// zoneWorld is a queue whose daemons have older or newer zone data. They take turns in one process, each round with the data of its daemon.
type zoneWorld struct {
	t        *testing.T
	server   *testkit.Server
	clock    *fixture.Clock
	queue    string
	old, new *zones.Data
	fault    *testkit.Fault
	daemons  map[string]*zoneDaemon // by the names of the roles, such as "old poller"
	started  int
	kills    bool
}

type zoneDaemon struct {
	data  *zones.Data
	store *store.Store
	role  string
	owner string
	round func(ctx context.Context) error
}

// zoneData is data of a release in which Vancouver shows what another zone does, and all else is the same.
func zoneData(t *testing.T, release, like string) *zones.Data {
	t.Helper()
	archive := check.Got(zip.OpenReader("../../model/zones/zones.zip"))(t)
	t.Cleanup(func() { _ = archive.Close() })
	content := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: check.Got(fs.ReadFile(archive, name))(t)}
	}
	return zones.Open(fstest.MapFS{"America/Vancouver": content(like), "Europe/Berlin": content("Europe/Berlin"), "+VERSION": {Data: []byte(release)}}, release)
}

func newZoneWorld(t *testing.T, server *testkit.Server, queue string) *zoneWorld {
	t.Helper()
	clock := &fixture.Clock{}
	clock.Set(time.Date(2026, 12, 2, 11, 0, 0, 0, time.UTC))
	t.Cleanup(func() { zones.Use(zones.Own()) })
	return &zoneWorld{
		t: t, server: server, clock: clock, queue: queue, fault: &testkit.Fault{}, daemons: map[string]*zoneDaemon{},
		old: zoneData(t, "2025b", "America/Los_Angeles"), new: zoneData(t, "2026f", "America/Phoenix"),
	}
}

// start starts a daemon such as "new poller".
func (w *zoneWorld) start(name string) {
	w.t.Helper()
	client := w.server.Client(w.t)
	client.AddHook(w.fault)
	part := check.Got(store.New(&redis.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: w.queue, Clock: w.clock.Now}))(w.t)
	w.started++
	d := &zoneDaemon{store: part, data: w.old, owner: fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), w.started)}
	var age string
	age, d.role, _ = strings.Cut(name, " ")
	if age == "new" {
		d.data = w.new
	}
	if d.role == "poller" {
		p := check.Got(poller.New(poller.RoomsOf(part), poller.Config{Owner: d.owner}))(w.t)
		d.round = func(ctx context.Context) error { return check.Only(p.RunOnce(ctx)) }
	} else {
		p := check.Got(dispatcher.New(dispatcher.RoomsOf(part), dispatcher.Config{Owner: d.owner}))(w.t)
		d.round = func(ctx context.Context) error { return check.Only(p.RunOnce(ctx)) }
	}
	w.daemons[name] = d
}

// stop ends a daemon, which says farewell or is killed.
func (w *zoneWorld) stop(name string) {
	w.t.Helper()
	d := w.daemons[name]
	delete(w.daemons, name)
	switch {
	case w.kills:
	case d.role == "poller":
		_ = d.store.Resign(w.t.Context(), d.owner) // it may be killed meanwhile
	default:
		_ = d.store.Retire(w.t.Context(), d.owner) // likewise
	}
}

// rounds has each daemon do so many rounds, ten seconds apart. One that is killed is replaced by another of its kind.
func (w *zoneWorld) rounds(count int) {
	w.t.Helper()
	for range count {
		for _, name := range []string{"old dispatcher", "new dispatcher", "old poller", "new poller"} {
			if d := w.daemons[name]; d != nil {
				zones.Use(d.data)
				if err := d.round(w.t.Context()); errors.Is(err, testkit.ErrFault) {
					w.start(name)
				} else {
					must(w.t, err)
				}
			}
		}
		w.clock.Turn(10 * time.Second)
	}
}

func (w *zoneWorld) push(client goredis.UniversalClient, key string, messages ...string) {
	w.t.Helper()
	for _, message := range messages {
		must(w.t, client.RPush(w.t.Context(), key, message).Err())
	}
}

// TestARollingUpdateOfTheZoneDataPlansAnewWhateverTheOrderAndWhoeverIsKilled stops the n-th call of any daemon, for many n: its daemon is dead
// then, and others go on.
func TestARollingUpdateOfTheZoneDataPlansAnewWhateverTheOrderAndWhoeverIsKilled(t *testing.T) {
	for kind, serve := range map[string]func(testing.TB) *testkit.Server{
		"miniredis": testkit.Miniredis, "redis-server": func(t testing.TB) *testkit.Server { return testkit.Redis(t) },
	} {
		for name, order := range map[string][]string{
			"poller first":                    {"new poller", "-old poller", "new dispatcher", "-old dispatcher"},
			"dispatcher first":                {"new dispatcher", "-old dispatcher", "new poller", "-old poller"},
			"both begin before the older end": {"new dispatcher", "new poller", "-old poller", "-old dispatcher"},
			"an older poller comes back":      {"new dispatcher", "-old poller", "new poller", "old poller", "-old dispatcher", "-old poller"},
			"the older end first":             {"-old poller", "-old dispatcher", "new poller", "new dispatcher"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) { // not in parallel: they share which data is in use
				server := serve(t)
				for n := 0; ; n += long.Or(211, 17) { // each 17th, as all take half an hour
					w := newZoneWorld(t, server, fmt.Sprint("q", n))
					w.kills = n%2 == 1
					if struck := w.roll(order, n); n > 0 && !struck {
						break
					}
				}
			})
		}
	}
}

// roll replaces the daemons in an order, with the n-th call stopped.
func (w *zoneWorld) roll(order []string, n int) (struck bool) {
	w.t.Helper()
	client := w.server.Client(w.t)
	keys := check.Got(store.NewKeys(w.queue))(w.t)
	refreshAt := func(uid string) string { return client.HGet(w.t.Context(), keys.Model(uid), "refresh_at").Val() }
	succeed := func(uid string) {
		w.push(client, keys.Output, fixture.Result("success", uid, client.HGet(w.t.Context(), keys.Model(uid), "attempt_uid").Val()))
		w.rounds(1)
	}
	w.start("old dispatcher")
	w.start("old poller")
	for uid, zone := range map[string]string{"west": "America/Vancouver", "berlin": "Europe/Berlin", "late": "America/Vancouver", "again": "America/Vancouver"} {
		w.push(client, keys.Control, fmt.Sprintf(`{"type":"put","uid":%q,"rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0","timezone":%q,"dtstart":"2026-01-01","policy":{"timeout":"1h"}}`, uid, zone))
	}
	w.push(client, keys.Control, `{"type":"put","uid":"off","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0","timezone":"America/Vancouver"}`, `{"type":"disable","uid":"off"}`)
	w.push(client, keys.Control, `{"type":"run","uid":"late"}`, `{"type":"run","uid":"again"}`)
	w.rounds(2)
	berlin := refreshAt("berlin")
	if got := refreshAt("west"); got != "2026-12-02T17:00:00.000Z" {
		w.t.Errorf("expected 09:00 of Vancouver by the older data, found %s", got)
	}
	w.fault.Arm(n)
	for i, change := range order {
		if name, is := strings.CutPrefix(change, "-"); is {
			w.stop(name)
		} else {
			w.start(change)
		}
		w.rounds(3)
		switch { // it plans by older data when newer data has come already
		case i == 0 && w.daemons["old poller"] != nil:
			succeed("late")
		case change == "old poller":
			succeed("again")
		case i == len(order)-1:
			succeed("late")
			succeed("again")
		}
	}
	w.rounds(20) // older daemons that were killed are gone after a minute
	struck = w.fault.Struck()
	w.fault.Arm(0)
	want := map[string]string{"west": "2026-12-02T16:00:00.000Z", "late": "2026-12-02T16:00:00.000Z", "again": "2026-12-02T16:00:00.000Z", "berlin": berlin, "off": ""}
	for uid, want := range want {
		if got := refreshAt(uid); got != want {
			w.t.Errorf("call %d stopped: %s: expected %s, found %s: %v", n, uid, want, got, client.HGetAll(w.t.Context(), keys.Zones).Val())
		}
	}
	if left := client.ZRange(w.t.Context(), keys.Bulks, 0, -1).Val(); len(left) > 0 {
		w.t.Errorf("call %d stopped: expected no bulk to be left, found %v", n, left)
	}
	if older := client.HGet(w.t.Context(), keys.Zones, "older").Val(); older != "" {
		w.t.Errorf("call %d stopped: expected the older daemons to be gone, found %q", n, older)
	}
	return struck
}

// TestAPollerWithOlderZoneDataPlansNothingAnew leads, so it would carry out the bulk.
func TestAPollerWithOlderZoneDataPlansNothingAnew(t *testing.T) {
	w := newZoneWorld(t, testkit.Miniredis(t), "q")
	client := w.server.Client(t)
	w.start("old poller")
	w.push(client, "q-control", `{"type":"put","uid":"west","rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0","timezone":"America/Vancouver"}`)
	w.rounds(2)
	const far = 1_800_000_000_000 // in 2027, when the older data had calendars open
	must(t, client.ZAdd(t.Context(), "q:gates", goredis.Z{Score: far, Member: "calendar:night"}, goredis.Z{Score: far, Member: "hold:h"}).Err())
	w.start("new dispatcher")
	w.rounds(5)
	if calendar, hold := client.ZScore(t.Context(), "q:gates", "calendar:night").Val(), client.ZScore(t.Context(), "q:gates", "hold:h").Val(); calendar == far || hold != far {
		t.Errorf("expected calendars alone to be looked at, found %f, and of a hold %f", calendar, hold)
	}
	zones.Use(w.old)
	bulk, found, err := flow.Of(w.daemons["old poller"].store).ReadBulk(t.Context(), "zones-2026f")
	if err != nil || !found || bulk.Seen != 0 || bulk.Problem != "expected zone data of 2026f or newer, found 2025b of 2025b" {
		t.Errorf("expected a bulk that waits for a poller with newer data, found %t, %+v, %v", found, bulk, err)
	}
	doubts, err := store.ZoneDoubts(t.Context(), w.daemons["old poller"].store.Report(), nil)
	if len(doubts) != 1 || !strings.Contains(doubts[0], "2025b of 2025b and 2026f of 2026f, which differ for America/Vancouver from 2026-12-01") {
		t.Errorf("expected daemons that differ, found %q, %v", doubts, err)
	}
	w.start("new poller")
	w.stop("old poller")
	w.rounds(10)
	if bulk, _, err = flow.Of(w.daemons["new poller"].store).ReadBulk(t.Context(), "zones-2026f"); err != nil || bulk.Done != 1 || bulk.EndedAt.IsZero() {
		t.Errorf("expected one model planned anew, found %+v, %v", bulk, err)
	}
	told := ""
	for _, entry := range client.XRange(t.Context(), "q:journal", "-", "+").Val() {
		if entry.Values["event"] == "zones" {
			told += fmt.Sprint(entry.Values["key"], ": ", entry.Values["reason"], "; ")
		}
	}
	if want := "zones-2026f: 1 of 1 models planned anew; "; told != want {
		t.Errorf("expected %q, found %q", want, told)
	}
}

// TestAProgramTakesItsZonesFromZONEINFO runs the program itself, as main chooses the data.
func TestAProgramTakesItsZonesFromZONEINFO(t *testing.T) {
	archive := check.Got(filepath.Abs("../../model/zones/zones.zip"))(t)
	for zoneinfo, want := range map[string]string{archive: `"source": "` + archive + `"`, "/nowhere": "ZONEINFO: expected a directory or a zip archive of zone data"} {
		command := exec.Command(testkit.Binary(t), "version", "-o", "json")
		command.Env = append(os.Environ(), "ZONEINFO="+zoneinfo)
		out, err := command.CombinedOutput()
		if !strings.Contains(string(out), want) || (err != nil) != (zoneinfo == "/nowhere") {
			t.Errorf("ZONEINFO=%s: expected %s, found %s, %v", zoneinfo, want, out, err)
		}
	}
}

func TestANoteOfZoneDataOfAnotherTypeIsNamedAndStopsNoRound(t *testing.T) {
	w := newZoneWorld(t, testkit.Miniredis(t), "q")
	w.push(w.server.Client(t), "q:zones", "no hash")
	w.start("new dispatcher")
	w.rounds(2)
	_, err := w.daemons["new dispatcher"].store.NoteZones(t.Context(), "d")
	if told, is := redis.WrongType(err); !is || !strings.Contains(told, "q:zones holds a list, expected a hash") {
		t.Errorf("expected the key to be named, found %q, %v", told, err)
	}
}
