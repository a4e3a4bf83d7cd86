package architecture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const manifest = "../../deploy/kubernetes/refreshd.yaml"

// readManifest returns the objects of the manifest, to be asked by at.
func readManifest(t *testing.T) (objects []any) {
	t.Helper()
	file := check.Got(os.Open(manifest))(t)
	defer func() { _ = file.Close() }()
	documents := yaml.NewDecoder(file)
	for {
		var o any
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

// at follows a path through what was read of YAML or JSON: names, and numbers in lists, with slashes between them. Nil: there is nothing.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func list(value any, path string) []any {
	all, _ := at(value, path).([]any)
	return all
}

// expectAt compares what stands at paths, as texts.
func expectAt(t *testing.T, where string, value any, want map[string]string) {
	t.Helper()
	for path, text := range want {
		got := fmt.Sprint(at(value, path))
		failIf(t, got != text, "%s: %s: want %s, got %s", where, path, text, got)
	}
}

func TestKubernetesRunsEachDaemonWithProbesAndWithoutRights(t *testing.T) {
	replicas, kept := map[any]any{}, map[any]bool{}
	for _, o := range readManifest(t) {
		name, app := at(o, "metadata/name"), fmt.Sprint(at(o, "spec/selector/matchLabels/app"))
		switch at(o, "kind") {
		case "PodDisruptionBudget":
			kept[app] = at(o, "spec/maxUnavailable") == 1 // also where an autoscaler leaves one: minAvailable would let no node be drained
		case "Deployment": // its pods are its own, and do not run as root
			expectAt(t, app, o, map[string]string{
				"metadata/name": app, "spec/template/metadata/labels/app": app, "spec/template/spec/securityContext/runAsNonRoot": "true",
			})
			replicas[name] = at(o, "spec/replicas")
			for _, c := range list(o, "spec/template/spec/containers") {
				expectContained(t, c)
			}
		}
	}
	for _, daemon := range daemonsToDeploy {
		name, want := "refreshd-"+daemon, 2
		if daemon == "dashboard" { // whose sessions are its own
			want = 1
		}
		failIf(t, replicas[name] != want || kept[name] != (want > 1),
			"%s: want %d, and one kept where there are two, got %d and %v", name, want, replicas[name], kept[name])
	}
}

func TestKubernetesLetsNobodyInButForHealth(t *testing.T) {
	var closed []any
	for _, o := range readManifest(t) {
		if len(list(o, "spec/ingress")) == 1 && len(list(o, "spec/ingress/0/ports")) == 1 && at(o, "spec/ingress/0/ports/0/port") == "health" {
			closed = append(closed, list(o, "spec/podSelector/matchExpressions/0/values")...)
		}
	}
	for _, daemon := range daemonsToDeploy {
		failIf(t, !slices.Contains(closed, any("refreshd-"+daemon)), "%s: want a policy that opens its health alone, found one for %q", daemon, closed)
	}
}

// expectContained checks that a container runs the daemon of its name, with probes, with resources and without rights.
func expectContained(t *testing.T, c any) {
	t.Helper()
	name, told := fmt.Sprint(at(c, "name")), false
	expectAccepted(t, name, strings.Fields(strings.Trim(fmt.Sprint(at(c, "args")), "[]")))
	for _, variable := range list(c, "env") {
		told = told || at(variable, "name") == "REFRESHD_HEALTH" && at(variable, "value") == ":8080"
	}
	failIf(t, !told || at(c, "resources/limits/memory") == nil || at(c, "resources/requests/cpu") == nil,
		"%s: want it to tell its health on 8080, and resources, got %v", name, c)
	expectAt(t, name, c, map[string]string{
		"args/0": name, "ports/0/name": "health", "livenessProbe/httpGet/path": "/livez", "readinessProbe/httpGet/path": "/readyz",
		"livenessProbe/httpGet/port": "health", "readinessProbe/httpGet/port": "health",
		"securityContext/allowPrivilegeEscalation": "false", "securityContext/readOnlyRootFilesystem": "true", "securityContext/capabilities/drop": "[ALL]",
	})
}

// TestTheManifestIsTheChartAndKubernetesKnowsEveryFieldOfIt lints and renders the chart with Helm, and reads it with the types of Kubernetes, strictly.
func TestTheManifestIsTheChartAndKubernetesKnowsEveryFieldOfIt(t *testing.T) {
	long.Only(t)
	broken, program := t.TempDir(), filepath.Join(t.TempDir(), "check")
	must(t, os.CopyFS(broken, os.DirFS("../../deploy/kubernetes/chart")))
	run := func(command string) string {
		return execute(t, "../../deploy/kubernetes/check", []string{"GOFLAGS=-mod=readonly -trimpath", "CHECK=" + program, "BROKEN=" + broken}, command)
	}
	run("go build -o $CHECK .")
	rendered, want := run("$CHECK ../chart"), check.Got(os.ReadFile(manifest))(t)
	failIf(t, rendered != string(want), "%s is not what the chart makes: go run . ../chart >../refreshd.yaml in deploy/kubernetes/check, and look at it", manifest)
	const typo = `sed -i s/readOnlyRootFilesystem/readonlyRootFilesystem/ $BROKEN/templates/daemons.yaml; $CHECK $BROKEN 2>&1 | grep -c 'unknown field'`
	failIf(t, run(typo) != "1\n", "want a field refused that Kubernetes does not know")

	// With KEDA the plan says how many workers run, and nobody else does.
	scaled := run("$CHECK ../chart autoscaling.enabled=true,autoscaling.horizon=30m")
	for _, text := range []string{"kind: ScaledObject", "http://refreshd-dashboard.default:8090/scale?horizon=30m", "valueLocation: slots"} {
		failIf(t, !strings.Contains(scaled, text), "want %q for KEDA, got\n%s", text, scaled)
	}
	failIf(t, strings.Count(scaled, "\n  replicas: ") != strings.Count(rendered, "\n  replicas: ")-1, "want the replicas of the workers left to KEDA, got\n%s", scaled)
}

const unitProgram = "/usr/local/bin/refreshd"

// systemdUnits are the units of deploy/systemd, by the names of their files.
func systemdUnits(t *testing.T) map[string]string {
	t.Helper()
	units := filesOf(t, "../../deploy/systemd")
	for _, daemon := range daemonsToDeploy {
		failIf(t, units["refreshd-"+daemon+".service"] == "", "want a unit for the %s, got none", daemon)
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
		failIf(t, name != "refreshd-"+command[0]+".service", "%s runs a %s", name, command[0])
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
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(unit, unitProgram, testkit.Binary(t))), 0o600))
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
		level, err := strconv.ParseFloat(string(found[1]), 64)
		failIf(t, err != nil || level > 1.5, "%s: want an exposure of at most 1.5, got %s\n%s", name, found[1], told)
	}
}
