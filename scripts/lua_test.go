package scripts

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestAnIncludeStandsInThePlaceOfItsLine(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"good.lua": file("-- Header\n-- include: one, two\nreturn one() --@ mark\n"), "include/one.lua": file("-- 1\n"), "include/two.lua": file("-- 2\n"),
		"typed.lua":         file("-- Header\n-- KEYS[1] <queue>:due zset\n-- KEYS[2] one of <queue>:stats hash, <queue>:limits hash\n-- KEYS[3..] <queue>:wake list\n-- include: three\n"),
		"include/three.lua": file("-- include: two\nf(header_types)\n"),
		"twice.lua":         file("-- include: one\n-- include: one\n"), "missing.lua": file("-- include: four\n"),
	}
	if text, err := resolve(files, "good.lua"); err != nil || text != "-- Header\n-- 1\n-- 2\nreturn one() --@ mark\n" {
		t.Errorf("expected both includes in place, found %q, %v", text, err)
	}
	if text, err := resolve(files, "typed.lua"); err != nil || !strings.HasSuffix(text, "list\n-- 2\nf({'zset',\n  'hash'})\n") {
		t.Errorf("expected the types of the keys in their place, found %q, %v", text, err)
	}
	for name, want := range map[string]string{
		"twice.lua":   "read script: expected each include once, found one twice in twice.lua",
		"missing.lua": "read script: open include/four.lua: file does not exist",
		"unknown.lua": "read script: open unknown.lua: file does not exist",
	} {
		if _, err := resolve(files, name); err == nil || err.Error() != want {
			t.Errorf("%s: expected %q, found %v", name, want, err)
		}
	}
}

func TestEachIncludeIsIncluded(t *testing.T) {
	t.Parallel()
	used := slices.Collect(maps.Keys(Sources())) // that a script is run tests package store
	var all []string
	err := fs.WalkDir(luaFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		all = append(all, path)
		text, err := luaFiles.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			names, is := strings.CutPrefix(strings.TrimSpace(line), includeMark)
			for name := range strings.SplitSeq(names, ", ") {
				if is {
					used = append(used, "include/"+name+".lua")
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !slices.Contains(used, path) {
			t.Errorf("expected %s loaded or included, found it unused", path)
		}
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
