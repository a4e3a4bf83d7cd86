package architecture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
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
	text := check.Got(os.ReadFile("../../docker-compose.yml"))(t)
	var compose struct{ Services map[string]service }
	must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "${REDIS_PASSWORD:-refreshd}", "geheim")), &compose))
	return compose.Services
}

// TestComposeRedisKeepsWhatItWasTold starts a redis-server with the arguments of the compose file.
func TestComposeRedisKeepsWhatItWasTold(t *testing.T) {
	command := readCompose(t)["redis"].Command[1:]
	password := slices.Index(command, "--requirepass")
	stopIf(t, password < 0 || command[password+1] != "geheim", "want Redis to ask for a password, got %q", command)
	s := testkit.Redis(t, slices.Delete(command, password, password+2)...) // its server is asked without one
	client := s.Client(t)
	for option, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction"} {
		got := client.ConfigGet(t.Context(), option).Val()[option]
		failIf(t, got != want, "%s = %q, want %q", option, got, want)
	}
}

// TestComposeRunsDaemonsThatAreAskedForTheirHealth checks that there are two of each daemon that may be, and the program that each is asked by; what shows
// people more runs under a profile.
func TestComposeRunsDaemonsThatAreAskedForTheirHealth(t *testing.T) {
	daemons, services := 0, readCompose(t)
	failIf(t, exec.Command(testkit.Binary(t), "poller", "--no-such-flag", "--help").Run() == nil,
		"an unknown flag was accepted with --help, so no test of a command line shows anything")
	for name, s := range services {
		got := s.Deploy.Replicas
		failIf(t, got != 2 && (name == "dispatcher" || name == "poller"), "%s: %d replicas, want 2", name, got)
		extra := slices.Contains([]string{"dashboard", "notifier", "prometheus", "grafana"}, name)
		failIf(t, slices.Equal(s.Profiles, []string{"observe"}) != extra, "%s: profiles %q", name, s.Profiles)
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			_, err := os.Stat(filepath.Join("../..", from))
			failIf(t, strings.HasPrefix(from, ".") && err != nil, "%s: %v", name, err)
		}
		if s.Image != "refreshd" {
			continue
		}
		daemons++
		expectAccepted(t, name, s.Command)
		failIf(t, s.Environment["REDIS_URL"] != "redis://:geheim@redis:6379", "%s: want Redis with its password, got %q", name, s.Environment["REDIS_URL"])
		if test := s.Healthcheck.Test; strings.Join(test[:3], " ") != "CMD /refreshd health" || s.Environment["REFRESHD_HEALTH"] == "" {
			t.Errorf("%s: want its health asked for by refreshd health where REFRESHD_HEALTH says, got %q and %q", name, test, s.Environment)
		} else {
			expectAccepted(t, name, test[2:])
		}
	}
	failIf(t, daemons != 5 || len(services["redis"].Healthcheck.Test) == 0,
		"want dispatcher, poller, worker, dashboard and notifier, and Redis asked too, got %d daemons", daemons)
}

// TestTheNotifierReadsTheRoutesOfComposeAndOfKubernetes starts it with each for a moment, and without a Redis.
func TestTheNotifierReadsTheRoutesOfComposeAndOfKubernetes(t *testing.T) {
	inside := filepath.Join(t.TempDir(), "routes.yaml")
	must(t, os.WriteFile(inside, []byte(fmt.Sprint(at(readManifest(t)[0], "data/routes.yaml"))), 0o600))
	for _, routes := range []string{"../../deploy/routes.yaml", inside} {
		told, err := exec.Command(testkit.Binary(t), "notifier", "--redis", "redis://127.0.0.1:1", "--routes", routes, "--for", "1ms").CombinedOutput()
		failIf(t, err != nil, "%s: %v\n%s", routes, err, told)
	}
}

// expectAccepted asks the program for help with a command line: it refuses a subcommand, a flag or a value that it does not know before it
// helps.
func expectAccepted(t *testing.T, who string, command []string) {
	t.Helper()
	out, err := exec.Command(testkit.Binary(t), slices.Concat(command, []string{"--help"})...).CombinedOutput()
	failIf(t, err != nil || !strings.Contains(string(out), "refreshd "+command[0]), "%s: refreshd %q: %v\n%s", who, command, err, out)
}
