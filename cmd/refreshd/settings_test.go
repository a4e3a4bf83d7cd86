package main

import (
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/zones"
)

func TestAFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	config := file(t, "refreshd.yaml", "queue: from-file\n")
	server := testkit.Miniredis(t)
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"nothing":              {nil, nil, "bigtables"},
		"file":                 {nil, []string{"--config", config}, "from-file"},
		"file by environment":  {map[string]string{"REFRESHD_CONFIG": config}, nil, "from-file"},
		"environment":          {map[string]string{"REFRESHD_QUEUE": "from-env"}, []string{"--config", config}, "from-env"},
		"an empty variable":    {map[string]string{"REFRESHD_QUEUE": ""}, []string{"--config", config}, "from-file"},
		"flag":                 {map[string]string{"REFRESHD_QUEUE": "from-env"}, []string{"--config", config, "--queue", "from-flag"}, "from-flag"},
		"flag against a file":  {nil, []string{"--queue", "from-flag", "--config", config}, "from-flag"},
		"flag and environment": {map[string]string{"REFRESHD_CONFIG": "/no/such/file"}, []string{"--config", config}, "from-file"},
	} {
		c := at(t, server)
		maps.Copy(c.env, test.env)
		got := c.object(append([]string{"stats"}, test.args...)...)["queue"]
		failIf(t, got != test.want, "%s: expected queue %s, found %s", name, test.want, got)
	}
	c := nowhere(t)
	c.env["REFRESHD_REDIS"] = server.URL // which goes before the shared one
	// A setting of another command is no mistake.
	c.do("stats", "--config", file(t, "refreshd.yaml", "max-queued: 5\nfetch: /data\nlease: 1m # of the poller\n"))
	c.do("stats", "--config", file(t, "empty.yaml", ""))
	c.do("stats", "--config", file(t, "comment.yaml", "# nothing yet\n"))
}

func TestAWrongSettingIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"queue: a\nmax-queue: 5\n": `refreshd.yaml line 2: "max-queue": expected the name of a flag`, "max_queued: 5\n": `refreshd.yaml line 1: "max_queued": expected the name of a flag`,
		"config: other.yaml\n": `line 1: "config": expected the name of a flag`, "queue: a\nqueue: b\n": `line 2: "queue": expected each key once`,
		"queue: [a, b]\n": `line 1: "queue": expected one value`, "queue:\n": `line 1: "queue": expected one value`, "- queue\n": `line 1: expected lines such as "queue: bigtables"`,
		"queue: a\n---\nqueue: b\n": "expected one YAML document", "queue: a\n\tb\n": "refreshd.yaml: line 2: ", "log-level: warning\n": `--log-level: expected one of`,
		"\nmax-queued: many\n": `refreshd.yaml line 2: max-queued: expected a whole number, found "many"`,
		"tick: 5 parsecs\n":    `line 1: tick: expected a duration such as 500ms, 30s or 1h, found "5 parsecs"`,
	} {
		expectContains(t, (&console{t: t}).fail(exitUsage, "dispatcher", "--config", file(t, "refreshd.yaml", text)), want)
	}
	for variable, file := range map[string]string{"REDIS_URL": "", "REFRESHD_REDIS": "", "redis.yaml": file(t, "redis.yaml", "redis: redis://x\n")} {
		c := &console{t: t, env: map[string]string{variable: "redis://x", "REFRESHD_CONFIG": file}}
		expectContains(t, c.fail(exitUsage, "up", "--port", "1"), "--port: expected no ", variable+" beside it")
	}
	c := &console{t: t, env: map[string]string{"REFRESHD_MAX_QUEUED": "many"}}
	expectContains(t, c.fail(exitUsage, "dispatcher"), `REFRESHD_MAX_QUEUED: expected a whole number, found "many"`)
}

func TestAMistypedVariableIsToldWithTheNearestAndHarmsNothing(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.env["REFRESHD_MAX_QUEUE"], c.env["REFRESHD_COLOUR"] = "5", "red"
	code, _, stderr := c.run("stats")
	stopIf(t, code != exitDone, "expected exit code 0, found %d\n%s", code, stderr)
	expectContains(t, stderr, `"variable":"REFRESHD_MAX_QUEUE","nearest":"REFRESHD_MAX_QUEUED"`, `"variable":"REFRESHD_COLOUR","time"`)
}

func TestWhatKubernetesAndWorkersPutIntoAnEnvironmentIsNoMistake(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for _, name := range strings.Fields(`SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP PORT PORT_6379_TCP PORT_6379_TCP_ADDR PORT_6379_TCP_PROTO REDIS_SERVICE_HOST
		REDIS_PORT REDIS_PORT_6379_TCP UID ATTEMPT_UID ATTEMPT_NO DEADLINE_AT PLANNED_AT PAYLOAD_INPUT_URL LONG CONFIG MAX_QUEUED`) {
		c.env["REFRESHD_"+name] = ""
	}
	c.env["REFRESHD_PORT"] = "tcp://10.0.0.1:6379"
	for _, command := range [][]string{{"stats"}, {"up", "--redis", c.env["REDIS_URL"], "--for", "1ms", "--log-level", "warn"}} {
		code, _, stderr := c.run(command...)
		failIf(t, code != exitDone || strings.Contains(stderr, "REFRESHD_"), "refreshd %s: expected no word of it, found %d %s", command, code, stderr)
	}
}

func TestVersionTellsTheCommitAndWhetherItWasChangedWhereTheBuildKnows(t *testing.T) {
	const commit = "aab99e6f57bc3362dfa64e0f6005f96f1c21d416"
	stamped := func(version, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified},
		}}
	}
	none := zones.Origin{} // a build does not know which one the program will use
	const pseudo = "v0.0.0-20261123154324-aab99e6f57bc"
	for name, test := range map[string]struct {
		info    *debug.BuildInfo
		release string
		want    versionView
		line    string
	}{
		"a clone": {stamped(pseudo, "false"), "", versionView{pseudo, "go1.26.1", commit, false, none},
			pseudo + ", go1.26.1, commit aab99e6f57bc"},
		"a clone with changes": {stamped(pseudo+"+dirty", "true"), "", versionView{pseudo + "+dirty", "go1.26.1", commit, true, none},
			pseudo + "+dirty, go1.26.1, commit aab99e6f57bc, changed since"},
		"a release": {stamped(pseudo, "false"), "v1.2.3", versionView{"v1.2.3", "go1.26.1", commit, false, none}, "v1.2.3, go1.26.1, commit aab99e6f57bc"},
		"go run": {&debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: "(devel)"}}, "", versionView{"(devel)", "go1.26.1", "", false, none},
			"(devel), go1.26.1, commit unknown"},
		"no module": {&debug.BuildInfo{GoVersion: "go1.26.1"}, "", versionView{"(devel)", "go1.26.1", "", false, none}, "(devel), go1.26.1, commit unknown"},
	} {
		v := versionOf(test.info, test.release)
		failIf(t, v != test.want || v.line() != test.line, "%s: expected %+v, %s, found %+v, %s", name, test.want, test.line, v, v.line())
	}
}

func TestVersionSaysSoWhereTheBuildWasNotToldTheCommit(t *testing.T) {
	if readVersion().Commit != "" {
		t.Skip("this test was built with a commit")
	}
	c := &console{t: t}
	expectContains(t, c.do("version"), "commit    unknown: ")
}

// TestTheProgramBringsAuthoritiesOfTLSAlong runs itself where the system has none, as in an image from scratch.
func TestTheProgramBringsAuthoritiesOfTLSAlong(t *testing.T) {
	const again = "AUTHORITIES_OF_THE_PROGRAM"
	if os.Getenv(again) != "" {
		pool, err := x509.SystemCertPool()
		stopIf(t, err != nil || pool.Equal(x509.NewCertPool()), "expected authorities, found none: %v", err)
		return
	}
	alone := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	alone.Env = append(os.Environ(), again+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
	told, err := alone.CombinedOutput()
	failIf(t, err != nil, "%v\n%s", err, told)
}

func TestASchemeThatDoesNotFitTheServerIsNamed(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	ca.Issue(t, "server")
	server, port := testkit.TLS(t, ca)
	c := &console{t: t}
	expect := func(hint string, args ...string) {
		t.Helper()
		check.Eventually(t, hint, func() bool { // a server that takes 3 s to answer gets no hint
			code, _, stderr := c.run(args...)
			return code == exitFailed && strings.Contains(stderr, hint)
		})
	}
	expect("; the server does not speak TLS there: try redis://\n", "stats", "--redis", "rediss://"+server.Addr)
	expect("; the server speaks TLS there: try rediss://\n", "stats", "--redis", "redis://127.0.0.1:"+port)
	expect("; the server speaks TLS there: try rediss://\n", "dispatcher", "--strict", "--redis", "redis://127.0.0.1:"+port)
}

// offered are the values that a shell is offered for the last of some words.
func (c *console) offered(line ...string) string {
	c.t.Helper()
	text, _, _ := strings.Cut(c.do(append([]string{"__complete"}, line...)...), ":")
	return strings.Join(strings.Fields(text), " ")
}

func TestAShellIsOfferedTheValuesThatThereAre(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.put("{uid: tbl_1}\n---\n{uid: tbl_2}\n---\n{uid: banner}\n")
		c.policy("name: nightly\ntimeout: 5m\n")
		c.policy("name: weekly\ntimeout: 5m\n")
		for line, want := range map[string]string{
			"model ls --status ":           "disabled scheduled due queued processing running finished parked failing fresh never late stale broken",
			"acl --role ":                  strings.Join(roleNames(), " "),
			"model put x --format ":        "auto yaml json jsonl",
			"stats --log-level ":           "trace debug info warn error",
			"stats -o ":                    "table json",
			"simulate -o ":                 "table json svg",
			"model get tbl":                "tbl_1 tbl_2",
			"model get tbl_1 ":             "",
			"model run tbl_1 ":             "banner tbl_2",
			"explain ":                     "banner tbl_1 tbl_2",
			"history b":                    "banner",
			"policy get ":                  "default nightly weekly",
			"policy diff nightly ":         "default weekly",
			"simulate --policy ni":         "nightly",
			"model get --queue other tbl_": "",
		} {
			got := c.offered(strings.Split(line, " ")...)
			failIf(t, got != want, "%s: want %q, got %q", line, want, got)
		}
	})
}

func TestOfManyModelsAShellIsOfferedAScreenfulAndNothingWhenRedisIsAway(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for i := range mostOffered + 20 {
		c.in += fmt.Sprintf("{\"uid\":\"m%03d\"}\n", i)
	}
	c.do("model", "put", "-", "--format", "jsonl")
	got := strings.Fields(c.offered("model", "get", ""))
	failIf(t, len(got) != mostOffered, "want %d uids, got %d", mostOffered, len(got))
	if got := nowhere(t).do("__complete", "model", "get", ""); got != ":4\n" {
		t.Errorf("want nothing offered, got %q", got)
	}
}
