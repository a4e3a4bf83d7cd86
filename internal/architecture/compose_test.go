package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// service is the part of a service of docker-compose.yml that these tests look at.
type service struct {
	Image       string
	Command     []string
	Deploy      struct{ Replicas int }
	Environment map[string]string
	Healthcheck struct{ Test []string }
	Volumes     []string
	Profiles    []string
}

func readCompose(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct{ Services map[string]service }
	filled := strings.ReplaceAll(string(text), "${REDIS_PASSWORD:-refreshd}", "geheim")
	if err := yaml.Unmarshal([]byte(filled), &compose); err != nil {
		t.Fatal(err)
	}
	return compose.Services
}

func TestComposeRunsTwoOfEachDaemon(t *testing.T) {
	services := readCompose(t)
	for _, name := range []string{"dispatcher", "poller"} {
		if got := services[name].Deploy.Replicas; got != 2 {
			t.Errorf("%s: %d replicas, want 2", name, got)
		}
	}
}

// TestComposeRedisKeepsWhatItWasTold starts a redis-server with the arguments of the compose file.
func TestComposeRedisKeepsWhatItWasTold(t *testing.T) {
	command := readCompose(t)["redis"].Command[1:]
	password := slices.Index(command, "--requirepass")
	if password < 0 || command[password+1] != "geheim" {
		t.Fatalf("want Redis to ask for a password, got %q", command)
	}
	s := testkit.Redis(t, slices.Delete(command, password, password+2)...) // its server is asked without one
	client := s.Client(t)
	for option, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction"} {
		if got := client.ConfigGet(t.Context(), option).Val()[option]; got != want {
			t.Errorf("%s = %q, want %q", option, got, want)
		}
	}
}

func TestComposeCommandsAreAccepted(t *testing.T) {
	for name, service := range readCompose(t) {
		if service.Image == "refreshd" {
			expectAccepted(t, name, service.Command)
		}
	}
}

// TestComposeAsksEachDaemonForItsHealth checks the program that is asked by, and that it is told where.
func TestComposeAsksEachDaemonForItsHealth(t *testing.T) {
	daemons := 0
	for name, service := range readCompose(t) {
		if service.Image != "refreshd" {
			continue
		}
		daemons++
		if service.Environment["REDIS_URL"] != "redis://:geheim@redis:6379" {
			t.Errorf("%s: want Redis with its password, got %q", name, service.Environment["REDIS_URL"])
		}
		test := service.Healthcheck.Test
		if len(test) < 3 || test[0] != "CMD" || test[1] != "/refreshd" || test[2] != "health" || service.Environment["REFRESHD_HEALTH"] == "" {
			t.Errorf("%s: want its health asked for by refreshd health where REFRESHD_HEALTH says, got %q and %q", name, test, service.Environment)
			continue
		}
		expectAccepted(t, name, test[2:])
	}
	if daemons != 5 {
		t.Errorf("want dispatcher, poller, worker, dashboard and notifier, got %d daemons", daemons)
	}
	if test := readCompose(t)["redis"].Healthcheck.Test; len(test) == 0 {
		t.Error("want Redis asked too")
	}
}

func TestComposeShowsPeopleMoreUnderAProfile(t *testing.T) {
	for name, service := range readCompose(t) {
		extra := slices.Contains([]string{"dashboard", "notifier", "prometheus", "grafana"}, name)
		if got := slices.Equal(service.Profiles, []string{"observe"}); got != extra {
			t.Errorf("%s: profiles %q", name, service.Profiles)
		}
		for _, volume := range service.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(filepath.Join("../..", from)); strings.HasPrefix(from, ".") && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestTheNotifierReadsTheRoutesOfComposeAndOfKubernetes starts it with each for a moment, and without a Redis.
func TestTheNotifierReadsTheRoutesOfComposeAndOfKubernetes(t *testing.T) {
	inside := filepath.Join(t.TempDir(), "routes.yaml")
	if err := os.WriteFile(inside, []byte(readManifest(t)[0].Data["routes.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, routes := range []string{"../../deploy/routes.yaml", inside} {
		if told, err := exec.Command(testkit.Binary(t), "notifier", "--redis", "redis://127.0.0.1:1", "--routes", routes, "--for", "1ms").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", routes, err, told)
		}
	}
}

// expectAccepted asks the program for help with a command line: it refuses a subcommand, a flag or a value that it does not know before it
// helps.
func expectAccepted(t *testing.T, who string, command []string) {
	t.Helper()
	refreshd := testkit.Binary(t)
	if out, err := exec.Command(refreshd, slices.Concat(command, []string{"--help"})...).CombinedOutput(); err != nil || !strings.Contains(string(out), "refreshd "+command[0]) {
		t.Errorf("%s: refreshd %q: %v\n%s", who, command, err, out)
	}
	if exec.Command(refreshd, command[0], "--no-such-flag", "--help").Run() == nil {
		t.Error("an unknown flag was accepted with --help, so this test shows nothing")
	}
}
