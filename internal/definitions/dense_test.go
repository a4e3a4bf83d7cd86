package definitions

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestADocumentOfMillionsOfValuesIsRefusedBeforeTheyTakeMemory(t *testing.T) {
	many := 2_000_000
	for name, test := range map[string]struct{ text, want string }{
		"flow.yaml":   {"name: a\n---\nname: p\ntimeout: 1h\nretries: [" + strings.Repeat("1m,", many) + "1m]\n", "flow.yaml line 2: "},
		"block.yaml":  {"name: p\nretries:\n" + strings.Repeat("- 1\n", many), "block.yaml line 1: "},
		"item.yaml":   {"- name: a\n- name: p\n  retries:\n" + strings.Repeat("  - 1\n", many), "item.yaml line 2: "},
		"list.yaml":   {"[{name: p, retries: [" + strings.Repeat("1,", many) + "1]}]", "list.yaml line 1: "},
		"one.json":    {`{"name":"p","retries":[` + strings.Repeat("1,", many) + "1]}", "one.json line 1: "},
		"lines.jsonl": {`{"uid":"m","policy":{"retries":[` + strings.Repeat("1,", many) + "1]}}\n", "lines.jsonl line 1: "},
	} {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, []byte(test.text), 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d, err := ReadDirectory(path)
		runtime.ReadMemStats(&after)
		text := ""
		if err != nil {
			text = err.Error()
		} else if len(d.Refused) == 1 {
			text = d.Refused[0].At(d.Refused[0].Err).Error()
		}
		failIf(t, !strings.Contains(text, test.want) || !strings.Contains(text, "100000 values"), "%s: expected a refusal with %q, found %.300q", name, test.want, text)
		taken := (after.TotalAlloc - before.TotalAlloc) >> 20
		failIf(t, taken > 64, "%s of %d MiB: expected at most 64 MiB allocated, found %d", name, len(test.text)>>20, taken)
	}
}

func TestAFileOfManyDocumentsIsReadHoweverManyValuesTheyHaveTogether(t *testing.T) {
	many := 60_000
	for name, text := range map[string]string{
		"documents.yaml": strings.Repeat("---\nuid: a\npayload:\n  x: [1, 2]\n", many),
		"list.yaml":      "# a list\n" + strings.Repeat("  - uid: a\n    payload: {x: [1, 2]}\n", many),
		"flow.yaml":      "[" + strings.Repeat("{uid: a, payload: {x: [1, 2]}},\n", many) + "{uid: a}]",
		"list.json":      "[" + strings.Repeat(`{"uid":"a","payload":{"x":[1,2]}},`, many) + `{"uid":"a"}]`,
	} {
		if line := overfullLine([]byte(text)); line != 0 {
			t.Errorf("%s: expected all of it read, found line %d refused", name, line)
		}
	}
}
