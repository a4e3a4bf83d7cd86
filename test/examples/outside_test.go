package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// TestAnotherModuleUsesEachPublicPackage builds a module of its own, offline: what its tests need is in the cache of modules already.
func TestAnotherModuleUsesEachPublicPackage(t *testing.T) {
	t.Parallel()
	here := check.Got(filepath.Abs("../.."))(t)
	dir := t.TempDir()
	check.Must(t, os.CopyFS(dir, os.DirFS("testdata/outside")))
	needs := string(check.Got(os.ReadFile(filepath.Join(here, "go.mod")))(t))
	needs = strings.Replace(needs, "module github.com/refreshd/refreshd\n", "module example.com/outside\n", 1) +
		"\nrequire github.com/refreshd/refreshd v0.0.0\n\nreplace github.com/refreshd/refreshd => " + here + "\n"
	check.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(needs), 0o600))
	check.Must(t, os.WriteFile(filepath.Join(dir, "go.sum"), check.Got(os.ReadFile(filepath.Join(here, "go.sum")))(t), 0o600))
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off")
	output, err := command.CombinedOutput()
	check.StopIf(t, err != nil, "%v: %s", err, output)
}
