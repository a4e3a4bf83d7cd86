package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// unitProgram is where the units of systemd expect the program.
const unitProgram = "/usr/local/bin/refreshd"

// systemdUnits are the units of deploy/systemd, by the names of their files.
func systemdUnits(t *testing.T) map[string]string {
	t.Helper()
	units := filesOf(t, "../../deploy/systemd")
	for _, daemon := range daemonsToDeploy {
		if units["refreshd-"+daemon+".service"] == "" {
			t.Errorf("want a unit for the %s, got none", daemon)
		}
	}
	return units
}

// daemonsToDeploy are the daemons that a deployment may have.
var daemonsToDeploy = []string{"dispatcher", "poller", "worker", "dashboard", "notifier"}

func TestSystemdRunsCommandsThatAreAccepted(t *testing.T) {
	for name, unit := range systemdUnits(t) {
		_, line, _ := strings.Cut(unit, "\nExecStart="+unitProgram+" ")
		line, _, found := strings.Cut(line, "\n")
		if !found || strings.ContainsAny(line, `"'$\`) {
			t.Errorf("%s: want a line of plain words behind ExecStart=%s, got %q", name, unitProgram, line)
			continue
		}
		command := strings.Fields(line)
		if name != "refreshd-"+command[0]+".service" {
			t.Errorf("%s runs a %s", name, command[0])
		}
		expectAccepted(t, name, command)
		if name == "refreshd-dashboard.service" && (!strings.Contains(line, " --token-file %d/token") || !strings.Contains(unit, "\nLoadCredential=token:/")) {
			t.Errorf("%s: want a token that it does not begin without, got %q", name, line)
		}
	}
}

// exposure is the number by which systemd-analyze security rates a unit: 0 may do nothing, 10 may do all.
var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// TestSystemdKeepsADaemonFromAllThatItDoesNotNeed lets systemd read the units, with this program in place of the installed one.
func TestSystemdKeepsADaemonFromAllThatItDoesNotNeed(t *testing.T) {
	testkit.RequireProgram(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	for name, unit := range systemdUnits(t) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(unit, unitProgram, testkit.Binary(t))), 0o600); err != nil {
			t.Fatal(err)
		}
		// Nothing that it depends on is looked at: what is installed here says nothing about the units.
		if told, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path).CombinedOutput(); err != nil || strings.Contains(string(told), name) {
			t.Errorf("%s: %v\n%s", name, err, told)
		}
		told, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", path).CombinedOutput()
		found := exposure.FindSubmatch(told)
		if found == nil {
			t.Errorf("%s: want its exposure, got %v\n%s", name, err, told)
			continue
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > 1.5 {
			t.Errorf("%s: want an exposure of at most 1.5, got %s\n%s", name, found[1], told)
		}
	}
}
