package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/scripts"
)

// surroundings checks Redis itself. A server that does not tell about itself, such as the embedded one, is only noted.
func (e *examination) surroundings(ctx context.Context) error {
	if err := e.clocks(ctx); err != nil {
		return err
	}
	if err := e.scripts(ctx); err != nil {
		return err
	}
	server, err := e.store.Server(ctx)
	if err != nil && !scripts.Answered(err) {
		return err
	}
	if err != nil {
		e.note(Finding{Info, "server-silent", "INFO", "an answer", err.Error(), "by hand: allow this user INFO, or check version, persistence and memory yourself", false})
		return nil
	}
	e.version(server)
	e.role(server)
	e.memory(server)
	e.persistence(ctx, server)
	return nil
}

// oldestVersion is the first Redis that knows every command of the scripts (LMOVE, and BLMOVE to wait); testedVersion the first one
// that the tests run on.
const (
	oldestVersion = "6.2"
	testedVersion = "7.0"
)

func (e *examination) version(server scripts.Server) {
	version := server["redis_version"]
	f := Finding{Where: "redis_version", Code: "version", Want: "Redis " + testedVersion + " or later", Found: version, Repair: "by hand: upgrade Redis"}
	switch {
	case version == "" || !older(version, testedVersion):
		return
	case older(version, oldestVersion):
		f.Severity, f.Want = Error, f.Want+": the scripts use LMOVE, LPOS and BLMOVE, which came with "+oldestVersion
	default:
		f.Severity, f.Want = Warning, f.Want+", which the tests run on; the commands in use exist since "+oldestVersion
	}
	e.note(f)
}

// older compares major and minor numbers.
func older(version, than string) bool {
	var a, b [2]int
	for i, part := range strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)] {
		a[i], _ = strconv.Atoi(part)
	}
	for i, part := range strings.Split(than, ".") {
		b[i], _ = strconv.Atoi(part)
	}
	return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
}

func (e *examination) role(server scripts.Server) {
	if role := server["role"]; role != "" && role != "master" {
		e.note(Finding{Error, "replica", "role", "a master: a replica takes no writes", role + " of " + server["master_host"],
			"by hand: connect to the master, or through sentinels (redis-sentinel://)", false})
	}
	if server["cluster_enabled"] == "1" && !e.store.Keys.Tagged() {
		e.note(Finding{Error, "cluster-tag", e.store.Keys.Queue(), "a queue in braces, so that all its keys are in one slot of the cluster",
			"none", "by hand: use --queue '{" + e.store.Keys.Queue() + "}' and redis-cluster://", false})
	}
	if server["loading"] == "1" {
		e.note(Finding{Warning, "loading", "loading", "a server that has loaded its data", "one that still does", "", false})
	}
}

// memoryFull is the share of maxmemory at which somebody should look.
const memoryFull = 0.9

func (e *examination) memory(server scripts.Server) {
	limit, _ := strconv.ParseFloat(server["maxmemory"], 64)
	used, _ := strconv.ParseFloat(server["used_memory"], 64)
	// The volatile policies remove only keys that expire, and no key of refreshd does.
	if policy := server["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") {
		f := Finding{Warning, "eviction", "maxmemory-policy", "noeviction: any other may remove models without a word", policy,
			"by hand: CONFIG SET maxmemory-policy noeviction", false}
		if limit > 0 {
			f.Severity = Error
		}
		e.note(f)
	}
	if limit > 0 && used > memoryFull*limit {
		e.note(Finding{Warning, "memory-full", "maxmemory", fmt.Sprintf("at most %.0f%% of it in use: beyond it nothing is started or applied", memoryFull*100),
			fmt.Sprintf("%.0f of %.0f MB", used/1e6, limit/1e6), "by hand: raise maxmemory", false})
	}
}

func (e *examination) persistence(ctx context.Context, server scripts.Server) {
	for _, status := range []string{"rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"} {
		if found := server[status]; found != "" && found != "ok" {
			e.note(Finding{Error, "persistence-failing", status, "ok: otherwise Redis may refuse writes", found, "by hand: look into the log of Redis, often its disk is full", false})
		}
	}
	switch server["aof_enabled"] {
	case "0":
		snapshots, told := e.store.Setting(ctx, "save")
		found := "no append-only file: when Redis dies, all that happened since its last snapshot is lost"
		if told && snapshots == "" {
			found = "neither append-only file nor snapshots: when Redis ends, every model and policy is lost"
		}
		e.note(Finding{Warning, "persistence", "appendonly", "yes", found, "by hand: CONFIG SET appendonly yes, and in the configuration of Redis", false})
	case "1":
		fsync, told := e.store.Setting(ctx, "appendfsync")
		if told && fsync == "no" {
			e.note(Finding{Warning, "persistence", "appendfsync", "everysec or always", "no: when the machine dies, half a minute or more may be lost",
				"by hand: CONFIG SET appendfsync everysec", false})
		}
		if told && fsync == "everysec" {
			e.note(Finding{Info, "persistence", "appendfsync", "always, if nothing may be lost", "everysec: when the machine dies, the last second or two are lost and done again", "", false})
		}
	}
}

const (
	clockSamples = 5
	// maxSkew is what people do not notice when they compare a log with a refresh_at.
	maxSkew = time.Second
)

// clocks compares the clock of this machine with that of Redis, which alone decides. Of several samples the one with the shortest way
// counts: its error is at most half of that.
func (e *examination) clocks(ctx context.Context) error {
	best, skew := time.Duration(-1), time.Duration(0)
	for range clockSamples {
		if e.options.Now == nil {
			return nil
		}
		sent := e.options.Now()
		redis, err := e.store.RedisTime(ctx)
		if err != nil {
			return err
		}
		way := e.options.Now().Sub(sent)
		if best < 0 || way < best {
			best, skew = way, redis.Sub(sent.Add(way/2))
		}
	}
	if skew.Abs() > maxSkew+best/2 {
		e.note(Finding{Warning, "clock-skew", "TIME", "clocks within " + maxSkew.String() + " (Redis' own decides)",
			fmt.Sprintf("that of Redis is %s, give or take %s", ahead(skew), (best / 2).Round(time.Microsecond)), "by hand: let NTP set both clocks", false})
	}
	return nil
}

func ahead(skew time.Duration) string {
	if skew < 0 {
		return skew.Abs().Round(time.Millisecond).String() + " behind"
	}
	return skew.Round(time.Millisecond).String() + " ahead"
}

// scripts checks that scripts run: it changes nothing.
func (e *examination) scripts(ctx context.Context) error {
	err := e.store.ProbeScripts(ctx)
	f := Finding{Error, "scripts", "EVALSHA", "scripts that run", "", "by hand: allow EVALSHA, EVAL and SCRIPT, or look at the error", false}
	switch {
	case err == nil || !scripts.Answered(err):
		return err
	case scripts.Refused(err):
		f.Severity, f.Repair = Info, "by hand: check it as the user of a daemon; this one may not run scripts on all keys"
	}
	f.Found = err.Error()
	e.note(f)
	return nil
}
