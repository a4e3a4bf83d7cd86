package architecture

import (
	"errors"
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
	"github.com/refreshd/refreshd/internal/testkit/long"
)

const manifest = "../../deploy/kubernetes/refreshd.yaml"

// object is the part of an object of Kubernetes that these tests look at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas     int
		MinAvailable int `yaml:"minAvailable"`
		Selector     struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		PodSelector struct {
			MatchExpressions []struct{ Values []string } `yaml:"matchExpressions"`
		} `yaml:"podSelector"`
		Ingress  []struct{ Ports []struct{ Port string } }
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				SecurityContext struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []container
			}
		}
	}
}

type container struct {
	Name           string
	Args           []string
	Env            []struct{ Name, Value string }
	Ports          []struct{ Name string }
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Resources      struct {
		Requests map[string]string
		Limits   map[string]string
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func readManifest(t *testing.T) (objects []object) {
	t.Helper()
	file, err := os.Open(manifest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	documents := yaml.NewDecoder(file)
	for {
		var o object
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
}

func TestKubernetesRunsEachDaemonWithProbesAndWithoutRights(t *testing.T) {
	replicas, kept := map[string]int{}, map[string]bool{}
	for _, o := range readManifest(t) {
		switch o.Kind {
		case "PodDisruptionBudget":
			kept[o.Spec.Selector.MatchLabels["app"]] = o.Spec.MinAvailable == 1
		case "Deployment":
			if app := o.Spec.Selector.MatchLabels["app"]; app != o.Metadata.Name || o.Spec.Template.Metadata.Labels["app"] != app || !o.Spec.Template.Spec.SecurityContext.RunAsNonRoot {
				t.Errorf("%s: want pods of its own that do not run as root, got %+v", o.Metadata.Name, o.Spec)
			}
			replicas[o.Metadata.Name] = o.Spec.Replicas
			for _, c := range o.Spec.Template.Spec.Containers {
				expectContained(t, c)
			}
		}
	}
	for _, daemon := range daemonsToDeploy {
		name, want := "refreshd-"+daemon, 2
		if daemon == "dashboard" { // whose sessions are its own
			want = 1
		}
		if replicas[name] != want || kept[name] != (want > 1) {
			t.Errorf("%s: want %d, and one kept where there are two, got %d and %v", name, want, replicas[name], kept[name])
		}
	}
}

func TestKubernetesLetsNobodyInButForHealth(t *testing.T) {
	var closed []string
	for _, o := range readManifest(t) {
		if o.Kind == "NetworkPolicy" && len(o.Spec.Ingress) == 1 && len(o.Spec.Ingress[0].Ports) == 1 && o.Spec.Ingress[0].Ports[0].Port == "health" {
			closed = append(closed, o.Spec.PodSelector.MatchExpressions[0].Values...)
		}
	}
	for _, daemon := range daemonsToDeploy {
		if !slices.Contains(closed, "refreshd-"+daemon) {
			t.Errorf("%s: want a policy that opens its health alone, found one for %q", daemon, closed)
		}
	}
}

func expectContained(t *testing.T, c container) {
	t.Helper()
	expectAccepted(t, c.Name, c.Args)
	if c.Args[0] != c.Name {
		t.Errorf("%s runs a %s", c.Name, c.Args[0])
	}
	if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Port != "health" || c.ReadinessProbe.HTTPGet.Port != "health" {
		t.Errorf("%s: want probes of /livez and /readyz, got %+v, %+v", c.Name, c.LivenessProbe, c.ReadinessProbe)
	}
	told := false
	for _, variable := range c.Env {
		told = told || variable.Name == "REFRESHD_HEALTH" && variable.Value == ":8080"
	}
	s := c.SecurityContext
	if !told || c.Ports[0].Name != "health" || c.Resources.Limits["memory"] == "" || c.Resources.Requests["cpu"] == "" {
		t.Errorf("%s: want it to tell its health on 8080, and resources, got %+v", c.Name, c)
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || strings.Join(s.Capabilities.Drop, " ") != "ALL" {
		t.Errorf("%s: want a container without rights, got %+v", c.Name, s)
	}
}

// TestKubernetesKnowsEveryFieldOfTheManifest reads it with the types of Kubernetes, strictly.
func TestKubernetesKnowsEveryFieldOfTheManifest(t *testing.T) {
	long.Only(t)
	if told := execute(t, "../../deploy/kubernetes/check", []string{"GOFLAGS=-mod=readonly -trimpath"}, "go run . <../refreshd.yaml"); told != "12 objects\n" {
		t.Errorf("want 12 objects, got %s", told)
	}
	wrong := "sed 's/readOnlyRootFilesystem/readonlyRootFilesystem/' ../refreshd.yaml | go run . 2>&1 | grep -c 'unknown field'"
	if told := execute(t, "../../deploy/kubernetes/check", []string{"GOFLAGS=-mod=readonly -trimpath"}, wrong); told != "1\n" {
		t.Errorf("want one unknown field refused, got %s", told)
	}
}

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
