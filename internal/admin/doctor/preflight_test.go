package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestWhatRedisTellsOfItselfIsChecked(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Miniredis(t)), t}
	for name, test := range map[string]struct {
		server   store.Server
		code     string // empty: all is well
		severity Severity
	}{
		"nothing":                             {store.Server{}, "", ""},
		"the oldest version that is tested":   {store.Server{"redis_version": "7.0.0"}, "", ""},
		"a later version":                     {store.Server{"redis_version": "8.10.1"}, "", ""},
		"a version that is not tested":        {store.Server{"redis_version": "6.2.14"}, "version", Warning},
		"a version without LMOVE":             {store.Server{"redis_version": "6.0.16"}, "version", Error},
		"a short version":                     {store.Server{"redis_version": "5"}, "version", Error},
		"a master":                            {store.Server{"role": "master"}, "", ""},
		"a replica":                           {store.Server{"role": "slave", "master_host": "10.0.0.1"}, "replica", Error},
		"a cluster, and a queue without tag":  {store.Server{"cluster_enabled": "1"}, "cluster-tag", Error},
		"a server that loads":                 {store.Server{"loading": "1"}, "loading", Warning},
		"no eviction":                         {store.Server{"maxmemory_policy": "noeviction", "maxmemory": "100"}, "", ""},
		"eviction of keys that expire":        {store.Server{"maxmemory_policy": "volatile-lru", "maxmemory": "100"}, "", ""},
		"eviction of all keys":                {store.Server{"maxmemory_policy": "allkeys-lru", "maxmemory": "100"}, "eviction", Error},
		"eviction of all keys, without limit": {store.Server{"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}, "eviction", Warning},
		"little memory left":                  {store.Server{"maxmemory": "100", "used_memory": "95"}, "memory-full", Warning},
		"much memory left":                    {store.Server{"maxmemory": "100", "used_memory": "50"}, "", ""},
		"a snapshot that failed":              {store.Server{"rdb_last_bgsave_status": "err"}, "persistence-failing", Error},
		"an append-only file that failed":     {store.Server{"aof_last_write_status": "err"}, "persistence-failing", Error},
		"no append-only file":                 {store.Server{"aof_enabled": "0"}, "persistence", Warning},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChecker(q.Store, Options{})
			c.server(test.server)
			codes := strings.Join(c.report.Codes(), " ")
			failIf(t, codes != test.code || c.report.Counts[test.code].Severity != test.severity,
				"expected %q %q, found\n%s", test.severity, test.code, c.report)
		})
	}
}

func TestAFindingOfPersistenceSaysWhatWouldBeLostAndWhatCannotBeSeen(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		severity Severity
		want     string
	}{
		"none":             {[]string{"--save", ""}, Warning, "INFO does not say whether it takes any"},
		"snapshots":        {[]string{"--save", "60 1"}, Warning, "since its last snapshot is lost"},
		"append-only file": {[]string{"--appendonly", "yes"}, Info, "unknown, as INFO does not say it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := (&queue{fixture.New(t, testkit.Redis(t, test.args...)), t}).preflight(Options{Now: time.Now})
			failIf(t, err != nil || report.Counts["persistence"].Severity != test.severity || !strings.Contains(report.String(), test.want) || len(report.Counts) > 1,
				"expected %q with %q, found %v\n%s", test.severity, test.want, err, report)
		})
	}
}

func TestTheServerIsNamedWithTheVersionThatItTells(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Redis(t)), t}
	info, err := q.Store.Report().Server(t.Context())
	q.ok(err)
	report, err := q.preflight(Options{})
	stopIf(t, err != nil || len(report.Servers) != 1, "expected one server, found %v, %v", report.Servers, err)
	name := report.Servers[0].Name
	equal(t, store.Identity{Name: name, Version: info[strings.ToLower(name)+"_version"], Mode: "standalone"}, report.Servers[0])
}

func TestTheClockOfThisMachineIsComparedWithThatOfRedis(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Redis(t)), t}
	for skew, want := range map[time.Duration]string{0: "", time.Hour: " behind, give or take ", -3 * time.Second: "s ahead, give or take "} {
		report, err := q.preflight(Options{Now: func() time.Time { return time.Now().Add(skew) }})
		q.ok(err)
		found := report.Counts[clockSkew.code].Found
		failIf(t, found != min(1, len(want)) || !strings.Contains(report.String(), want), "%s: expected %q, found\n%s", skew, want, report)
	}
}

func TestOfSeveralReadingsOfTheClockTheMiddleOfTheShortestRoundTripCounts(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Miniredis(t)), t}
	now := time.Date(2026, 1, 5, 14, 0, 0, 0, time.UTC)
	q.Server.Mini.SetTime(now)
	calls := 0
	slow := func() time.Time {
		if calls++; calls == 6 { // the third round trip: sent after 10 s, answered after 11 s
			now = now.Add(time.Second)
		} else {
			now = now.Add(2 * time.Second)
		}
		return now
	}
	report, err := q.preflight(Options{Now: slow})
	want := "that of Redis is 10.5s behind, give or take 500ms;"
	failIf(t, err != nil || !strings.Contains(report.String(), want), "expected %q, found %v\n%s", want, err, report)
}

func (q *queue) preflight(options Options) (*Report, error) {
	return Preflight(q.t.Context(), &store.Queue{Parts: []*store.Store{q.Store}}, options, check.Limit)
}

func TestScriptsThatMayNotRunOrBeLoadedAreNoErrorOfTheQueue(t *testing.T) {
	t.Setenv(fixture.UsersVariable, "") // it is the default user who may not
	for lacks, want := range map[string]Severity{"-evalsha": Info, "-script|load": Warning} {
		q := &queue{fixture.New(t, testkit.Redis(t, "--maxmemory", "0")), t} // private: its users are changed
		q.ok(q.Redis.Do(t.Context(), "ACL", "SETUSER", "default", lacks).Err())
		found := q.check(Options{}).Counts["scripts"]
		failIf(t, found.Severity != want, "%s: expected %s, found %v", lacks, want, found)
	}
}
