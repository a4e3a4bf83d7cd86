package store

import (
	flags "flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flags.Bool("update", false, "write what is generated")

// generate compares a part of a file with what is generated, or writes it.
func generate(t *testing.T, path, from, to, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	stopIf(t, err != nil && !*update, "%v", err)
	before, rest, found := strings.Cut(string(text), from)
	is, behind, closed := strings.Cut(rest, to)
	if from == "" {
		before, is, behind, found, closed = "", string(text), "", true, true
	}
	switch {
	case !found || !closed:
		t.Fatalf("%s: expected %q and %q around what is generated", path, from, to)
	case is == want:
	case *update:
		must(t, os.WriteFile(path, []byte(before+from+want+to+behind), 0o600))
	default:
		t.Errorf("%s is not what words.go says: run go generate ./internal/store", path)
	}
}

func TestTheListOfWordsIsWhatTheScriptAndTheDocumentSay(t *testing.T) {
	var lua, table strings.Builder
	lua.WriteString("-- Generated from words.go of package store, which explains the words: what follows each in an item.\nlocal follows = {")
	line := 120
	for _, w := range words {
		name, _, _ := strings.Cut(w.name, "=")
		if w.follows != none && w.name != "note=<name>" && w.name != "field=<name>" { // their values stand at the end of an item
			row := fmt.Sprintf(" %s = '%s',", name, w.follows)
			if line += len(row); line > 120 {
				line = len(row) + 1
				lua.WriteString("\n ")
			}
			lua.WriteString(row)
		}
		is := strings.TrimSpace(string(w.follows) + " " + w.unit)
		if is == "value Unix ms" || is == "value Unix us" {
			is = w.unit
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", w.name, is, w.meaning)
	}
	lua.WriteString("\n}\n")
	generate(t, "../../scripts/include/words.lua", "", "", lua.String())
	generate(t, "../../docs/architecture.md", "| word | followed by | meaning |\n|---|---|---|\n", "\n<!-- end of words -->", table.String())
}
