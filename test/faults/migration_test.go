package faults

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// The commands of servers that move slots themselves.
const (
	migrateslots = "cluster|migrateslots" // Valkey 9.0
	migration    = "cluster|migration"    // Redis 8.4
)

// migrateSlot lets the server itself move the slot of a key to another master, all its keys at one instant. It returns when every node knows.
func migrateSlot(t testing.TB, s *testkit.Server, key string) {
	t.Helper()
	source, masters, slot := mastersFor(t, s, key)
	target := ""
	for address := range masters {
		if address != source {
			target = address
		}
	}
	asked, command := target, []any{"CLUSTER", "MIGRATION", "IMPORT", slot, slot} // Redis 8.4 asks the receiver
	if serves(t, s, migrateslots) {
		asked, command = source, []any{"CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", masters[target]}
	}
	s.On(t, asked, func(ctx context.Context, client *redis.Client) error { return client.Do(ctx, command...).Err() })
	awaitMaster(t, s, key, func(master string) bool { return master == target })
}

// serves reports whether a server has a command.
func serves(t testing.TB, s *testkit.Server, command string) (found bool) {
	t.Helper()
	s.On(t, "", func(ctx context.Context, client *redis.Client) error {
		answer, err := client.Do(ctx, "COMMAND", "INFO", command).Slice()
		found = len(answer) == 1 && answer[0] != nil
		return err
	})
	return found
}

// TestAMovedSlotThatTheServerMigratesItselfLosesNothing gives an attempt a minute, which the longest pause of a migration does not take: what a
// move has lost ends by that deadline, and nothing else does.
func TestAMovedSlotThatTheServerMigratesItselfLosesNothing(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := newSpread(t)
	if !serves(t, s.server, migrateslots) && !serves(t, s.server, migration) {
		t.Skip("want CLUSTER MIGRATESLOTS of Valkey 9.0 or CLUSTER MIGRATION of Redis 8.4, this server has neither")
	}
	for _, part := range s.parts {
		part.policy.Timeout = time.Minute
	}
	var daemons []*testkit.Process
	for range 2 {
		for _, name := range []string{"dispatcher", "poller"} {
			daemons = append(daemons, testkit.Refreshd(t, name, "--redis", s.address, "--queue", "bigtables"))
		}
	}
	s.work()
	s.save()
	s.progress(500)
	saved := s.moveAll(4, migrateSlot)
	s.settleAll()
	stopAll(t, daemons...)
	s.crew.stop()
	s.expectVersion(saved, 4)
	s.auditAll(time.Time{}, time.Time{}.Add(time.Second)) // no node was killed
	for _, event := range []model.Event{model.EventTimeout, model.EventQueueTimeout} {
		count, err := s.counted(string(event))
		s.check("read the counters", err)
		failIf(t, count > 0, "want every attempt answered, %d ended by %s", count, event)
	}
}
