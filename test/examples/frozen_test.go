package examples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestNoTwoKeysShareAFenceAndAFrozenTransactionIsEnded uses the settings that docs/publish.md names: one ends the session of a worker that has won and
// freezes, another bounds the wait for it. Keys that differ in case, in an accent or in a space behind them are two.
func TestNoTwoKeysShareAFenceAndAFrozenTransactionIsEnded(t *testing.T) {
	long.Only(t)
	settings := map[string]struct{ database, ended, bounded, code string }{
		"Postgres": {"postgres", "SET SESSION idle_in_transaction_session_timeout = 300", "SET SESSION statement_timeout = 100", "57014"},
		"MySQL":    {"mariadb", "SET SESSION idle_transaction_timeout = 1", "SET SESSION innodb_lock_wait_timeout = 0", "1205"},
	}
	page := string(check.Got(os.ReadFile(filepath.Join(root, "docs", "publish.md")))(t))
	onEachDatabase(t, func(t *testing.T, d database, port string) {
		s := settings[d.section]
		for _, statement := range []string{s.ended, s.bounded} {
			name := strings.Fields(strings.TrimPrefix(statement, "SET SESSION "))[0]
			failIf(t, !strings.Contains(page, "`"+name+"`"), "docs/publish.md does not name %s", name)
		}
		task := map[string]any{"database": s.database, "port": json.Number(port), "table": statementsOf(t, d.section).Table, "ended": s.ended, "bounded": s.bounded}
		got := program(t, "python with databases", scriptOf(t, "frozen.py"), string(check.Got(json.Marshal(task))(t)))
		const apart = "True True False True"
		check.Equal(t, []string{apart, apart, apart, apart, s.code, "True", "True False True"}, got)
	})
}
