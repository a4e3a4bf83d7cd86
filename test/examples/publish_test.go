package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const (
	fencesTable = "CREATE TABLE refreshd_fences (key text PRIMARY KEY, fence bigint NOT NULL);"

	// entryOf are an entry of an attempt, and one with an older payload that uses a name of the fence.
	fencedEntry = `{"big_table_uid":"m1","refresh_attempt_uid":"a1","n":1,"attempt_no":1,"deadline_at":"2026-11-21T07:00:00.000Z","fence":1795240800412,"due_at":"2026-11-21T06:00:00.000Z","for":"planned"}`
	olderEntry  = `{"big_table_uid":"m1","refresh_attempt_uid":"a1","for":"adults","attempt_no":1,"deadline_at":"2026-11-21T07:00:00.000Z"}`
)

// program runs a script of a language with the client of refreshd, and returns the lines that it prints.
func program(t *testing.T, language, script string, args ...string) []string {
	t.Helper()
	interpreter, environ := testkit.Interpreter(t, strings.Replace(language, "node with databases", "node", 1))
	clients := check.Got(filepath.Abs(filepath.Join(root, "clients")))(t)
	flag := "-c"
	switch {
	case strings.HasPrefix(language, "node"):
		flag = "-e"
	case strings.HasPrefix(language, "php"):
		flag = "-r"
	}
	if language == "node with databases" { // Debian has no mysql2
		drivers := filepath.Join(serversFolder(t), "drivers", "node_modules")
		if _, err := os.Stat(drivers); err != nil {
			t.Skipf("%v: run .ci/servers databases", err)
		}
		environ = append(environ, "NODE_PATH="+drivers+":/usr/share/nodejs")
	}
	command := exec.Command(interpreter, append([]string{flag, script}, args...)...)
	command.Env = append(environ, "PYTHONPATH="+filepath.Join(clients, "python"), "CLIENTS="+clients, "PYTHONDONTWRITEBYTECODE=1")
	output, err := command.CombinedOutput()
	stopIf(t, err != nil, "%s: %v\n%s", language, err, output)
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

// TestThePythonClientWinsAFenceOncePerFenceInARealPostgres also with two transactions at a time, and with one that is rolled back.
func TestThePythonClientWinsAFenceOncePerFenceInARealPostgres(t *testing.T) {
	t.Parallel()
	address := startPostgres(t)
	got := program(t, "python with psycopg", `
import sys, threading, psycopg, refreshd
connect = lambda: psycopg.connect(host="127.0.0.1", port=sys.argv[1], user="postgres")
a, b = connect(), connect()
a.execute("`+fencesTable+`"); a.commit()
for fence in (5, 5, 4, 6):
    print(refreshd.wins(a, "m1", fence)); a.commit()
print(refreshd.wins(a, "m1", 7)); a.rollback()
print(refreshd.wins(a, "m1", 7))
later = []
waiting = threading.Thread(target=lambda: later.append(refreshd.wins(b, "m1", 6)))
waiting.start(); a.commit(); waiting.join(); b.rollback()
print(later[0], refreshd.wins(b, "m2", 1))
for bad in (lambda: refreshd.wins(a, "m1", None), lambda: refreshd.wins(a, "m1", 9, "x; DROP TABLE refreshd_fences")):
    try: bad(); print("no error")
    except ValueError: print("refused")
`, address[len("127.0.0.1:"):])
	check.Equal(t, []string{"True", "False", "False", "True", "True", "True", "False True", "refused", "refused"}, got)
}

// TestTheSQLOfTheOtherClientsWinsAFenceOncePerFence hands Postgres what they ask for by psql, as there is no driver for them everywhere.
func TestTheSQLOfTheOtherClientsWinsAFenceOncePerFence(t *testing.T) {
	long.Only(t)
	t.Parallel()
	testkit.RequireProgram(t, "psql", "postgresql-client")
	s := startSession(t, startPostgres(t))
	s.query(fencesTable)
	for language, script := range map[string]string{
		"node": `const { wins } = require(process.env.CLIENTS + '/node/refreshd.js');
			wins({ async query(text, values) { console.log(JSON.stringify([text, ...values])); return { rowCount: 1 }; } }, 'node', 5).then((won) => console.log(won));`,
		"php": `require getenv('CLIENTS') . '/php/src/Refreshd.php';
			class Asked extends PDOStatement { public string $text; function execute(?array $values = null): bool { echo json_encode([$this->text, ...$values]), "\n"; return true; } function rowCount(): int { return 1; } }
			class Records extends PDO { function __construct() {} function getAttribute(int $name): mixed { return 'pgsql'; } function prepare(string $text, array $options = []): PDOStatement|false { $asked = new Asked(); $asked->text = $text; return $asked; } }
			echo json_encode(Refreshd\wins(new Records(), 'php', 5));`,
	} {
		got := program(t, language, script)
		var asked []any
		must(t, json.Unmarshal([]byte(got[0]), &asked))
		failIf(t, len(got) != 2 || got[1] != "true" || len(asked) != 3 || asked[1] != language || fmt.Sprint(asked[2]) != "5", "%s asks %q", language, got)
		text := strings.Replace(strings.Replace(asked[0].(string), "?", "$1", 1), "?", "$2", 1)
		s.query("PREPARE " + language + " (text, bigint) AS " + text + " RETURNING 'won';")
		for _, test := range []struct {
			fence int
			want  string
		}{{5, "won"}, {5, ""}, {4, ""}, {6, "won"}} {
			found := strings.Join(s.query(fmt.Sprintf("EXECUTE %s ('m1-%[1]s', %d);", language, test.fence)), "")
			failIf(t, found != test.want, "%s: fence %d: %q, want %q", language, test.fence, found, test.want)
		}
	}
}

func TestAFileIsPublishedByTheHighestFenceWhicheverClientWritesIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feed.csv")
	python := `import sys, refreshd
print(str(refreshd.publish_file(sys.argv[1], sys.argv[2].encode(), int(sys.argv[3]))).lower())`
	php := `require getenv('CLIENTS') . '/php/src/Refreshd.php';
		echo json_encode(Refreshd\publishFile($argv[1], $argv[2], (int) $argv[3]));`
	for _, step := range []struct{ language, script, fence, won, holds string }{
		{"python", python, "1795240800412", "true", "python 1795240800412"},
		{"php", php, "1795240800411", "false", "python 1795240800412"},
		{"php", php, "1795240800412", "false", "python 1795240800412"},
		{"php", php, "1795240800413", "true", "php 1795240800413"},
		{"python", python, "1795240800413", "false", "php 1795240800413"},
		{"python", python, "11795240800413", "true", "python 11795240800413"},
	} {
		won := program(t, step.language, step.script, path, step.language+" "+step.fence, step.fence)
		text := check.Got(os.ReadFile(path))(t)
		failIf(t, won[0] != step.won || string(text) != step.holds, "%s with %s: %q, and the file holds %q; want %s and %q", step.language, step.fence, won, text, step.won, step.holds)
	}
	files := check.Got(os.ReadDir(filepath.Dir(path)))(t)
	failIf(t, len(files) != 2, "beside the file and its fence stand %v", files)
}

func TestEachClientTellsFenceTimeAndPurposeAndLeavesOlderPayloadsAlone(t *testing.T) {
	t.Parallel()
	for language, script := range map[string]string{
		"python": `import json, sys, types, refreshd
names = types.SimpleNamespace(model="big_table_uid", attempt="refresh_attempt_uid", nested=False)
for text in sys.argv[1:]:
    a = refreshd.Attempt(json.loads(text), "q-input", names)
    print(json.dumps([a.fence, a.due_at and a.due_at.strftime("%H:%M"), a.purpose, a.payload], separators=(",", ":")))`,
		"node": `const { Attempt } = require(process.env.CLIENTS + '/node/refreshd.js');
			const names = { model: 'big_table_uid', attempt: 'refresh_attempt_uid', nested: false };
			for (const text of process.argv.slice(1)) { const a = new Attempt(text, 'q-input', names);
				console.log(JSON.stringify([a.fence, a.dueAt && a.dueAt.toISOString().slice(11, 16), a.purpose, a.payload])); }`,
		"php": `require getenv('CLIENTS') . '/php/src/Refreshd.php';
			$bare = fn (string $class) => (new ReflectionClass("Refreshd\\$class"))->newInstanceWithoutConstructor();
			$names = $bare('Names'); (function () { [$this->model, $this->attempt, $this->nested] = ['big_table_uid', 'refresh_attempt_uid', false]; })->call($names);
			foreach (array_slice($argv, 1) as $text) { $a = new Refreshd\Attempt($text, 'q', null, $names, $bare('Worker'));
				echo json_encode([$a->fence, $a->dueAt?->format('H:i'), $a->purpose, $a->payload]), "\n"; }`,
	} {
		got := program(t, language, script, fencedEntry, olderEntry)
		check.Equal(t, []string{`[1795240800412,"06:00","planned",{"n":1}]`, `[null,null,null,{"for":"adults"}]`}, got)
	}
}
