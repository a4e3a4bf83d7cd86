package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// before is the commit before the first one that has a tag: while there is no tag, it stands for the release before.
const before = "e1659f6039402127df0548e48bc1896bda671ed9"

// TestTwoVersionsRunSideBySideDuringAnUpgrade begins with the daemons of the release before, lets those of this one join them, kills some of
// both, and ends the old ones, all under load.
func TestTwoVersionsRunSideBySideDuringAnUpgrade(t *testing.T) {
	long.Only(t)
	old, commit := oldBinary(t)
	d, _ := on(t)
	d.elsewhere = true
	service := d.listener()
	commands := [][]string{
		{"dispatcher"}, {"dispatcher"}, {"poller", "--lease", "1s"}, {"poller", "--lease", "1s"},
		{"worker", "--http", service.URL, "--worker-lease", "1s", "--concurrency", "20"},
	}
	former := d.startProcesses(old, commands...)
	d.save()
	d.refreshAll()
	current := d.startProcesses(testkit.Binary(t), commands...)
	for i := range commands[:4] { // the other one of the pair goes on
		if i%2 == 0 {
			former.kill(i)
		} else {
			current.kill(i)
		}
		d.progress(100)
	}
	d.examine()
	told, err := exec.Command(old, "doctor", "--redis", d.address).CombinedOutput()
	failIf(t, err != nil, "the doctor of the release before: %v\n%s", err, told)
	stopAll(t, former.processes...)
	d.settle()
	stopAll(t, current.processes...)
	d.audit()
	t.Logf("beside %s", commit)
}

// oldBinary builds the program of the last tag before this commit, or of the commit before.
func oldBinary(t *testing.T) (program, commit string) {
	t.Helper()
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
	if err != nil {
		commit = before
	}
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		if shallow, err := git("rev-parse", "--is-shallow-repository"); err == nil && shallow == "false" && os.Getenv("CI") != "" {
			t.Fatalf("want the commit %s in the whole history of this checkout, got none", commit)
		}
		t.Skipf("this checkout has no history with the commit %s: git fetch --unshallow", commit)
	}
	root, err := git("rev-parse", "--show-toplevel") // git archive writes what is below the directory in which it runs
	must(t, err)
	source, binary := t.TempDir(), filepath.Join(t.TempDir(), "refreshd")
	build := exec.Command("sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2" && cd "$2" && go build -buildvcs=false -trimpath -o "$3" ./cmd/refreshd`, root, commit, source, binary)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	return binary, commit
}
