package conformance_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/lab/conformance"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// patience outlasts a busy machine; only what fails takes so long.
const patience = time.Minute

// play returns the failed checks, as "level scenario: check".
func play(t *testing.T, config conformance.Config) (conformance.Report, []string) {
	t.Helper()
	var output check.Buffer
	config.Environ, config.Stderr = append(os.Environ(), config.Environ...), &output
	config.Flood, config.Patience = cmp.Or(config.Flood, long.Or(50, 100)), cmp.Or(config.Patience, patience)
	report, err := conformance.Run(context.Background(), config)
	stopIf(t, err != nil, "%v\n%s", err, output.String())
	failing := []string{}
	for _, c := range report.Checks {
		if !c.Holds {
			failing = append(failing, string(c.Level)+" "+c.Scenario+": "+c.Text)
			t.Logf("%s %s: %s: %s", c.Level, c.Scenario, c.Text, c.Found)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return report, failing
}

// self is this program as a worker.
func self(t *testing.T, worker string) conformance.Config {
	t.Helper()
	program := check.Got(os.Executable())(t)
	return conformance.Config{Clock: time.Now, Command: []string{program}, Environ: []string{workerVariable + "=" + worker}}
}

// in is the example of a client.
func in(t *testing.T, language string) conformance.Config {
	t.Helper()
	if language == "bash" {
		testkit.RequireProgram(t, "redis-cli", "redis-tools")
		testkit.RequireProgram(t, "jq", "jq")
		return conformance.Config{
			Clock:   time.Now,
			Command: []string{fromRoot(t, "clients/bash/worker.sh"), fromRoot(t, "clients/bash/conformance.sh")},
			Environ: []string{"REFRESHD_SIGNS_EVERY=1"},
		}
	}
	command := example(t, language, "conformance")
	return conformance.Config{Clock: time.Now, Command: command.Args, Environ: command.Env}
}

func fromRoot(t *testing.T, path string) string {
	t.Helper()
	path = check.Got(filepath.Abs("../../../" + path))(t)
	return path
}

func TestThePoolOfPackageWorkerDoesAllThatAWorkerShould(t *testing.T) {
	t.Parallel()
	expectAll(t, self(t, "pool"))
}

// TestEachClientThatIsInstalledWorks is quick: the long tests play all scenarios.
func TestEachClientThatIsInstalledWorks(t *testing.T) {
	for _, language := range append(asking, "bash") {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			config := in(t, language)
			config.Scenarios = []string{"success", "shutdown"}
			if language != "bash" { // its attempts start many programs
				config.Scenarios = append(config.Scenarios, "stale", "reconnect", "connection")
			}
			report, failing := play(t, config)
			failIf(t, !report.Holds, "expected all that a worker must do, found failing %q", failing)
		})
	}
}

func TestThePythonClientDoesAllThatAWorkerShould(t *testing.T) {
	long.Only(t)
	t.Parallel()
	expectAll(t, in(t, "python"))
}

func TestTheNodeClientDoesAllThatAWorkerShould(t *testing.T) {
	long.Only(t)
	t.Parallel()
	expectAll(t, in(t, "node"))
}

func TestThePHPClientDoesAllThatAWorkerShould(t *testing.T) {
	long.Only(t)
	t.Parallel()
	expectAll(t, in(t, "php"))
}

// slow are the scenarios that last for many seconds.
var slow = []string{"refusals", "mute", "outage", "reply"}

// expectAll plays all scenarios, the slow ones with the long tests only.
func expectAll(t *testing.T, config conformance.Config) {
	t.Helper()
	config.Scenarios = slices.DeleteFunc(conformance.Names(), func(name string) bool { return slices.Contains(slow, name) && !long.Enabled() })
	report, failing := play(t, config)
	stopIf(t, len(failing) > 0 || !report.Holds || report.Cost == nil, "expected all to hold and a cost, found failing %q, cost %+v", failing, report.Cost)
	cost, least := *report.Cost, 2./8 // one take and one push for all eight slots of the flood: how much comes together is up to the machine
	failIf(t, cost.Attempts != long.Or(50, 100) || cost.Commands < least || cost.RoundTrips <= 0 || cost.RoundTrips > cost.Commands || cost.PerSecond <= 0,
		"expected what each attempt of the flood has cost, found %+v", cost)
}

// TestTheBashWorkerDoesAllThatAWorkerMust also says what it does not do.
func TestTheBashWorkerDoesAllThatAWorkerMust(t *testing.T) {
	long.Only(t)
	config := in(t, "bash")
	config.Patience, config.Flood = 30*time.Second, 20 // each attempt of it starts some twenty programs
	report, failing := play(t, config)
	want := []string{
		"should success: the owner is told how far it is: user_friendly_status, progress",
		"should failure: with its error_type",
		"should failure: with user_friendly_reason",
		"should failure: work that cannot be done now is postponed",
		"should names: works in a queue with names of its own and a nested payload",
		"should parts: works on all parts of a queue, and answers to reply_to",
	}
	diff := gocmp.Diff(want, failing)
	failIf(t, diff != "" || !report.Holds, "failing (-want +got):\n%s", diff)
}

func TestAWorkerThatListensToNobodyIsFound(t *testing.T) {
	long.Only(t)
	t.Parallel()
	config := self(t, "naive")
	config.Scenarios, config.Patience = []string{"success", "stale", "malformed", "reconnect", "shutdown"}, time.Second
	report, failing := play(t, config)
	for _, want := range []string{
		"must stale: stops when its attempt no longer counts",
		"must malformed: goes on after entries that cannot be read",
		"must shutdown: hands back what it has not finished: interrupted",
		"should success: the begin of the work is told: started",
		"should reconnect: a result that Redis did not take is pushed again",
	} {
		failIf(t, !slices.Contains(failing, want), "expected to fail: %s; found %q", want, failing)
	}
	failIf(t, report.Holds, "expected a worker that does not pass")
}

func TestAWorkerThatTakesOthersWithAKillerIsFound(t *testing.T) {
	t.Parallel()
	config := self(t, "heedless")
	config.Scenarios = []string{"poison"}
	_, failing := play(t, config)
	const alone = "should poison: works alone on what has killed workers: "
	diff := gocmp.Diff([]string{alone + "killer1", alone + "killer2"}, failing)
	failIf(t, diff != "", "failing (-want +got):\n%s", diff)
}

func TestAWorkerThatDoesNotStartIsSaid(t *testing.T) {
	t.Parallel()
	config := conformance.Config{Clock: time.Now, Command: []string{"/no/such/worker"}, Scenarios: []string{"success"}}
	if _, err := conformance.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "scenario success: start the worker: ") {
		t.Errorf("expected the start to fail, found %v", err)
	}
	config.Command = []string{"sh", "-c", "echo 'no \x1b[31mredis' >&2; exit 3"}
	var output check.Buffer
	config.Stderr = &output
	report := check.Got(conformance.Run(t.Context(), config))(t)
	found := report.Checks[0].Found
	failIf(t, report.Holds || !strings.Contains(found, "the worker has ended: exit status 3"), "expected what became of the worker, found %q", found)
	failIf(t, output.String() != "[success] no  [31mredis\n", "expected its words behind a prefix, found %q", output.String())
}

func TestAPlanOutOfRangeIsRefused(t *testing.T) {
	for want, config := range map[string]conformance.Config{
		"the command of a worker":                    {},
		"scenario: expected one of success, failure": {Command: []string{"x"}, Scenarios: []string{"flod"}},
		"flood: expected 1 to 100000":                {Command: []string{"x"}, Flood: -1},
		"patience: expected 1s to 10m":               {Command: []string{"x"}, Patience: time.Millisecond},
		"a single Redis without TLS":                 {Command: []string{"x"}, Redis: "rediss://127.0.0.1:1"},
	} {
		config.Clock = time.Now
		_, err := conformance.Run(t.Context(), config)
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "expected %q, found %v", want, err)
	}
}
