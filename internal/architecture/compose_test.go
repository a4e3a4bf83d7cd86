package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// service is the part of a service of docker-compose.yml that these tests look at.
type service struct {
	Image   string
	Command []string
	Deploy  struct{ Replicas int }
}

func readCompose(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &compose); err != nil {
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
	s := testkit.Redis(t, readCompose(t)["redis"].Command[1:]...)
	client := s.Client(t)
	for option, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction"} {
		if got := client.ConfigGet(t.Context(), option).Val()[option]; got != want {
			t.Errorf("%s = %q, want %q", option, got, want)
		}
	}
}

// TestComposeCommandsAreAccepted asks the program for help with each command line of the compose file: it refuses a
// subcommand or a flag that it does not know before it helps.
func TestComposeCommandsAreAccepted(t *testing.T) {
	refreshd := buildRefreshd(t)
	for name, service := range readCompose(t) {
		if service.Image != "refreshd" {
			continue
		}
		if out, err := exec.Command(refreshd, slices.Concat(service.Command, []string{"--help"})...).CombinedOutput(); err != nil {
			t.Errorf("%s: refreshd %q: %v\n%s", name, service.Command, err, out)
		}
	}
	if err := exec.Command(refreshd, "dispatcher", "--no-such-flag", "--help").Run(); err == nil {
		t.Error("an unknown flag was accepted with --help, so this test shows nothing")
	}
}

func buildRefreshd(t *testing.T) string {
	t.Helper()
	refreshd := filepath.Join(t.TempDir(), "refreshd")
	if out, err := exec.Command("go", "build", "-o", refreshd, "../../cmd/refreshd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return refreshd
}
