package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/scripts"
)

// go-redis sends the text of a script that Redis does not know. A user who may only run loaded scripts is refused that.
func TestNoCallSendsTheTextOfAScript(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	sends := regexp.MustCompile(`\.(Run|RunRO|Eval|EvalRO)\(ctx`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if found := sends.FindString(string(text)); found != "" && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s: expected scripts to be run by their digests, found %s", file, found)
		}
	}
}

func TestLoadScriptsLoadsThemAllWhoeverRunsThem(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := newBench(t, server)
		b.redis.ScriptFlush(t.Context())
		must(t, b.Clients.LoadScripts(t.Context(), b.Keys.Due))
		for file, text := range scripts.Sources() {
			if known := b.redis.ScriptExists(t.Context(), redis.NewScript(text).Hash()).Val(); len(known) != 1 || !known[0] {
				t.Errorf("%s is not loaded", file)
			}
		}
	})
}
