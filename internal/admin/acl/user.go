// Package acl knows what each part of refreshd does in Redis, and prints it as users of Redis (ACL, version 7.0 and later) that may do
// that and nothing else.
//
// A user has a few commands without keys, and selectors: commands together with the keys on which it may use them. Those for scripts are
// derived from the calls of the scripts.
package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// Role is a part that a program or a person plays.
type Role string

// The roles.
const (
	Dispatcher    Role = "dispatcher"
	Poller        Role = "poller"
	Worker        Role = "worker" // worker pools of refreshd
	Notifier      Role = "notifier"
	Subscriber    Role = "subscriber"     // programs that read the outbox, or what the notifier pushes for them
	ForeignWorker Role = "foreign-worker" // workers that know nothing but the input and the output list
	Application   Role = "application"    // programs that push commands to the control list and read models
	Operator      Role = "operator"       // people who use the command line
	Viewer        Role = "viewer"         // people who only look
)

// Roles are all roles.
func Roles() []Role {
	return []Role{Dispatcher, Poller, Worker, Notifier, ForeignWorker, Application, Subscriber, Operator, Viewer}
}

// Queue is the queue of the users.
type Queue struct {
	Keys    store.Keys
	Several bool // it has several parts
}

// scope is the keys of a queue: with several parts, patterns that match the keys of each.
type scope struct {
	store.Keys
	queue   store.Keys
	several bool
}

func (q Queue) scope() scope {
	if q.Several {
		return scope{q.Keys.AllParts(), q.Keys, true}
	}
	return scope{q.Keys, q.Keys, false}
}

// traces returns the traces of the queue as if it had one part, with braces and without.
func (s scope) traces() (traces []string) {
	bare := strings.Trim(s.queue.Queue, "{}")
	for _, name := range []string{bare, "{" + bare + "}"} {
		if keys, err := store.NewKeys(name); err == nil {
			traces = append(traces, keys.Traces()...)
		}
	}
	return traces
}

// User is a user of Redis for one role in one queue.
type User struct {
	Role  Role     `json:"role"`
	Name  string   `json:"user"`
	Rules []string `json:"rules"` // without a password
}

// NewUser returns the user for a role in a queue.
func NewUser(role Role, queue Queue) (User, error) {
	part, known := map[Role]func(scope) part{
		Dispatcher: dispatcher, Poller: poller, Worker: worker, Notifier: notifier, ForeignWorker: foreignWorker, Subscriber: subscriber,
		Application: application, Operator: operator, Viewer: viewer,
	}[role]
	if !known {
		return User{}, fmt.Errorf("role: expected one of %v, found %q", Roles(), role)
	}
	// A server may hold several queues. No role with its hyphen begins another one, so that no two of these names are equal.
	name := string(role) + "-" + queue.Keys.Queue
	commands := session(role)
	if queue.Several || queue.Keys.Tagged() { // by these a client finds its way in a cluster
		commands = append(commands, "cluster|slots", "cluster|shards", "cluster|nodes", "command", "readonly", "asking")
	}
	scope := queue.scope()
	grants, err := part(scope).grants(scope.Keys)
	if err != nil {
		return User{}, fmt.Errorf("grant to %s: %w", role, err)
	}
	free := redis.Map(commands, func(command string) string { return "+" + command })
	return User{role, name, slices.Concat([]string{"resetchannels", "-@all"}, free, redis.Map(grants, grant.String))}, nil
}

// session are the commands without keys that a role needs.
func session(role Role) []string {
	commands := []string{"ping", "select", "client|setname"}
	switch role {
	case ForeignWorker, Subscriber:
		return commands
	case Worker, Notifier, Application:
		return append(commands, "time")
	case Dispatcher: // it and the poller load the scripts for all
		return append(commands, "time", "multi", "exec", "unwatch", "info", "script|load")
	case Poller: // it walks over the models of a policy that has changed
		return append(commands, "time", "multi", "exec", "unwatch", "info", "script|load", "scan")
	default:
		// SCAN shows the names of all keys of the database, also of other queues, but no values.
		return append(commands, "time", "multi", "exec", "unwatch", "info", "scan")
	}
}

// Password is the rule for a password that is kept as its SHA-256 in hexadecimal; empty: a placeholder that has to be changed.
func Password(sha256 string) string {
	if sha256 == "" {
		return ">CHANGE-ME"
	}
	return "#" + sha256
}

// SetUser is the command that creates or replaces the user.
func (u User) SetUser(password string) string {
	return "ACL SETUSER " + u.Name + " reset on " + password + " " + strings.Join(u.Rules, " ")
}

// Line is the line of an ACL file that makes the user.
func (u User) Line(password string) string {
	return "user " + u.Name + " on " + password + " " + strings.Join(u.Rules, " ")
}
