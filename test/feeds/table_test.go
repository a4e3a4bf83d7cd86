package feeds

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

var update = flag.Bool("update", false, "write the table of docs/feeds.md anew")

const page = "../../docs/feeds.md"

var between = regexp.MustCompile(`(?s)(<!-- feeds: begin -->\n).*(<!-- feeds: end -->)`)

// writeTable writes what was seen into the page. A version that was found twice has one row.
func writeTable(t *testing.T, rows []row) {
	t.Helper()
	table := "Run on " + time.Now().UTC().Format(time.DateOnly) + " with `make feeds`.\n\n" +
		"| server | sends | packs | unchanged | rewritten | |\n|---|---|---|---|---|---|\n"
	for _, r := range slices.CompactFunc(rows, func(a, b row) bool { return a.server == b.server }) {
		table += r.String() + "\n"
	}
	text := check.Got(os.ReadFile(page))(t)
	stopIf(t, !between.Match(text), "%s: want two markers, found none", page)
	text = between.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}"))
	must(t, os.WriteFile(page, text, 0o644))
}

func (r row) String() string {
	unchanged := map[bool]string{true: "304", false: "whole"}
	rewritten := "noticed"
	if !r.later {
		rewritten = "**not at once**"
	} else if !r.soon {
		rewritten = "**not in the same second**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", r.server, r.sends, cmp.Or(r.packed, "no"), unchanged[r.unchanged], rewritten, r.note)
}

func TestTheTableHasARowForEachServer(t *testing.T) {
	text := string(check.Got(os.ReadFile(page))(t))
	for _, s := range servers {
		row := strings.Replace(regexp.QuoteMeta(s.called("VERSION")), "VERSION", `[\d.]+`, 1)
		if !regexp.MustCompile(`(?m)^\| ` + row + ` \|`).MatchString(text) {
			t.Errorf("docs/feeds.md: want a row of %s, found none: run make feeds", s.called("VERSION"))
		}
	}
}
