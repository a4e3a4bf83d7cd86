package queuetest

import (
	"context"
	"slices"
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
	return UsersOn(t, redistest.Redis(t, "--acllog-max-len", "1000"), queue)
}

// UsersOn gives a redis-server a user for each role in a queue. They stay when the server is lent to the next test, which does no harm.
func UsersOn(t testing.TB, server *redistest.Server, queue string) *Users {
	t.Helper()
	u := &Users{server, must(scripts.NewKeys(queue))(t), server.Client(t)}
	pipe := u.admin.Pipeline()
	for _, role := range acl.Roles() {
		pipe.Do(t.Context(), words(must(acl.NewUser(role, u.keys))(t).SetUser(">"+password))...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("make users: %v", err)
	}
	return u
}

func words(command string) (words []any) {
	for _, word := range strings.Fields(command) {
		words = append(words, word)
	}
	return words
}

// everybody connects as a user with the rights of all roles.
func (u *Users) everybody(t testing.TB) redis.UniversalClient {
	t.Helper()
	all := acl.User{Name: "everybody"}
	for _, role := range acl.Roles() {
		all.Rules = append(all.Rules, must(acl.NewUser(role, u.keys))(t).Rules...)
	}
	// Each role begins by taking all rights away.
	all.Rules = slices.DeleteFunc(all.Rules, func(rule string) bool { return rule == "resetchannels" || rule == "-@all" })
	if err := u.admin.Do(t.Context(), words(all.SetUser(">"+password))...).Err(); err != nil {
		t.Fatalf("make a user: %v", err)
	}
	return u.login(t, all.Name)
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
	name, _ := u.Credentials(t, role)
	return u.login(t, name)
}

func (u *Users) login(t testing.TB, name string) redis.UniversalClient {
	t.Helper()
	options := u.Server.Options()
	options.Username, options.Password = name, password
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
