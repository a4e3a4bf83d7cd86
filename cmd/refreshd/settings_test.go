package main

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
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
		t.Run(name, func(t *testing.T) {
			c := at(t, server)
			for key, value := range test.env {
				c.env[key] = value
			}
			if got := c.object(append([]string{"stats"}, test.args...)...)["queue"]; got != test.want {
				t.Errorf("expected queue %s, found %s", test.want, got)
			}
		})
	}
}

func TestRefreshdsOwnVariableGoesBeforeTheSharedOne(t *testing.T) {
	server := testkit.Miniredis(t)
	c := &console{t: t, env: map[string]string{"REDIS_URL": "redis://127.0.0.1:1", "REFRESHD_REDIS": server.URL}}
	c.do("stats")
}

func TestAWrongSettingIsNamedWithItsPlace(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		args []string
		want string
	}{
		"an unknown key":    {"queue: a\nmax-queue: 5\n", []string{"stats"}, `refreshd.yaml line 2: "max-queue": expected the name of a flag`},
		"underscores":       {"max_queued: 5\n", []string{"stats"}, `refreshd.yaml line 1: "max_queued": expected the name of a flag`},
		"a file in a file":  {"config: other.yaml\n", []string{"stats"}, `line 1: "config": expected the name of a flag`},
		"a key twice":       {"queue: a\nqueue: b\n", []string{"stats"}, `line 2: "queue": expected each key once`},
		"a list":            {"queue: [a, b]\n", []string{"stats"}, `line 1: "queue": expected one value`},
		"nothing":           {"queue:\n", []string{"stats"}, `line 1: "queue": expected one value`},
		"no mapping":        {"- queue\n", []string{"stats"}, `line 1: expected lines such as "queue: bigtables"`},
		"two documents":     {"queue: a\n---\nqueue: b\n", []string{"stats"}, "expected one YAML document"},
		"no YAML":           {"queue: a\n\tb\n", []string{"stats"}, "refreshd.yaml: line 2: "},
		"no number":         {"\nmax-queued: many\n", []string{"dispatcher"}, `refreshd.yaml line 2: max-queued: expected a whole number, found "many"`},
		"no duration":       {"tick: 5 parsecs\n", []string{"dispatcher"}, `line 1: tick: expected a duration such as 500ms, 30s or 1h, found "5 parsecs"`},
		"a level of others": {"log-level: warning\n", []string{"stats"}, `--log-level: expected one of`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &console{t: t}
			stderr := c.fail(exitUsage, append(test.args, "--config", file(t, "refreshd.yaml", test.text))...)
			expectContains(t, stderr, test.want)
		})
	}
	c := &console{t: t, env: map[string]string{"REFRESHD_MAX_QUEUED": "many"}}
	expectContains(t, c.fail(exitUsage, "dispatcher"), `REFRESHD_MAX_QUEUED: expected a whole number, found "many"`)
}

func TestASettingOfAnotherCommandIsNoMistake(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.do("stats", "--config", file(t, "refreshd.yaml", "max-queued: 5\nfetch: /data\nlease: 1m # of the poller\n"))
	c.do("stats", "--config", file(t, "empty.yaml", ""))
	c.do("stats", "--config", file(t, "comment.yaml", "# nothing yet\n"))
}
