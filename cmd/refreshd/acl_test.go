package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestACLPrintsUsersAndNeverThePassword(t *testing.T) {
	c := &console{t: t}
	secret := file(t, "secret", "geheim\n")
	for _, args := range [][]string{{"acl"}, {"acl", "--aclfile"}, {"acl", "-o", "json"}} {
		text := c.do(append(args, "--password-file", secret)...)
		failIf(t, strings.Contains(text, "geheim") || strings.Contains(text, "CHANGE-ME") || strings.Count(text, "\n") != len(acl.Roles()),
			"%v: expected a line for each role, without the password, found\n%s", args, text)
		expectContains(t, text, "#addb0f5e7826c857d7376d1bd9bc33c0c544790a2eac96144a8af22b1298c940") // sha256sum of "geheim"
		expectContains(t, c.do(args...), ">CHANGE-ME")
	}
	expectContains(t, c.do("acl", "--role", "viewer,worker", "--queue", "{q:1}"), "ACL SETUSER viewer-{q:1} reset on ", "ACL SETUSER worker-{q:1} reset on ", "~{q:1}:taken:*", "+cluster|slots")
	expectContains(t, c.do("acl", "--role", "poller", "--parts"), "ACL SETUSER poller-bigtables reset on ", "~{bigtables:[0-9]*}-control", "%R~{bigtables}:settings", "+cluster|slots")
	expectContains(t, c.fail(exitUsage, "acl", "--password-file", file(t, "two", "a\nb\n")), "--password-file: expected one line with a password")
}

func TestRedisStartsWithThePrintedACLFile(t *testing.T) {
	c := &console{t: t}
	users := file(t, "users.acl", "user default on nopass ~* &* +@all\n"+c.do("acl", "--aclfile", "--password-file", file(t, "secret", "geheim")))
	server := testkit.Redis(t, "--aclfile", users)
	c = at(t, server)
	c.env["REDIS_URL"] = strings.Replace(server.URL, "://", "://viewer-bigtables:geheim@", 1)
	expectContains(t, c.do("stats"), "queue")
	expectContains(t, c.fail(exitFailed, "limit", "set", "host=a", "--running", "1"), "NOPERM")
}

// stage is a server with users, and a console for each role.
type stage struct {
	*fixture.Users
	t *testing.T
}

func (s stage) as(role acl.Role) *console {
	return &console{t: s.t, env: map[string]string{"REDIS_URL": s.URL(s.t, role)}}
}

// await runs a command until its output contains a text.
func (s stage) await(role acl.Role, want string, args ...string) {
	s.t.Helper()
	check.Eventually(s.t, strings.Join(args, " ")+" says "+want, func() bool { return strings.Contains(s.as(role).do(args...), want) })
}

// TestAWholeStoryRunsUnderTheUsersThatACLPrints lets every part of refreshd run as its own user, from the first save to the last repair, and
// wants that Redis has refused nothing.
func TestAWholeStoryRunsUnderTheUsersThatACLPrints(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := stage{fixture.WithUsers(t, "bigtables"), t}
	for _, daemon := range []*background{s.as(acl.Dispatcher).start("dispatcher"), s.as(acl.Poller).start("poller")} {
		defer s.stop(daemon)
	}
	worker := s.as(acl.Worker).start("worker", "--exec", "sh", "--grace", "0", "--", "-c", `case $REFRESHD_UID in bad*) exit 1;; slow*) exec sleep 60;; esac`)
	client := s.Server.Client(t)
	check.Eventually(t, "a heartbeat of the poller, which has loaded the scripts before", func() bool {
		return client.ZCard(t.Context(), "bigtables:pollers").Val() > 0
	})
	s.attempts()
	s.commands()
	s.stop(worker)
	s.withoutPool()
	s.steer()
	s.look()
	s.repair()
	s.ExpectNoRefusal(t)
}

func (s stage) stop(daemon *background) {
	s.t.Helper()
	code := daemon.stop()
	failIf(s.t, code != exitDone, "expected a daemon to end well, found %d: %s", code, daemon.stderr)
}

// attempts succeed, fail, are retried, run out of time and fail for good.
func (s stage) attempts() {
	s.t.Helper()
	operator := s.as(acl.Operator)
	operator.do("circuit", "set", "queue", "--on", "--min", "1000")
	operator.do("policy", "put", file(s.t, "retrying.yaml", "name: retrying\ntimeout: 1m\nretries: [0s, 0s]\non_exhausted: give_up\n"))
	operator.in = `[{"uid":"good","rrule":"FREQ=HOURLY","refresh":"now","payload":{"input_url":"http://x"}},{"uid":"bad","policy":"retrying","refresh":"now"},
		{"uid":"bad2","policy":{"timeout":"1m","retries":{"expr":"queue_depth < 1000 && k < 3 ? '0s' : false"}},"refresh":"now"},
		{"uid":"slow2","policy":{"timeout":"200ms","retries":[],"on_exhausted":"give_up"},"refresh":"now"}]`
	operator.do("model", "put", "-")
	s.Server.Client(s.t).ScriptFlush(s.t.Context()) // the dispatcher and the poller load what the worker may not
	s.await(acl.Viewer, "success", "history", "good")
	for _, uid := range []string{"bad", "bad2", "slow2"} {
		s.await(acl.Viewer, "disabled", "model", "get", uid)
	}
}

// commands are the commands of an operator and of an application.
func (s stage) commands() {
	s.t.Helper()
	operator := s.as(acl.Operator)
	operator.put(`{"uid":"slow","policy":{"timeout":"5m"}}`)
	s.await(acl.Viewer, "processing", "model", "ls")
	operator.do("model", "run", "slow", "--force")
	operator.do("model", "disable", "slow")
	operator.do("model", "enable", "slow")
	operator.do("model", "run", "good")
	operator.do("model", "rm", "slow")
	application := s.Client(s.t, acl.Application)
	application.RPush(s.t.Context(), "bigtables-control", `{"type":"put","uid":"app","policy":{"timeout":"1m"}}`, "garbage", `{"type":"remove","uid":"nobody"}`)
	s.await(acl.Viewer, "app   ", "model", "ls") // history refuses a model that is not there yet
	s.await(acl.Viewer, "success", "history", "app")
	s.await(acl.Viewer, `"malformed": 1`, "stats", "-o", "json")
	application.RPush(s.t.Context(), "bigtables-control", `{"type":"disable","uid":"app"}`, `{"type":"enable","uid":"app"}`, `{"type":"run","uid":"app","force":true}`)
	s.await(acl.Viewer, "counted run", "stats")
}

// withoutPool takes back what nobody has taken, and lets a foreign worker do the rest.
func (s stage) withoutPool() {
	s.t.Helper()
	operator, foreign := s.as(acl.Operator), s.Client(s.t, acl.ForeignWorker)
	operator.put(`{"uid":"hand","policy":{"timeout":"100ms"}}`)
	s.await(acl.Viewer, "counted withdrawn", "stats")
	operator.put(`{"uid":"hand","policy":{"timeout":"1m"}}`)
	operator.do("model", "run", "hand", "--force")
	for done := false; !done; {
		taken := check.Got(foreign.BLPop(s.t.Context(), 0, "bigtables-input").Result())(s.t)
		var uid, attempt string
		_, _ = fmt.Sscanf(taken[1], `{"big_table_uid":%q,"refresh_attempt_uid":%q`, &uid, &attempt)
		done = uid == "hand" && foreign.HGet(s.t.Context(), "bigtables:model:hand", "attempt_uid").Val() == attempt
		foreign.RPush(s.t.Context(), "bigtables-output", fixture.Result("user_friendly_status", uid, attempt, `"status":"half"`), fixture.Result("success", uid, attempt))
	}
	s.await(acl.Viewer, "success", "history", "hand")
}

// steer holds models and lets them go, limits keys, opens circuits, and moves models.
func (s stage) steer() {
	s.t.Helper()
	operator := s.as(acl.Operator)
	operator.do("calendar", "put", file(s.t, "nightly.yaml", "{name: nightly, rrule: \"FREQ=DAILY;COUNT=1\", dtstart: 2026-01-01T00:00:00, timezone: UTC, for: 1m}"))
	operator.do("policy", "put", file(s.t, "steered.yaml", `{name: steered, closed: [nightly], limits: [{key: "{label.tenant}", running: 1, rate: 600/1m}], circuit: {key: "{label.tenant}", open_after: "1 of 1", probe: 5m}}`))
	operator.do("hold", "--id", "h1", "-l", "uid=held", "--reason", "maintenance", "--cancel")
	operator.do("limit", "set", "tenant=t1", "--running", "1")
	operator.do("limit", "set", "tenant=t2", "--running", "1")
	operator.do("limit", "rm", "tenant=t2")
	operator.do("circuit", "open", "tenant=t1")
	operator.put(`[{"uid":"held","policy":"steered","labels":{"tenant":"t1"}},{"uid":"cut","policy":"steered","labels":{"tenant":"t1"}}]`)
	s.await(acl.Viewer, "hold:h1", "model", "get", "held")
	s.await(acl.Viewer, "circuit:tenant=t1", "model", "get", "cut")
	operator.do("circuit", "close", "tenant=t1")
	s.await(acl.Viewer, "queued", "model", "get", "cut")
	exported := operator.do("model", "export", "-l", "uid=cut", "--state")
	operator.do("model", "rm", "cut")
	operator.in = exported
	operator.do("model", "import", "-")
	operator.do("model", "disable", "-l", "uid=cut")
	operator.do("doctor")
}

// look is all that a viewer can do.
func (s stage) look() {
	s.t.Helper()
	viewer := s.as(acl.Viewer)
	for _, command := range []string{
		"stats", "model ls", "model get good", "history good", "explain good", "policy ls", "policy get retrying", "circuit show queue", "doctor", "simulate --policy retrying",
		"stats -o json", "model ls --prefix g -o json",
		"hold ls", "limit ls", "circuit ls", "calendar ls", "bulk ls", "failures", "freshness", "forecast", "model export", "explain held", "model ls -l status=parked",
	} {
		viewer.do(strings.Fields(command)...)
	}
	s.ExpectNoRefusal(s.t)
	viewer.in = `{"uid":"x"}`
	for _, command := range []string{
		"hold --id h2 --reason x", "release h1", "limit set host=h --running 1", "limit rm host=x", "limit open host=x", "circuit open host=h", "circuit close host=x", "calendar rm nightly",
		"model run -l uid=good", "model import -", "model put -", "model run good", "model rm good", "model disable good", "policy rm retrying", "circuit set queue --on", "circuit set queue --off", "circuit close queue", "circuit open queue", "doctor --repair",
	} {
		code, stdout, stderr := viewer.run(strings.Fields(command)...)
		failIf(s.t, code == exitDone && command != "doctor --repair", "viewer: expected %s refused, found %s%s", command, stdout, stderr)
	}
	s.Forgive(s.t)
}

// repair mends damage that needs each of an operator's rights, and switches the circuit of the queue off.
func (s stage) repair() {
	s.t.Helper()
	ctx, admin, operator := s.t.Context(), s.Server.Client(s.t), s.as(acl.Operator)
	admin.ZAdd(ctx, "bigtables:due", redis.Z{Score: 1e13, Member: "ghost"})
	admin.Set(ctx, "bigtables:payload:rest", "{}", 0)
	admin.HDel(ctx, "bigtables:model:good", "rev")
	admin.RPush(ctx, "bigtables-input", `{"big_table_uid":"ghost","refresh_attempt_uid":"old"}`)
	admin.RPush(ctx, "bigtables:claimed:lost", "ogarbage")
	admin.RPush(ctx, "bigtables:taken:lost", `{"big_table_uid":"ghost","refresh_attempt_uid":"old"}`, `{"big_table_uid":"good","refresh_attempt_uid":"old"}`)
	expectContains(s.t, operator.do("doctor", "--repair"), "due-orphan", "payload-orphan", "model-rev", "input-stale", "claimed-orphan", "taken-orphan", " 0 errors", "6 mended")
	s.await(acl.Viewer, `"malformed": 2`, "stats", "-o", "json") // the poller has adopted the lost one
	operator.do("circuit", "open", "queue")
	operator.do("circuit", "close", "queue")
	operator.do("circuit", "set", "queue", "--off")
	operator.do("policy", "rm", "retrying", "--force")
}
