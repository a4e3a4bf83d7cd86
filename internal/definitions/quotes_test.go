package definitions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestATextThatYAMLTakesForSomethingElseIsToBePutInQuotes(t *testing.T) {
	for text, line := range map[string]string{
		"uid: a\nrrule: */5 * * * *\n":                           "line 2",
		"uid: a\nrrule: * * * * *\n":                             "line 2",
		"uid: a\nrrule: @daily\n":                                "line 2",
		"uid: a\nrrule:   @daily # at night\n":                   "line 2",
		"uid: a\nrrule: *\n":                                     "line 2",
		"uid: a\nrrule: *5 x\n":                                  "line 2", // YAML names no line
		"uid: a\nrrule: *5\n":                                    "line 2",
		"uid: a\nrrule: [*5]\n":                                  "line 2",
		"uid: a\nrrule: [*/5 * * * *]\n":                         "line 2",
		"uid: a\nrrule: [@daily]\n":                              "line 2",
		"uid: a\nrrule:\n  */5 * * * *\n":                        "line 3",
		"uid: a\nrrule:\n  @daily\n":                             "line 3",
		"uid: a\nrrule:\n  *5\n":                                 "line 3",
		"uid: a\nrrule:\n  - * * * * *\n":                        "line 3",
		"uid: &b a\nlabels: {x: *b}\nrrule: *5\n":                "line 3",
		"uid: a\ntimezone: @x\n":                                 "line 2",
		"uid: a\npayload:\n  command: `date`\n":                  "line 3",
		"uid: a\npayload:\n  command: %b\n":                      "line 3",
		"uid: a\npayload: {command: @x}\n":                       "line 2",
		"uid: a\npayload:\n  command: echo a: b\n":               "line 3",
		"{uid: a, rrule: */5 * * * *}\n":                         "line 1",
		"- uid: a\n  rrule: '@daily'\n- uid: b\n  rrule: @daily": "line 4",
		"uid: a\n---\nuid: b\npayload: {}\nrrule: @daily\n":      "line 5",
		"- uid: a\n  \"rrule\": */5 * * * *\n- uid: b\n":         "line 2",

		// These are wrong in another way.
		"uid: a\nrrule: '*/5\n":           "",
		"uid: a\n  labels: x\n":           "",
		"uid: a\npayload: [b\n":           "",
		"uid: a\n\tpayload: x\n":          "",
		"uid: a\npayload: |5 x\n  a: *\n": "",
		"uid: a\npayload: *b\n":           "", // an anchor that is not there
	} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		check.Must(t, os.WriteFile(path, []byte(text), 0o600))
		read := map[string]error{
			"models":    ReadModels("f.yaml", strings.NewReader(text), FormatAuto, func(m Model) error { return m.Err }),
			"policies":  check.Only(ReadPolicies("f.yaml", strings.NewReader(strings.ReplaceAll(text, "uid:", "name:")))),
			"directory": check.Only(ReadDirectory(path)),
		}
		for from, err := range read {
			hinted := err != nil && strings.Contains(err.Error(), "put the text in quotes")
			if err == nil || hinted != (line != "") || !strings.Contains(err.Error(), "f.yaml "+line) {
				t.Errorf("%s: %q: expected a hint: %v, at %s, found %v", from, text, line != "", line, err)
			}
		}
	}
}
