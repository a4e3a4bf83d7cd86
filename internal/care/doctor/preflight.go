package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

const (
	// maxSkew is what people do not notice when they compare a log with a refresh_at.
	maxSkew      = time.Second
	clockSamples = 5
)

// preflight checks Redis itself, each server once. A server that does not tell about itself, such as the embedded one, is only noted.
func (c *checker) preflight(ctx context.Context) error {
	server, untold := c.store.Report().Server(ctx)
	switch {
	case untold != nil && !store.Answered(untold):
		return untold
	case c.servers[server["run_id"]]:
		return nil
	}
	c.servers[server["run_id"]] = true
	if err := c.clocks(ctx); err != nil {
		return err
	}
	switch err := c.store.Fleet().ProbeScripts(ctx); {
	case err == nil:
	case errors.Is(err, store.ErrNotLoaded):
		c.note(scriptsUnknown, "SCRIPT LOAD", "none, and this user may not load them")
	case !store.Answered(err):
		return err
	case store.Refused(err):
		c.note(scriptsRefused, "EVALSHA", err.Error())
	default:
		c.note(scriptsFail, "EVALSHA", err.Error())
	}
	if untold != nil {
		c.note(serverUnknown, "INFO", untold.Error())
		return nil
	}
	c.server(server)
	return nil
}

// clocks compares the clock of this machine with that of Redis, which alone decides. Of several samples the one with the shortest round
// trip counts: its error is at most half of that.
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
	switch {
	case version == "" || major >= 7:
	case major < 6 || major == 6 && minor < 2:
		c.note(versionTooOld, "redis_version", version)
	default:
		c.note(versionUntested, "redis_version", version)
	}
	if role := server["role"]; role != "" && role != "master" {
		c.note(replica, "role", role+" of "+server["master_host"])
	}
	if server["cluster_enabled"] == "1" && !c.store.Keys.Tagged() {
		c.note(clusterTag, c.store.Keys.Queue, "none")
	}
	if server["loading"] == "1" {
		c.note(loading, "loading", "one that still does")
	}
	limit, _ := strconv.ParseFloat(server["maxmemory"], 64)
	used, _ := strconv.ParseFloat(server["used_memory"], 64)
	// The volatile policies remove only keys that expire, and no key of refreshd does.
	if policy := server["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys") {
		f := eviction.at("maxmemory-policy", policy)
		if limit > 0 {
			f.Severity = Error
		}
		c.add(f)
	}
	if limit > 0 && used > 0.9*limit {
		c.note(memoryFull, "maxmemory", fmt.Sprintf("%.0f of %.0f MB", used/1e6, limit/1e6))
	}
	for _, status := range []string{"rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"} {
		if found := server[status]; found != "" && found != "ok" {
			c.note(saveFailing, status, found)
		}
	}
	switch server["aof_enabled"] {
	case "0":
		c.note(appendOnlyOff, "appendonly", "no append-only file: when Redis ends, all that happened since its last snapshot is lost, and "+
			"INFO does not tell whether it takes any: without, every model and policy is lost")
	case "1":
		c.note(fsyncUnseen, "appendfsync", "unknown, as INFO does not tell it: when the machine dies, nothing is lost with always, the last "+
			"second or two with everysec, half a minute or more with no")
	}
}
