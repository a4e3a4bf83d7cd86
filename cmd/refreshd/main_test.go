package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) {
	setLogGlobals()
	store.LogTo(logRedis)
	testkit.Main(m)
}

// console runs the program as a shell would.
type console struct {
	t   *testing.T
	env map[string]string
	in  string
}

// at returns a console whose REDIS_URL leads to the server.
func at(t *testing.T, server *testkit.Server) *console {
	return &console{t: t, env: map[string]string{"REDIS_URL": server.URL}}
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
	var out, err testkit.Buffer // connections may still be dialled, and complain of it, when the command has ended
	code = run(c.t.Context(), args, strings.NewReader(c.in), &out, &err, c.environ())
	return code, out.String(), err.String()
}

// do runs a command that must succeed and returns what it printed.
func (c *console) do(args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	if code != exitDone {
		c.t.Fatalf("refreshd %s: expected exit code 0, found %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// fail runs a command that must end with a code and returns its complaint.
func (c *console) fail(want int, args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	if code != want {
		c.t.Fatalf("refreshd %s: expected exit code %d, found %d\n%s%s", strings.Join(args, " "), want, code, stdout, stderr)
	}
	return stderr
}

// object runs a command with -o json and returns the one object that it prints.
func (c *console) object(args ...string) map[string]any {
	c.t.Helper()
	var object map[string]any
	if text := c.do(append(args, "-o", "json")...); json.Unmarshal([]byte(text), &object) != nil {
		c.t.Fatalf("refreshd %s: expected one JSON object, found %s", strings.Join(args, " "), text)
	}
	return object
}

// objects reads what a command printed as one object a line.
func (c *console) objects(text string) (objects []map[string]any) {
	c.t.Helper()
	for line := range strings.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			c.t.Fatalf("expected one object a line, found %q: %v", line, err)
		}
		objects = append(objects, object)
	}
	return objects
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func expectContains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
}

func TestExitCodeTellsWrongUsageFromFailure(t *testing.T) {
	c := &console{t: t, env: map[string]string{"REDIS_URL": "redis://127.0.0.1:1"}} // what is wrong is told without asking Redis
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":                       {[]string{"--help"}, exitDone, ""},
		"version":                    {[]string{"version"}, exitDone, ""},
		"an unknown command":         {[]string{"refresh"}, exitUsage, `unknown command "refresh"`},
		"an unknown model command":   {[]string{"model", "copy"}, exitUsage, `model: expected one of put, get, ls, rm, run, enable, disable, history, export, import, found "copy"`},
		"no model command":           {[]string{"model"}, exitUsage, "found nothing"},
		"--version":                  {[]string{"--version"}, exitDone, ""},
		"an unknown flag":            {[]string{"stats", "--fast"}, exitUsage, "unknown flag: --fast\n"},
		"a mistyped flag":            {[]string{"dispatcher", "--max-queue", "5"}, exitUsage, "unknown flag: --max-queue; nearest: --max-queued"},
		"a mistyped global flag":     {[]string{"model", "ls", "--quue", "x"}, exitUsage, "unknown flag: --quue; nearest: --queue"},
		"no room":                    {[]string{"dispatcher", "--max-queued", "0"}, exitUsage, `--max-queued: expected at least 1, found "0"`},
		"an empty batch":             {[]string{"poller", "--batch", "0"}, exitUsage, `--batch: expected 1 to 1000, of a poller 2 to 1000, found "0"`},
		"no attempt at a time":       {[]string{"worker", "--http", "http://x", "--concurrency", "0"}, exitUsage, `--concurrency: expected 1 to 10000, found "0"`},
		"messages of no size":        {[]string{"stats", "--message-cap", "0"}, exitUsage, `--message-cap: expected 4096 to 67108864, found "0"`},
		"a flag with a wrong value":  {[]string{"dispatcher", "--max-queued", "many"}, exitUsage, `--max-queued: expected a whole number, found "many"`},
		"a duration without a unit":  {[]string{"dispatcher", "--for", "soon"}, exitUsage, `--for: expected a duration such as 500ms, 30s or 1h, found "soon"`},
		"a value out of range":       {[]string{"poller", "--batch", "5000"}, exitUsage, "batch: expected 2 to 1000, found 5000"},
		"no uid":                     {[]string{"model", "get"}, exitUsage, "expected the uid of a model, found none"},
		"too many uids":              {[]string{"model", "get", "a", "b"}, exitUsage, "expected the uid of one model, found 2"},
		"no file":                    {[]string{"model", "put"}, exitUsage, "expected one file, or - for standard input, found 0"},
		"no uid to remove":           {[]string{"model", "rm"}, exitUsage, "expected the uid of a model, found none"},
		"a uid that cannot be":       {[]string{"model", "run", "a b"}, exitUsage, "uid: expected 1-200 letters"},
		"an unknown format":          {[]string{"stats", "-o", "xml"}, exitUsage, `--output: expected one of table, json, found "xml"`},
		"an unknown level":           {[]string{"stats", "--log-level", "warning"}, exitUsage, `--log-level: expected one of trace, debug, info, warn, error, found "warning"`},
		"an unknown status":          {[]string{"model", "ls", "--status", "busy"}, exitUsage, `--status: expected one of`},
		"an unknown file format":     {[]string{"model", "put", "-", "--format", "xml"}, exitUsage, `--format: expected one of auto, yaml, json, jsonl, found "xml"`},
		"an address without sense":   {[]string{"stats", "--redis", "http://x"}, exitUsage, "http"},
		"a queue without sense":      {[]string{"stats", "--queue", "a b"}, exitUsage, "queue: expected 1-64 letters"},
		"a worker without work":      {[]string{"worker"}, exitUsage, "expected one of --exec PROGRAM, --http URL and --fetch DIR, found none"},
		"a worker with two kinds":    {[]string{"worker", "--http", "http://x", "--fetch", "x"}, exitUsage, "found --http and --fetch"},
		"arguments without program":  {[]string{"worker", "--fetch", "x", "y"}, exitUsage, "expected arguments only with --exec, found y"},
		"a port beside an address":   {[]string{"up", "--redis", "redis://x", "--port", "1"}, exitUsage, "--port: expected no --redis beside it"},
		"a file that is not there":   {[]string{"stats", "--config", "/no/such/file"}, exitUsage, "--config: open /no/such/file"},
		"nothing to measure":         {[]string{"bench", "--models", "0"}, exitUsage, "--models: expected at least 1, found 0"},
		"no worker to try":           {[]string{"conformance"}, exitUsage, "expected the command of a worker, found nothing"},
		"a health of no web":         {[]string{"health", "ftp://x"}, exitUsage, "health: expected a URL such as"},
		"a dashboard of no web":      {[]string{"notifier", "--routes", "x", "--dashboard-url", "javascript:alert(1)"}, exitUsage, "--dashboard-url: expected a URL such as"},
		"a collector of no web":      {[]string{"up", "--traces", "ftp://host"}, exitUsage, "traces: expected the URL of a collector"},
		"a dashboard for all":        {[]string{"dashboard", "--listen", "0.0.0.0:0"}, exitUsage, "listen: expected an address of loopback, or a token beside it"},
		"two tokens":                 {[]string{"dashboard", "--token", "sixteen bytes or more", "--token-file", "x"}, exitUsage, "--token: expected it or --token-file, found both"},
		"no directory":               {[]string{"apply", "--owner", "ann"}, exitUsage, "--filename: expected a directory"},
		"no owner":                   {[]string{"apply", "-f", "x"}, exitUsage, "--owner: expected 1-60 letters"},
		"too much to delete":         {[]string{"apply", "-f", "x", "--owner", "ann", "--max-delete", "101%"}, exitUsage, `--max-delete: expected a number from 0, or a`},
		"freshness at no time":       {[]string{"freshness", "--at", "yesterday"}, exitUsage, "--at: expected an RFC 3339 time"},
		"freshness of a past status": {[]string{"freshness", "--at", "2026-01-01T00:00:00Z", "-l", "status=late"}, exitUsage, "selector: expected no status with --at"},
		"a forecast too short":       {[]string{"forecast", "--for", "59s"}, exitUsage, "--for: expected 1m to 31d"},
		"a forecast of no drain":     {[]string{"forecast", "--drain", "0/m"}, exitUsage, "--drain: expected a rate such as 600/m or 10/s"},
		"a forecast by nothing":      {[]string{"forecast", "--by", "size"}, exitUsage, "--by: expected host"},
		"a forecast of no spread":    {[]string{"forecast", "--spread", "x"}, exitUsage, "--spread: expected a duration"},
		"level too far":              {[]string{"level", "--within", "25h"}, exitUsage, "--within: expected 2s to 24h"},
		"level both ways":            {[]string{"level", "--plan", "--apply"}, exitUsage, "expected one of --plan, --apply, --clear"},
		"failures by nothing":        {[]string{"failures", "--by", "size"}, exitUsage, "--by: expected error, policy, host, label:NAME or a key"},
		"failures of the past":       {[]string{"failures", "--past", "--by", "host"}, exitUsage, "--past: expected neither --by nor -l"},
		"an order of none":           {[]string{"model", "ls", "--sort", "size"}, exitUsage, "--sort: expected one of due, failing"},
		"a hold of no name":          {[]string{"release", ""}, exitUsage, "id: expected 1-200 letters"},
		"a redis that does not hear": {[]string{"stats", "--redis", "redis://127.0.0.1:1"}, exitFailed, "redis://127.0.0.1:1: read the settings of the queue: "},
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t = t
			code, _, stderr := c.run(test.args...)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("expected code %d and %q, found %d and %q", test.code, test.want, code, stderr)
			}
		})
	}
}

func TestAPasswordIsNeverShown(t *testing.T) {
	c := &console{t: t}
	for _, command := range [][]string{
		{"stats"}, {"model", "ls"}, {"dispatcher", "--for", "1ms"}, {"up", "--port", "7"}, {"stats", "--tls-server-name", "x"},
	} {
		c.env = map[string]string{"REDIS_URL": "redis://me:geheim@127.0.0.1:1/0"}
		_, stdout, stderr := c.run(append(command, "--log-level", "trace")...)
		if text := stdout + stderr; strings.Contains(text, "geheim") || text == "" {
			t.Errorf("refreshd %s: expected words without the password, found %q", strings.Join(command, " "), text)
		}
	}
}

func TestACancelledCommandEndsAndFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err testkit.Buffer
	c := at(t, testkit.Miniredis(t))
	if code := run(ctx, []string{"stats"}, strings.NewReader(""), &out, &err, c.environ()); code != exitFailed {
		t.Errorf("expected exit code 1, found %d", code)
	}
	expectContains(t, err.String(), "context canceled")
}
