package examples

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// raise makes a server report an error: on Postgres a SQLSTATE, on MariaDB a number.
func raise(section, code string) string {
	if section == "Postgres" {
		return fmt.Sprintf("DO $$ BEGIN RAISE SQLSTATE '%s'; END $$", code)
	}
	state := "HY000"
	if code == "1213" {
		state = "40001"
	}
	return fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %s", state, code)
}

// TestPublishRunsAgainWhatADatabaseEndsForAnother lets real servers report each error that docs/publish.md names to each client, once, and then
// one that it does not name, and one for ever. Then write swallows an error that has ended its transaction, and commits: no client reports it as
// published. A client that would not see it refuses the last one that it gets.
func TestPublishRunsAgainWhatADatabaseEndsForAnother(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d database, port string) {
		page := statementsOf(t, d.section)
		kind, other := "postgres", "23505"
		if d.section == "MySQL" {
			kind, other = "mariadb", "1062"
		}
		again := make([]string, len(page.Again))
		for i, code := range page.Again {
			again[i] = raise(d.section, code)
		}
		task := map[string]any{"database": kind, "port": json.Number(port), "again": again, "other": raise(d.section, other),
			"held": []string{}, "waits": []string{}, "swallowed": []string{raise(d.section, other)}, "tables": []string{
				"DROP TABLE IF EXISTS refreshd_fences", "DROP TABLE IF EXISTS published", page.Table, "CREATE TABLE published (fence bigint)",
				"DROP TABLE IF EXISTS held", "CREATE TABLE held (id int PRIMARY KEY, n int)",
				"INSERT INTO held WITH RECURSIVE s (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM s WHERE id < 100) SELECT id, 0 FROM s"}}
		if d.section == "MySQL" { // SIGNAL would leave the transaction open: a deadlock ends the one that has changed less
			task["held"] = []string{"BEGIN", "UPDATE held SET n = 2 WHERE id > 1"}
			task["waits"] = []string{"UPDATE held SET n = 2 WHERE id = 1"}
			task["swallowed"] = []string{"UPDATE held SET n = 1 WHERE id = 1", "UPDATE held SET n = 1 WHERE id = 2"}
		}
		for _, client := range []struct{ language, file string }{{"python with databases", "again.py"}, {"php with databases", "again.php"}, {"node with databases", "again.js"}} {
			want := []string{"10 true 2", "11 true 2", "10 false 0", "20 error 1", "30 error 10", "20 true 1",
				"35 swallowed 1", "35 true 1", "36 swallowed 1", "5 rows", "40 error 0"}
			if client.file == "again.js" {
				want = append(want, "40 error 0") // a transaction is open, which the others refuse themselves
			}
			t.Run(client.file, func(t *testing.T) {
				check.Equal(t, want, program(t, client.language, scriptOf(t, client.file), string(check.Got(json.Marshal(task))(t))))
			})
		}
	})
}
