package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) {
	setLogGlobals()
	redis.LogTo(logRedis)
	completeWithin = time.Minute
	testkit.Main(m)
}

// console runs the program as a shell would.
type console struct {
	t   *testing.T
	env map[string]string
	in  string
}

// nowhere is a console without Redis.
func nowhere(t *testing.T) *console {
	return &console{t: t, env: map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}}
}

// at returns a console whose REDIS_URL leads to the server.
func at(t *testing.T, server *testkit.Server) *console {
	return &console{t: t, env: map[string]string{"REDIS_URL": server.URL}}
}

// onEach runs a test with a console at each server.
func onEach(t *testing.T, test func(t *testing.T, c *console, server *testkit.Server)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) { test(t, at(t, server), server) })
}

func (c *console) environ() (environ []string) {
	for name, text := range c.env {
		environ = append(environ, name+"="+text)
	}
	return environ
}

// run returns the exit code and what was printed.
func (c *console) run(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	var out, err check.Buffer // connections may still be dialled, and complain of it, when the command has ended
	code = run(c.t.Context(), args, strings.NewReader(c.in), &out, &err, c.environ())
	return code, out.String(), err.String()
}

// line splits a command line at its spaces; a · becomes one.
func line(text string) []string {
	args := strings.Split(text, " ")
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "·", " ")
	}
	return args
}

func (c *console) put(models string) {
	c.t.Helper()
	c.in = models
	c.do("model", "put", "-")
}

// policy stores policies, and returns the output.
func (c *console) policy(text string, flags ...string) string {
	c.t.Helper()
	c.in = text
	return c.do(append([]string{"policy", "put", "-"}, flags...)...)
}

// refuses runs command lines that must end with a code and these complaints.
func (c *console) refuses(code int, complaints map[string]string) {
	c.t.Helper()
	for text, want := range complaints {
		got, _, stderr := c.run(line(text)...)
		failIf(c.t, got != code || !strings.Contains(stderr, want),
			"refreshd %s: expected exit code %d and %q, found %d and %q", text, code, want, got, stderr)
	}
}

// do runs a command that must succeed and returns what it printed.
func (c *console) do(args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	stopIf(c.t, code != exitDone, "refreshd %s: expected exit code 0, found %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	return stdout
}

// fail runs a command that must end with a code and returns its complaint.
func (c *console) fail(want int, args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	stopIf(c.t, code != want, "refreshd %s: expected exit code %d, found %d\n%s%s", strings.Join(args, " "), want, code, stdout, stderr)
	return stderr
}

// object runs a command with -o json and returns the one object that it prints.
func (c *console) object(args ...string) map[string]any {
	c.t.Helper()
	var object map[string]any
	text := c.do(append(args, "-o", "json")...)
	stopIf(c.t, json.Unmarshal([]byte(text), &object) != nil, "refreshd %s: expected one JSON object, found %s", strings.Join(args, " "), text)
	return object
}

// objects reads the output of a command as one object a line.
func (c *console) objects(text string) (objects []map[string]any) {
	c.t.Helper()
	for line := range strings.Lines(text) {
		var object map[string]any
		err := json.Unmarshal([]byte(line), &object)
		stopIf(c.t, err != nil, "expected one object a line, found %q: %v", line, err)
		objects = append(objects, object)
	}
	return objects
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func expectContains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		failIf(t, !strings.Contains(text, want), "expected %q in\n%s", want, text)
	}
}

func TestAPasswordIsNeverShown(t *testing.T) {
	c := &console{t: t}
	for _, command := range [][]string{
		{"stats"}, {"model", "ls"}, {"dispatcher", "--for", "1ms"}, {"up", "--port", "7"}, {"stats", "--tls-server-name", "x"},
	} {
		c.env = map[string]string{"REDIS_URL": "redis://me:geheim@127.0.0.1:1/0"}
		_, stdout, stderr := c.run(append(command, "--log-level", "trace")...)
		text := stdout + stderr
		failIf(t, strings.Contains(text, "geheim") || text == "",
			"refreshd %s: expected words without the password, found %q", strings.Join(command, " "), text)
	}
	told := c.fail(exitUsage, "worker", "--http", "http://127.0.0.1:1", "--http-header", "X: y", "--http-header", "geheim")
	expectContains(t, told, `--http-header: expected one line "NAME: VALUE", found something else as number 2`)
	failIf(t, strings.Contains(told, "geheim"), "expected the value of a header unsaid, found %s", told)
	told = c.fail(exitUsage, "worker", "--fetch", t.TempDir(), "--fetch-header", "geheim")
	expectContains(t, told, `--fetch-header: expected one line "NAME: VALUE", found something else as number 1`)
	failIf(t, strings.Contains(told, "geheim"), "expected the value of a header unsaid, found %s", told)
}

func TestACancelledCommandEndsAndFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err check.Buffer
	c := at(t, testkit.Miniredis(t))
	code := run(ctx, []string{"stats"}, strings.NewReader(""), &out, &err, c.environ())
	failIf(t, code != exitFailed, "expected exit code 1, found %d", code)
	expectContains(t, err.String(), "context canceled")
}
