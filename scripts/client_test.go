package scripts

import (
	"crypto/sha1"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the scripts into the clients")

// clientScripts are the files of the scripts that the clients run, by the names under which they hold them.
var clientScripts = []struct{ name, file string }{{"take", "take-attempts.lua"}, {"answer", "answer-attempts.lua"}}

// clientFiles are how each client holds a script: its name, its digest in Redis, and its text.
var clientFiles = []struct{ path, mark, format string }{
	{"../clients/python/refreshd.py", "#", "_%[2]s_DIGEST = \"%[3]s\"\n_%[2]s = r'''\n%[4]s'''\n"},
	{"../clients/node/refreshd.js", "//", "const %[2]s_DIGEST = '%[3]s';\nconst %[2]s = String.raw`\n%[4]s`;\n"},
	{"../clients/php/src/Refreshd.php", "//", "const %[2]s_DIGEST = '%[3]s';\nconst %[2]s = <<<'LUA'\n%[4]sLUA;\n"},
	{"../clients/bash/worker.sh", "#", "%[1]s_digest=%[3]s\nIFS= read -rd '' %[1]s_script <<'LUA'\n%[4]sLUA\n"},
}

// TestTheClientsHoldTheScriptsThatRunHere compares the texts, without the comments, and writes them with -update. The digest is of the text with
// its comments: daemons load that text, so a user of Redis who may not load scripts can run it.
func TestTheClientsHoldTheScriptsThatRunHere(t *testing.T) {
	t.Parallel()
	for _, client := range clientFiles {
		var want strings.Builder
		for _, script := range clientScripts {
			text := Source(script.file)
			fmt.Fprintf(&want, client.format, script.name, strings.ToUpper(script.name), fmt.Sprintf("%x", sha1.Sum([]byte(text))), withoutComments(text))
		}
		held(t, client.path, client.mark, want.String())
	}
}

// held compares the text between two lines of a file with the wanted one, or writes it.
func held(t *testing.T, path, mark, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opening := mark + " >>> scripts of refreshd, written by: go test ./scripts -run TestTheClients -update\n"
	before, rest, opened := strings.Cut(string(text), opening)
	is, behind, closed := strings.Cut(rest, mark+" <<< scripts\n")
	switch {
	case !opened || !closed:
		t.Errorf("%s: expected the lines %q and %q", path, opening, mark+" <<< scripts\n")
	case is == want:
	case !*update:
		t.Errorf("%s: the scripts differ from those that run here; write them with -update", path)
	default:
		if err := os.WriteFile(path, []byte(before+opening+want+mark+" <<< scripts\n"+behind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutComments is a script as short as it may be and still be read.
func withoutComments(script string) string {
	return strings.TrimLeft(comment.ReplaceAllString(script, ""), "\n")
}
