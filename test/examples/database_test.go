package examples

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// database is a server that docs/publish.md is run against.
type database struct {
	section string // of the page
	folder  string // into which .ci/servers unpacks it; "": the system's
	start   func(t *testing.T, folder string) (address string)
}

func (d database) name() string { return cmp.Or(d.folder, d.section) }

var theDatabases = []database{
	{"Postgres", "", func(t *testing.T, _ string) string { return startPostgres(t) }},
	{"Postgres", "postgresql-17", newerPostgres},
	{"Postgres", "postgresql-18", newerPostgres},
	{"MySQL", "", func(t *testing.T, _ string) string { return startMariaDB(t, mariadbProgram(t)) }},
	{"MySQL", "mariadb-11.8", func(t *testing.T, folder string) string { return startMariaDB(t, unpacked(t, folder, "mariadbd")) }},
}

func newerPostgres(t *testing.T, folder string) string {
	return startPostgresOf(t, unpacked(t, folder, "initdb"), unpacked(t, folder, "postgres"))
}

// onEachDatabase runs a test on the Postgres of the system, and with the long tests on each other server that is there.
func onEachDatabase(t *testing.T, run func(t *testing.T, d database, port string)) {
	t.Parallel()
	for _, d := range theDatabases[:long.Or(1, len(theDatabases))] {
		t.Run(d.name(), func(t *testing.T) {
			t.Parallel()
			run(t, d, portOf(d.start(t, d.folder)))
		})
	}
}

// serversFolder is where .ci/servers unpacks.
func serversFolder(t *testing.T) string {
	t.Helper()
	return check.Got(filepath.Abs(cmp.Or(os.Getenv("REFRESHD_SERVERS"), filepath.Join(root, "bin", "servers"))))(t)
}

// unpacked finds a program that .ci/servers has unpacked. It is no failure when that was not to be had, or when the user who runs Postgres may not go there.
func unpacked(t *testing.T, folder, program string) string {
	t.Helper()
	path := filepath.Join(serversFolder(t), folder, program)
	if err := asUser(postgresCredential(t), path, "--version").Run(); err != nil {
		t.Skipf("%s: %v: run .ci/servers databases", path, err)
	}
	return path
}

// statements are the statements of a section of docs/publish.md.
type statements struct {
	Table   string   `json:"table"`
	Win     []string `json:"win"`     // from the beginning of the transaction to the one whose rows count
	Publish []string `json:"publish"` // up to COMMIT
	Again   []string `json:"again"`   // the errors after which the transaction is run again
}

var codes = regexp.MustCompile("`([0-9A-Z]{4,5})`")

func statementsOf(t *testing.T, section string) (s statements) {
	t.Helper()
	page := string(check.Got(os.ReadFile(filepath.Join(root, "docs", "publish.md")))(t))
	_, text, _ := strings.Cut(page, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, block, _ := strings.Cut(text, "```sql\n")
	block, behind, found := strings.Cut(block, "```\n")
	_, rule, ruled := strings.Cut(behind, "**If any statement")
	stopIf(t, !found || !ruled, "docs/publish.md has no statements for %s, or does not say what to run again", section)
	rule, _, _ = strings.Cut(rule, "**")
	for _, code := range codes.FindAllStringSubmatch(rule, -1) {
		s.Again = append(s.Again, code[1])
	}
	win, publish, _ := strings.Cut(block, "\n-- ")
	_, publish, _ = strings.Cut(publish, "\n") // the rest of the comment
	all := split(win)
	s.Table, s.Win, s.Publish = all[0], all[1:], split(publish)
	return s
}

func split(block string) (list []string) {
	for statement := range strings.SplitSeq(block, ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, strings.TrimSuffix(statement, ";"))
		}
	}
	return list
}

func scriptOf(t *testing.T, file string) string {
	t.Helper()
	return strings.TrimPrefix(string(check.Got(os.ReadFile(filepath.Join("testdata", file)))(t)), "<?php\n")
}

var racedLevels = map[string][]string{
	"Postgres": {"REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"},
	"MySQL":    {"REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED", "READ UNCOMMITTED"},
}

// TestTheHigherFenceIsPublishedInEachDatabaseAtEachIsolation lets two attempts meet, one waiting for the other, by the statements and rules of
// docs/publish.md, and by publish of the client for Python.
func TestTheHigherFenceIsPublishedInEachDatabaseAtEachIsolation(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database, port string) {
		t.Run("page", func(t *testing.T) { race(t, d, port, false) })
		t.Run("client", func(t *testing.T) { long.Only(t); race(t, d, port, true) })
	})
}

func race(t *testing.T, d database, port string, client bool) {
	task := struct {
		statements
		Database string   `json:"database"`
		Port     int      `json:"port"`
		Levels   []string `json:"levels"`
		Rounds   int      `json:"rounds"`
		Client   bool     `json:"client"`
		Key      string   `json:"key"` // the column
	}{statementsOf(t, d.section), "postgres", check.Got(strconv.Atoi(port))(t), racedLevels[d.section], long.Or(4, 300), client, "key"}
	if client {
		task.Rounds = 60
	}
	if d.section == "MySQL" {
		task.Database, task.Key = "mariadb", "name"
	}
	for _, line := range program(t, "python with databases", scriptOf(t, "race.py"), string(check.Got(json.Marshal(task))(t))) {
		var told struct {
			Level   string
			Wrong   []string
			Aborted int
		}
		must(t, json.Unmarshal([]byte(line), &told))
		failIf(t, len(told.Wrong) > 0, "%s %s: wrong in %d of %d rounds:\n%s", d.name(), told.Level, len(told.Wrong), task.Rounds, strings.Join(told.Wrong, "\n"))
		t.Logf("%s %s: %d rounds, %d transactions run again", d.name(), told.Level, task.Rounds, told.Aborted)
		failIf(t, !client && endsOneOfTwo(d, told.Level) && told.Aborted < task.Rounds/2, "%s %s: %d of %d rounds met", d.name(), told.Level, told.Aborted, task.Rounds)
	}
}

// endsOneOfTwo reports whether a database ends a transaction that has read before it waited for the fence.
func endsOneOfTwo(d database, level string) bool {
	return (level == "REPEATABLE READ" || level == "SERIALIZABLE") && (d.section == "Postgres" || d.folder != "" && level == "REPEATABLE READ")
}
