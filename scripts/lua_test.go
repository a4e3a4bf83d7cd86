package scripts

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAnIncludeStandsInThePlaceOfItsLine(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"good.lua": file("-- Header\n-- include: one\n-- include: two\nreturn one() --@ mark\n"), "include/one.lua": file("-- 1\n"), "include/two.lua": file("-- 2\n"),
		"twice.lua": file("-- include: one\n-- include: one\n"), "missing.lua": file("-- include: three\n"),
	}
	if text, err := resolve(files, "good.lua"); err != nil || text != "-- Header\n-- 1\n-- 2\nreturn one() --@ mark\n" {
		t.Errorf("expected both includes in place, found %q, %v", text, err)
	}
	for name, want := range map[string]string{
		"twice.lua":   "read script: expected each include once, found one twice in twice.lua",
		"missing.lua": "read script: open include/three.lua: file does not exist",
		"unknown.lua": "read script: open unknown.lua: file does not exist",
	} {
		if _, err := resolve(files, name); err == nil || err.Error() != want {
			t.Errorf("%s: expected %q, found %v", name, want, err)
		}
	}
}

func TestEachFileIsLoadedOrIncluded(t *testing.T) {
	t.Parallel()
	all := strings.Builder{}
	for _, text := range Sources() {
		all.WriteString(text)
	}
	err := fs.WalkDir(luaFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := luaFiles.ReadFile(path)
		if _, loaded := Sources()[path]; !loaded && !strings.Contains(all.String(), string(text)) {
			t.Errorf("expected %s loaded or included, found it unused", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLuacheckAcceptsEachScript checks the scripts with their includes in place: .ci/run runs it as the step lua.
func TestLuacheckAcceptsEachScript(t *testing.T) {
	t.Parallel()
	testkit.RequireProgram(t, "luacheck", "lua-check")
	config, err := filepath.Abs("../.luacheckrc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, text := range Sources() {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.Command("luacheck", "--quiet", "--no-color", "--config", config, dir).CombinedOutput(); err != nil {
		t.Errorf("luacheck: %v\n%s", err, output)
	}
}
