package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

const (
	// maxSkew is a skew that people do not notice when they compare a log with a refresh_at.
	maxSkew      = time.Second
	clockSamples = 5
)

// preflight checks Redis itself, each server once. A server without INFO, such as the embedded one, is only noted.
func (c *checker) preflight(ctx context.Context) error {
	server, unread := c.store.Report().Server(ctx)
	switch {
	case unread != nil && !redis.Answered(unread):
		return unread
	case c.servers[server["run_id"]]:
		return nil
	}
	c.servers[server["run_id"]] = true
	switch identity, err := c.store.Report().Identity(ctx); {
	case err == nil:
		c.report.Servers = append(c.report.Servers, identity)
	case !redis.Answered(err):
		return err
	}
	if err := c.clocks(ctx); err != nil {
		return err
	}
	switch err := c.store.Fleet().ProbeScripts(ctx); {
	case err == nil:
	case errors.Is(err, redis.ErrNotLoaded):
		c.note(scriptsUnknown, "SCRIPT LOAD", "none, and this user may not load them")
	case !redis.Answered(err):
		return err
	case redis.Refused(err):
		c.note(scriptsRefused, "EVALSHA", err.Error())
	default:
		c.note(scriptsFail, "EVALSHA", err.Error())
	}
	if unread != nil {
		c.note(serverUnknown, "INFO", unread.Error())
		return nil
	}
	c.server(server)
	return nil
}

// commands tries some that services forbid, and that operators and viewers may run.
func (c *checker) commands(ctx context.Context) error {
	names, refusals, err := c.store.Report().TryCommands(ctx)
	for i, refusal := range refusals {
		if redis.Refused(refusal) || refusal != nil && strings.Contains(refusal.Error(), "unknown command") {
			c.note(commandRefused, names[i], refusal.Error())
		}
	}
	return err
}

// clocks compares the clock of this machine with the clock of Redis, which alone decides. The sample with the shortest round trip counts: its
// error is at most half the trip.
func (c *checker) clocks(ctx context.Context) error {
	if c.options.Now == nil {
		return nil
	}
	shortest, skew := time.Duration(-1), time.Duration(0)
	for range clockSamples {
		sent := c.options.Now()
		redis, err := c.store.Report().RedisTime(ctx)
		if err != nil {
			return err
		}
		trip := c.options.Now().Sub(sent)
		if shortest < 0 || trip < shortest {
			shortest, skew = trip, redis.Sub(sent.Add(trip/2))
		}
	}
	if skew.Abs() > maxSkew+shortest/2 {
		direction := "ahead"
		if skew < 0 {
			direction = "behind"
		}
		c.note(clockSkew, "TIME", fmt.Sprintf("that of Redis is %s %s, give or take %s",
			skew.Abs().Round(time.Millisecond), direction, (shortest/2).Round(time.Microsecond)))
	}
	return nil
}

// server checks version, role, memory and persistence; a field that is missing says nothing.
func (c *checker) server(server store.Server) {
	version, major, minor := server["redis_version"], 0, 0
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor) // what cannot be read counts as zero
	tooOld, role := major < 6 || major == 6 && minor < 2, server["role"]
	limit, _ := strconv.ParseFloat(server["maxmemory"], 64)
	used, _ := strconv.ParseFloat(server["used_memory"], 64)
	evicts := eviction
	if limit > 0 {
		evicts.severity = Error
	}
	bad := func(status string) bool { return server[status] != "" && server[status] != "ok" }
	for _, row := range []struct {
		is           bool
		kind         kind
		where, found string
	}{
		{version != "" && tooOld, versionTooOld, "redis_version", version},
		{version != "" && !tooOld && major < 7, versionUntested, "redis_version", version},
		{role != "" && role != "master", replica, "role", role + " of " + server["master_host"]},
		{server["cluster_enabled"] == "1" && !c.store.Keys.Tagged(), clusterTag, c.store.Keys.Queue, "none"},
		{server["loading"] == "1", loading, "loading", "one that still does"},
		// The volatile policies remove only keys that expire, and no key of refreshd does.
		{strings.HasPrefix(server["maxmemory_policy"], "allkeys"), evicts, "maxmemory-policy", server["maxmemory_policy"]},
		{limit > 0 && used > 0.9*limit, memoryFull, "maxmemory", fmt.Sprintf("%.0f of %.0f MB", used/1e6, limit/1e6)},
		{bad("rdb_last_bgsave_status"), saveFailing, "rdb_last_bgsave_status", server["rdb_last_bgsave_status"]},
		{bad("aof_last_write_status"), saveFailing, "aof_last_write_status", server["aof_last_write_status"]},
		{bad("aof_last_bgrewrite_status"), saveFailing, "aof_last_bgrewrite_status", server["aof_last_bgrewrite_status"]},
		{server["aof_enabled"] == "0", appendOnlyOff, "appendonly", "no append-only file: when Redis ends, all that happened since its last snapshot is lost, and " +
			"INFO does not say whether it takes any: without, every model and policy is lost"},
		{server["aof_enabled"] == "1", fsyncUnseen, "appendfsync", "unknown, as INFO does not say it: when the machine dies, nothing is lost with always, the last " +
			"second or two with everysec, half a minute or more with no"},
	} {
		if row.is {
			c.note(row.kind, row.where, row.found)
		}
	}
}
