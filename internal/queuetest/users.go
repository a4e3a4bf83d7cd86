package queuetest

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/acl"
	"github.com/refreshd/refreshd/internal/redistest"
	"github.com/refreshd/refreshd/scripts"
)

// Users are the users of refreshd's own ACL on a server.
type Users struct {
	Server *redistest.Server
	keys   scripts.Keys
	admin  redis.UniversalClient
}

const password = "secret"

// WithUsers starts a redis-server of its own and gives it a user for each role in a queue.
func WithUsers(t testing.TB, queue string) *Users {
	t.Helper()
	server := redistest.Redis(t, "--acllog-max-len", "1000")
	keys := must(scripts.NewKeys(queue))(t)
	u := &Users{server, keys, server.Client(t)}
	for _, role := range acl.Roles() {
		user := must(acl.NewUser(role, keys))(t)
		var words []any
		for _, word := range strings.Fields(user.SetUser(">" + password)) {
			words = append(words, word)
		}
		if err := u.admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatalf("make %s: %v", user.Name, err)
		}
	}
	return u
}

// Credentials are by which a role logs in.
func (u *Users) Credentials(t testing.TB, role acl.Role) (name, secret string) {
	t.Helper()
	return must(acl.NewUser(role, u.keys))(t).Name, password
}

// URL is the address of the server for a role.
func (u *Users) URL(t testing.TB, role acl.Role) string {
	t.Helper()
	name, secret := u.Credentials(t, role)
	return "redis://" + name + ":" + secret + "@" + u.Server.Addr
}

// Client connects as a role.
func (u *Users) Client(t testing.TB, role acl.Role) redis.UniversalClient {
	t.Helper()
	options := u.Server.Options()
	options.Username, options.Password = u.Credentials(t, role)
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ExpectNoRefusal fails a test in which Redis has refused anything to anybody, but for the doctor's try of a script as a viewer.
func (u *Users) ExpectNoRefusal(t testing.TB) {
	t.Helper()
	entries, err := u.admin.ACLLog(context.Background(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Username == must(acl.NewUser(acl.Viewer, u.keys))(t).Name && strings.HasPrefix(entry.Object, "eval") {
			continue // the doctor asks whether scripts run
		}
		t.Errorf("Redis refused %s to %s: %s %s (%d times)", entry.Object, entry.Username, entry.Reason, entry.Context, entry.Count)
	}
}

// Forgive forgets what Redis has refused so far.
func (u *Users) Forgive(t testing.TB) {
	t.Helper()
	if err := u.admin.ACLLogReset(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}
