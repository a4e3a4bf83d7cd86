package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/scripts"
)

func TestWhatRedisTellsOfItselfIsChecked(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Miniredis(t)), t}
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
			c := newChecker(q.Store, Options{})
			c.server(t.Context(), test.server)
			if codes := strings.Join(c.report.Codes(), " "); codes != test.code || c.report.Counts[test.code].Severity != test.severity {
				t.Errorf("expected %q %q, found\n%s", test.severity, test.code, c.report)
			}
		})
	}
}

func TestAFindingOfPersistenceSaysWhatWouldBeLost(t *testing.T) {
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
			report, err := Preflight(t.Context(), fixture.New(t, testkit.Redis(t, test.args...)).Store, Options{Now: time.Now})
			if err != nil || report.Counts["persistence"].Severity != test.severity || !strings.Contains(report.String(), test.want) || len(report.Counts) > 1 {
				t.Errorf("expected %q with %q, found %v\n%s", test.severity, test.want, err, report)
			}
		})
	}
}

func TestTheClockOfThisMachineIsComparedWithThatOfRedis(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Redis(t)), t}
	for skew, want := range map[time.Duration]string{0: "", time.Hour: "1h0m0s behind", -3 * time.Second: "3s ahead"} {
		report, err := Preflight(t.Context(), q.Store, Options{Now: func() time.Time { return time.Now().Add(skew) }})
		if err != nil || (report.Counts["clock-skew"].Found > 0) != (want != "") || !strings.Contains(report.String(), want) {
			t.Errorf("%s: expected %q, found %v\n%s", skew, want, err, report)
		}
	}
	calls := time.Duration(0)
	slow := func() time.Time { calls += 2 * time.Second; return time.Now().Add(calls) } // a round trip takes two seconds and more
	if report, err := Preflight(t.Context(), q.Store, Options{Now: slow}); err != nil || !strings.Contains(report.String(), "give or take 1.00") {
		t.Errorf("expected to read how uncertain it is, found %v\n%s", err, report)
	}
}

func TestScriptsThatMayNotRunAreNoErrorOfTheQueue(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Redis(t, "--maxmemory", "0")), t} // private: its users are changed
	q.ok(q.Redis.Do(t.Context(), "ACL", "SETUSER", "default", "-evalsha", "-eval").Err())
	if report := q.check(Options{}); report.Counts["scripts"].Severity != Info {
		t.Errorf("expected a note, found\n%s", report)
	}
}
