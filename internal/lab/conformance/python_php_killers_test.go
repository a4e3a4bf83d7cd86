package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// open lets a handler go on that waits for a file.
func open(t *testing.T, gate string) {
	t.Helper()
	must(t, os.WriteFile(gate, nil, 0o600))
}

// waiting is a worker in Python whose handler waits until the file of its model is there.
const waiting = `import os, refreshd
def refresh(a):
    while not os.path.exists(os.environ["GATES"] + a.uid): a.sleep(0.02)
refreshd.Worker(refresh, concurrency=4, grace=600).run()`

// pushAll gives several attempts to the worker at once: uid -> more of the entry.
func pushAll(t *testing.T, client redis.UniversalClient, entries ...[2]string) {
	t.Helper()
	var raw []any
	for _, entry := range entries {
		uid := entry[0]
		must(t, client.HSet(t.Context(), "q:model:"+uid, "attempt_uid", "of-"+uid).Err())
		raw = append(raw, `{"big_table_uid":"`+uid+`","refresh_attempt_uid":"of-`+uid+`"`+entry[1]+`}`)
	}
	must(t, client.RPush(t.Context(), "q-input", raw...).Err())
}

// nothingMore fails if the worker says something during two heartbeats, and returns the length of the input.
func nothingMore(t *testing.T, client redis.UniversalClient) int64 {
	t.Helper()
	name := owner(t, client)
	beat := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
	begun := beat()
	check.Eventually(t, "heartbeats while an attempt waits", func() bool { return beat() > begun+1500 })
	said := check.Got(client.LRange(t.Context(), "q-output", 0, -1).Result())(t)
	failIf(t, len(said) > 0, "expected the worker to begin nothing, found %q", said)
	return client.LLen(t.Context(), "q-input").Val()
}

func TestAPythonWorkerBeginsAloneWhatWorkersHaveDiedOver(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	client, gates := s.Client(t), t.TempDir()+"/"
	worker := startHandler(t, "python", waiting, s.URL, "REFRESHD_QUEUE=q", "GATES="+gates)
	push(t, client, "a", "")
	check.Equal(t, heard(t, client), "started a")
	pushAll(t, client, [2]string{"k", `,"deaths":2`}, [2]string{"b", ""}, [2]string{"l", `,"deaths":3`}, [2]string{"c", ""})
	check.Equal(t, heard(t, client), "started b") // of the same take
	check.Equal(t, nothingMore(t, client), int64(1))
	for _, step := range []struct {
		end, begun string
		left       int64
	}{{"a", "", 1}, {"b", "k", 1}, {"k", "l", 1}, {"l", "c", 0}} {
		open(t, gates+step.end)
		check.Equal(t, heard(t, client), "success "+step.end)
		if step.begun != "" {
			check.Equal(t, heard(t, client), "started "+step.begun)
		}
		check.Equal(t, nothingMore(t, client), step.left)
	}
	open(t, gates+"c")
	check.Equal(t, heard(t, client), "success c")
	check.Equal(t, worker.Stop(), 0)
}

func TestAPythonWorkerHandsBackWhatItWouldHaveBegunAlone(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	client, gates := s.Client(t), t.TempDir()+"/"
	worker := startHandler(t, "python", waiting, s.URL, "REFRESHD_QUEUE=q", "GATES="+gates)
	push(t, client, "a", "")
	check.Equal(t, heard(t, client), "started a")
	pushAll(t, client, [2]string{"k", `,"deaths":2`}, [2]string{"l", `,"deaths":2`})
	check.Equal(t, nothingMore(t, client), int64(0))
	worker.Ask()
	said := map[string]bool{heard(t, client): true, heard(t, client): true} // at once: the grace is for the work in hand
	check.Equal(t, said, map[string]bool{"interrupted k": true, "interrupted l": true})
	open(t, gates+"a")
	check.Equal(t, heard(t, client), "success a")
	check.Equal(t, worker.Wait(), 0)
	left := check.Got(client.Keys(t.Context(), "q:taken:*").Result())(t)
	failIf(t, len(left) > 0, "expected no entry to be left, found %q", left)
}

func TestAnAttemptKnowsHowManyWorkersHaveDiedOverIt(t *testing.T) {
	inBoth(t, map[string]string{
		"python": `import refreshd
refreshd.Worker(lambda a: a.status("%d %s" % (a.deaths, a.payload.get("deaths")))).run()`,
		"php": `require getenv("FILE");
(new Refreshd\Worker(fn ($a) => $a->status($a->deaths . " " . ($a->payload["deaths"] ?? "None"))))->run();`,
	}, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client := s.Client(t)
		startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q")
		for _, entry := range [][3]string{{"a", "", "0 None"}, {"b", `,"deaths":2`, "2 None"}, {"c", `,"deaths":"of a payload"`, "0 of a payload"},
			{"d", `,"deaths":7,"attempt_no":1`, "0 7"}, {"e", `,"deaths":7,"attempt_no":1,"fence":5,"due_at":"2026-01-01T00:00:00.000Z","for":"retry"`, "7 None"}} {
			push(t, client, entry[0], entry[1])
			check.Equal(t, await(t, client, "user_friendly_status", entry[0]).Status, entry[2])
			await(t, client, "success", entry[0])
		}
	})
}

// TestAClientSaysAtItsStartThatItCannotUseALibrary expects one sentence of each.
func TestAClientSaysAtItsStartThatItCannotUseALibrary(t *testing.T) {
	long.Only(t)
	old, other := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(old+"/redis", 0o700))
	must(t, os.WriteFile(old+"/redis/__init__.py", []byte(`__version__ = "3.5.3"`), 0o600))
	must(t, os.WriteFile(other+"/redis.py", nil, 0o600))
	for want, program := range map[string][3]string{
		"ImportError: refreshd: expected redis-py 4 or newer (pip install 'redis>=4'), found 3.5.3":            {"python", old, "import refreshd"},
		"ImportError: refreshd: expected redis-py 4 or newer (pip install 'redis>=4'), found <module 'redis' ": {"python", other, "import refreshd"},
		"ImportError: refreshd: expected redis-py 4 or newer (pip install 'redis>=4'), found None":             {"python", "", "import sys; sys.modules['redis'] = None; import refreshd"},
		"TypeError: redis: expected a URL or a redis.Redis, found redis.asyncio.client.Redis":                  {"python", "", "import redis.asyncio, refreshd; refreshd.Worker(print, redis=redis.asyncio.Redis())"},
		"TypeError: redis: expected a URL or a redis.Redis, found builtins.object":                             {"python", "", "import refreshd; refreshd.Client(redis=object())"},
		"refreshd: expected the extension phpredis 5.3 or newer, found none":                                   {"php", "", `require getenv("FILE"); new Refreshd\Worker(fn () => null);`},
		"Argument #2 ($redis) must be of type ?string, stdClass given":                                         {"php", "-", `require getenv("FILE"); new Refreshd\Worker(fn () => null, new stdClass());`},
	} {
		interpreter, environ := testkit.Interpreter(t, program[0])
		file := fromRoot(t, clientFiles[program[0]])
		args := []string{"-c", program[2]}
		if program[0] == "php" {
			args = []string{"-d", "display_errors=1", "-r", program[2]}
			if program[1] == "" {
				args = append([]string{"-n"}, args...) // no extension
			}
		}
		command := exec.Command(interpreter, args...)
		command.Env = append(environ, "FILE="+file, "PYTHONPATH="+program[1]+":"+filepath.Dir(file), "PYTHONDONTWRITEBYTECODE=1")
		output, err := command.CombinedOutput()
		failIf(t, err == nil || !strings.Contains(string(output), want), "expected %q, found %v\n%s", want, err, output)
	}
}
