package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/scripts"
)

func TestWhatRedisTellsOfItselfIsJudged(t *testing.T) {
	w := &ward{fixture.New(t, testkit.Miniredis(t)), t}
	for name, test := range map[string]struct {
		server   scripts.Server
		code     string // empty: all is well
		severity Severity
	}{
		"nothing":                             {scripts.Server{}, "", ""},
		"the oldest version that is tested":   {scripts.Server{"redis_version": "7.0.0"}, "", ""},
		"a later version":                     {scripts.Server{"redis_version": "8.10.1"}, "", ""},
		"a version that is not tested":        {scripts.Server{"redis_version": "6.2.14"}, "version", Warning},
		"a version without LMOVE":             {scripts.Server{"redis_version": "6.0.16"}, "version", Error},
		"a short version":                     {scripts.Server{"redis_version": "5"}, "version", Error},
		"a master":                            {scripts.Server{"role": "master"}, "", ""},
		"a replica":                           {scripts.Server{"role": "slave", "master_host": "10.0.0.1"}, "replica", Error},
		"a cluster, and a queue without tag":  {scripts.Server{"cluster_enabled": "1"}, "cluster-tag", Error},
		"a server that loads":                 {scripts.Server{"loading": "1"}, "loading", Warning},
		"no eviction":                         {scripts.Server{"maxmemory_policy": "noeviction", "maxmemory": "100"}, "", ""},
		"eviction of keys that expire":        {scripts.Server{"maxmemory_policy": "volatile-lru", "maxmemory": "100"}, "", ""},
		"eviction of all keys":                {scripts.Server{"maxmemory_policy": "allkeys-lru", "maxmemory": "100"}, "eviction", Error},
		"eviction of all keys, without limit": {scripts.Server{"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}, "eviction", Warning},
		"little memory left":                  {scripts.Server{"maxmemory": "100", "used_memory": "95"}, "memory-full", Warning},
		"much memory left":                    {scripts.Server{"maxmemory": "100", "used_memory": "50"}, "", ""},
		"a snapshot that failed":              {scripts.Server{"rdb_last_bgsave_status": "err"}, "persistence-failing", Error},
		"an append-only file that failed":     {scripts.Server{"aof_last_write_status": "err"}, "persistence-failing", Error},
		"no append-only file":                 {scripts.Server{"aof_enabled": "0"}, "persistence", Warning},
	} {
		t.Run(name, func(t *testing.T) {
			e := begin(w.Store, Options{})
			e.version(test.server)
			e.role(test.server)
			e.memory(test.server)
			e.persistence(t.Context(), test.server)
			if codes := strings.Join(e.report.Codes(), " "); codes != test.code || e.report.Counts[test.code].Severity != test.severity {
				t.Errorf("expected %q %q, found\n%s", test.severity, test.code, e.report)
			}
		})
	}
}

func TestPersistenceIsToldByWhatWouldBeLost(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		severity Severity
		want     string
	}{
		"nothing":   {[]string{"--save", ""}, Warning, "every model and policy is lost"},
		"snapshots": {[]string{"--save", "60 1"}, Warning, "since its last snapshot is lost"},
		"no fsync":  {[]string{"--appendonly", "yes", "--appendfsync", "no"}, Warning, "half a minute"},
		"everysec":  {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, Info, "the last second or two"},
		"always":    {[]string{"--appendonly", "yes", "--appendfsync", "always"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := Surroundings(t.Context(), fixture.New(t, testkit.Redis(t, test.args...)).Store, Options{Now: time.Now})
			if err != nil || report.Counts["persistence"].Severity != test.severity || !strings.Contains(report.String(), test.want) || len(report.Counts) > 1 {
				t.Errorf("expected %q with %q, found %v\n%s", test.severity, test.want, err, report)
			}
		})
	}
}

func TestTheClockOfThisMachineIsComparedWithThatOfRedis(t *testing.T) {
	w := &ward{fixture.New(t, testkit.Redis(t)), t}
	for skew, want := range map[time.Duration]string{0: "", time.Hour: "1h0m0s behind", -3 * time.Second: "3s ahead"} {
		report, err := Surroundings(t.Context(), w.Store, Options{Now: func() time.Time { return time.Now().Add(skew) }})
		if err != nil || (report.Counts["clock-skew"].Found > 0) != (want != "") || !strings.Contains(report.String(), want) {
			t.Errorf("%s: expected %q, found %v\n%s", skew, want, err, report)
		}
	}
	calls := time.Duration(0)
	slow := func() time.Time { calls += 2 * time.Second; return time.Now().Add(calls) } // the way takes two seconds and more
	if report, err := Surroundings(t.Context(), w.Store, Options{Now: slow}); err != nil || !strings.Contains(report.String(), "give or take 1.00") {
		t.Errorf("expected the uncertainty told, found %v\n%s", err, report)
	}
}

func TestScriptsThatMayNotRunAreNoErrorOfTheQueue(t *testing.T) {
	w := &ward{fixture.New(t, testkit.Redis(t, "--maxmemory", "0")), t} // private: its users are changed
	w.ok(w.Redis.Do(t.Context(), "ACL", "SETUSER", "default", "-evalsha", "-eval").Err())
	if report := w.examine(Options{}); report.Counts["scripts"].Severity != Info {
		t.Errorf("expected a note, found\n%s", report)
	}
}

func TestOnlyTheFirstFindingsOfACodeAreTold(t *testing.T) {
	everywhere(t, func(t *testing.T, w *ward) {
		for _, uid := range []string{"a", "b", "c", "d", "e"} {
			w.ok(w.Redis.Set(t.Context(), w.Store.Keys.Payload(uid), "{}", 0).Err())
		}
		report := w.examine(Options{Limit: 2})
		if len(report.Findings) != 2 || report.Counts["payload-orphan"].Found != 5 || report.Detailed("payload-orphan") != 2 {
			t.Errorf("expected 2 of 5 told, found %v\n%s", report.Counts, report)
		}
	})
}

func TestAllRemainsOfAModelAreToldOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w *ward) {
		k := w.Store.Keys
		w.ok(w.Redis.Set(t.Context(), k.Payload("x"), "{}", 0).Err())
		w.ok(w.Redis.RPush(t.Context(), k.History("x"), "{}").Err())
		w.ok(w.Redis.Do(t.Context(), "ZADD", k.Due(), 1e13, "x").Err())
		w.ok(w.Redis.Do(t.Context(), "ZADD", k.Running(), 1e13, "x").Err())
		for _, repair := range []bool{false, true} {
			report := w.examine(Options{Repair: repair})
			if len(report.Findings) != 4 || report.Total(Error) != map[bool]int{false: 4, true: 0}[repair] {
				t.Errorf("expected each of four once, found\n%s", report)
			}
		}
	})
}

func TestNothingIsMendedWhileAKeyOfTheQueueHasTheWrongType(t *testing.T) {
	everywhere(t, func(t *testing.T, w *ward) {
		w.ok(w.Redis.Set(t.Context(), w.Store.Keys.Stats(), "text", 0).Err())
		w.ok(w.Redis.Set(t.Context(), w.Store.Keys.Payload("x"), "{}", 0).Err())
		report := w.examine(Options{Repair: true})
		if report.Mended() > 0 || report.Counts["key-type"].Found != 1 || !strings.Contains(report.String(), "left: a key of the queue has the wrong type") {
			t.Errorf("expected it left and said, found\n%s", report)
		}
	})
}

func TestEveryQueueKeyOfTheWrongTypeIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, w *ward) {
		k := w.Store.Keys
		all := []string{k.Input(), k.Output(), k.Control(), k.Due(), k.Running(), k.Policies(), k.Pollers(), k.Workers(), k.Journal(), k.Outbox(), k.Rejected(), k.Stats(), k.Brake(), k.Wake()}
		w.prepare()
		for _, key := range all {
			w.ok(w.Redis.Del(t.Context(), key).Err())
			w.ok(w.Redis.Set(t.Context(), key, "text", 0).Err())
		}
		if report := w.examine(Options{Repair: true}); report.Counts["key-type"].Found != len(all) {
			t.Errorf("expected %d keys, found\n%s", len(all), report)
		}
	})
}
