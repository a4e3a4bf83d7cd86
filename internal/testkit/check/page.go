package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Section returns the text of a page from a heading, such as "## Replies", to the next one.
func Section(t testing.TB, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut("\n"+string(Got(os.ReadFile(page))(t)), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s: expected the heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

var (
	tableHead = regexp.MustCompile(`(?m)^\|.*\n\|-.*$`)
	firstCell = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	inCode    = regexp.MustCompile("`([^`]+)`")
)

// FirstCells returns the names in backticks of the first cells of the tables of a section, sorted.
func FirstCells(t testing.TB, page, heading string) (names []string) {
	t.Helper()
	for _, cell := range firstCell.FindAllStringSubmatch(tableHead.ReplaceAllString(Section(t, page, heading), ""), -1) {
		for _, name := range inCode.FindAllStringSubmatch(cell[1], -1) {
			names = append(names, name[1])
		}
	}
	slices.Sort(names)
	return names
}
