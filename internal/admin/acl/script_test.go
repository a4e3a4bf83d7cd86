package acl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// TestAScriptMayDoNoMoreThanItsUser runs foreign scripts with stolen passwords.
func TestAScriptMayDoNoMoreThanItsUser(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	admin.HSet(t.Context(), "q:model:m", "attempt_uid", "a1")
	admin.RPush(t.Context(), "q-output", "result")
	before := users.Server.Dump(t)
	tries := map[acl.Role][][2]string{
		acl.Worker: {
			{"q:model:m", "return redis.call('HSET', KEYS[1], 'attempt_uid', 'mine')"}, {"q:due", "return redis.call('ZADD', KEYS[1], 1, 'm')"},
			{"q-control", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q-output", "return redis.call('LPOP', KEYS[1])"},
			{"q-output", "return redis.call('LRANGE', KEYS[1], 0, -1)"}, {"q-input", "return redis.call('HSET', 'q:model:m', 'attempt_uid', 'mine')"},
			{"q-input", "return redis.call('HGETALL', 'q:model:m')"}, {"q-input", "return redis.call('RPUSH', KEYS[1], '{}')"},
		},
		acl.Dispatcher: {
			{"q:payload:m", "return redis.call('SET', KEYS[1], '{}')"}, {"q-input", "return redis.call('RPUSH', 'q-output', '{}')"},
			{"q-input", "return redis.call('LPOP', 'q-output')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q:rejected", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q:claimed:", "return redis.call('LREM', KEYS[1], 1, 'x')"},
			{"q:claimed:p", "return redis.call('TYPE', KEYS[1])"},
		},
		acl.Poller: {
			{"q-input", "return redis.call('LMOVE', KEYS[1], 'q:taken:me', 'LEFT', 'RIGHT')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q:due", "return redis.call('HSET', 'q:circuit:queue', 'on', '1')"}, {"q:due", "return redis.call('HSET', 'q:policies', 'x', '{}')"},
			{"q-output", "return redis.call('LRANGE', KEYS[1], 0, -1)"}, {"q:outbox", "return redis.call('DEL', KEYS[1])"},
		},
		acl.Operator: {
			{"q-input", "return redis.call('RPUSH', KEYS[1], '{}')"}, {"q-input", "return redis.call('LPOP', KEYS[1])"},
			{"q-input", "return redis.call('LMOVE', KEYS[1], 'q:taken:me', 'LEFT', 'RIGHT')"}, {"q:due", "return redis.call('LPOP', 'q-output')"},
		},
		acl.Viewer:        {{"q:due", "return redis.call('ZCARD', KEYS[1])"}, {"q:model:m", "return 1"}},
		acl.ForeignWorker: {{"q-input", "return redis.call('LPOP', KEYS[1])"}, {"q-output", "return 1"}},
		acl.Application:   {{"q-control", "return redis.call('RPUSH', KEYS[1], '{}')"}},
	}
	for _, role := range acl.Roles() {
		client := users.Client(t, role)
		err := client.Ping(t.Context()).Err()
		stopIf(t, err != nil, "%s: %v", role, err)
		for _, try := range tries[role] {
			digest := admin.ScriptLoad(t.Context(), try[1]).Val()
			err := client.EvalSha(t.Context(), digest, []string{try[0]}).Err()
			failIf(t, err == nil || errors.Is(err, goredis.Nil) || !redis.Refused(err), "%s: expected %s refused on %s, found %v", role, try[1], try[0], err)
		}
	}
	equal(t, before, users.Server.Dump(t))
}

var workAfterAFlush = map[acl.Role]func(ctx context.Context, s *store.Store) error{
	acl.Dispatcher: func(ctx context.Context, s *store.Store) error {
		_, err := s.ReadDue(ctx, store.DueRequest{Limit: 1})
		return err
	},
	acl.Poller: func(ctx context.Context, s *store.Store) error {
		_, err := s.Claim(ctx, "p", store.Holding{}, 1, time.Second)
		return err
	},
	acl.Worker:   func(ctx context.Context, s *store.Store) error { _, err := s.Pool().Heartbeat(ctx, "w"); return err },
	acl.Operator: func(ctx context.Context, s *store.Store) error { return s.Fleet().ProbeScripts(ctx) },
}

func TestAfterAScriptFlushEachRoleWorksAsSoonAsADispatcherOrAPollerDoes(t *testing.T) {
	users := fixture.WithUsers(t, "q")
	admin := users.Server.Client(t)
	work := func(role acl.Role) error { return workAfterAFlush[role](t.Context(), users.Store(t, role)) }
	for _, loader := range []acl.Role{acl.Dispatcher, acl.Poller} {
		must(t, admin.ScriptFlush(t.Context()).Err())
		for _, role := range []acl.Role{acl.Worker, acl.Operator} {
			err := work(role)
			failIf(t, !errors.Is(err, redis.ErrNotLoaded), "%s alone: expected %v, found %v", role, redis.ErrNotLoaded, err)
		}
		err := work(loader)
		failIf(t, err != nil, "%s: expected it to load the scripts, found %v", loader, err)
		for role := range workAfterAFlush {
			err := work(role)
			failIf(t, err != nil, "%s behind a %s: expected its work done, found %v", role, loader, err)
		}
	}
}
