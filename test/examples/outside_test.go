package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// TestAnotherModuleUsesEachPublicPackage builds a module of its own, offline: what its tests need is in the cache of modules already.
func TestAnotherModuleUsesEachPublicPackage(t *testing.T) {
	t.Parallel()
	here := testkit.Got(filepath.Abs("../.."))(t)
	dir := t.TempDir()
	testkit.Must(t, os.CopyFS(dir, os.DirFS("testdata/outside")))
	needs := string(testkit.Got(os.ReadFile(filepath.Join(here, "go.mod")))(t))
	needs = strings.Replace(needs, "module github.com/refreshd/refreshd\n", "module example.com/outside\n", 1) +
		"\nrequire github.com/refreshd/refreshd v0.0.0\n\nreplace github.com/refreshd/refreshd => " + here + "\n"
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(needs), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "go.sum"), testkit.Got(os.ReadFile(filepath.Join(here, "go.sum")))(t), 0o600))
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	output, err := command.CombinedOutput()
	testkit.StopIf(t, err != nil, "%v: %s", err, output)
}
