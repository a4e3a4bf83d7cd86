package policy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fieldRow is a row of the table of fields: name, type, default, meaning.
var fieldRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]+ \\| (?:`([^|]+)` )?\\| [^|]+ \\|$")

func TestThePageOfPoliciesHasEachFieldWithItsDefault(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Fields\n")
	table, _, _ = strings.Cut(table, "\n#")
	var names []string
	given := map[string]any{}
	for _, row := range fieldRow.FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
		if text := row[2]; text == "{}" {
			given[row[1]] = map[string]any{}
		} else if list, is := strings.CutPrefix(text, "["); is {
			given[row[1]] = []any{}
			for _, item := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("[], ", r) }) {
				given[row[1]] = append(given[row[1]].([]any), item)
			}
		} else if text != "" {
			given[row[1]] = text
		}
	}
	if diff := cmp.Diff(fieldNames, names); diff != "" {
		t.Errorf("rows of docs/policies.md: -want +got\n%s", diff)
	}
	usual := Default()
	got, err := Parse(given)
	if err != nil || !got.Equal(usual) {
		t.Errorf("defaults of docs/policies.md: want %s, got %s, %v", usual.canonical(), got.canonical(), err)
	}
	for _, f := range fields {
		if value, _ := f.value(&usual); value != nil && value != "" && given[f.name] == nil {
			t.Errorf("docs/policies.md: %s: expected its default, found none", f.name)
		}
	}
}
