package conformance_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

const told = `put: applied
put again: unchanged
run: applied
disable: applied
run it then: refused, stopped
enable: applied
remove: applied
run it then: refused, unknown_model
put nonsense: refused, malformed
`

// TestTheClientsDoTheirWorkWithTheRightsOfTheirRolesAlone lets each of them be application and worker.
func TestTheClientsDoTheirWorkWithTheRightsOfTheirRolesAlone(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		t.Parallel()
		users := fixture.WithUsers(t, store.DefaultQueue)
		t.Cleanup(func() { users.ExpectNoRefusal(t) })
		startDaemons(t, users)
		output, err := example(t, language, "application", "REDIS_URL="+users.URL(t, acl.Application)).CombinedOutput()
		diff := cmp.Diff(told, string(output))
		stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
		worker := testkit.StartCommand(t, example(t, language, "conformance", "REDIS_URL="+users.URL(t, acl.Worker), "REFRESHD_CONCURRENCY=1"))
		awaitSuccess(t, users)
		check.Equal(t, worker.Stop(), 0)
	})
}

// example is an example of a client, with the Redis that its environment names.
func example(t *testing.T, language, name string, environ ...string) *exec.Cmd {
	t.Helper()
	program, found := testkit.Interpreter(t, language)
	extension := map[string]string{"python": "py", "node": "js", "php": "php"}[language]
	command := exec.Command(program, fromRoot(t, "clients/"+language+"/examples/"+name+"."+extension))
	command.Env = append(found, environ...)
	return command
}

// TestAClientThatMayRunNoScriptPopsItsAttempts lets each of them work with the rights of a worker that knows but two lists.
func TestAClientThatMayRunNoScriptPopsItsAttempts(t *testing.T) {
	inLanguages(t, asking, func(t *testing.T, language string) {
		t.Parallel()
		users := fixture.WithUsers(t, store.DefaultQueue)
		startDaemons(t, users)
		worker := testkit.StartCommand(t, example(t, language, "conformance", "REDIS_URL="+users.URL(t, acl.ForeignWorker), "REFRESHD_CONCURRENCY=1"))
		awaitSuccess(t, users)
		check.Equal(t, worker.Stop(), 0)
		failIf(t, strings.Count(worker.Output(), "waits for its deadline") != 1, "want one warning, got %s", worker.Output())
	})
}

func TestAnApplicationThatMayNotSendCommandsIsToldSo(t *testing.T) {
	users := fixture.WithUsers(t, store.DefaultQueue)
	inLanguages(t, asking, func(t *testing.T, language string) {
		output, err := example(t, language, "application", "REDIS_URL="+users.URL(t, acl.Viewer)).CombinedOutput()
		failIf(t, err == nil || !strings.Contains(string(output), "no permissions") || strings.Contains(string(output), "no reply"),
			"expected that Redis refuses the user, found %v, %s", err, output)
	})
}

func TestAWorkerWithoutARedisSaysWhereItLooksAndEndsWhenItIsAsked(t *testing.T) {
	long.Only(t)
	for _, language := range asking {
		start := func(t *testing.T, address string) *testkit.Process {
			return testkit.StartCommand(t, example(t, language, "conformance", "REDIS_URL=redis://"+address))
		}
		end := func(t *testing.T, worker *testkit.Process, address string) {
			worker.AwaitOutput(t, address)
			defer time.AfterFunc(check.Limit, worker.Kill).Stop()
			code := worker.Stop()
			failIf(t, code != 0, "want the worker to end well, got exit code %d", code)
		}
		t.Run(language+" from the beginning", func(t *testing.T) {
			t.Parallel()
			end(t, start(t, testkit.Nowhere), testkit.Nowhere)
		})
		t.Run(language+" while it waits for work", func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			worker, clients := start(t, server.Addr), server.Client(t)
			check.Eventually(t, "the worker waits for work", func() bool {
				return strings.Contains(clients.Info(t.Context(), "clients").Val(), "blocked_clients:1")
			})
			server.Kill(t)
			end(t, worker, server.Addr)
		})
	}
}

// startDaemons runs a dispatcher and a poller, each as its own user, until the test ends.
func startDaemons(t *testing.T, users *fixture.Users) {
	t.Helper()
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(users.Store(t, acl.Dispatcher)), dispatcher.Config{}))(t)
	p := check.Got(poller.New(poller.RoomsOf(users.Store(t, acl.Poller)), poller.Config{}))(t)
	check.Run(t, d.Run, p.Run)
}

// awaitSuccess saves a model with the Go client, as an application too, and waits until it has been refreshed.
func awaitSuccess(t *testing.T, users *fixture.Users) {
	t.Helper()
	url := users.URL(t, acl.Application)
	app := check.Got(client.Open(t.Context(), url, fixture.Open(t, url, store.Config{}).Name, client.Config{}))(t)
	defer func() { must(t, app.Close()) }()
	must(t, check.Only(app.Put(t.Context(), client.Definition{UID: "tbl_2", Payload: map[string]any{"do": "succeed"}})))
	viewer := users.Store(t, acl.Viewer)
	for after := report.TailStart; ; {
		entries, next, err := report.Of(viewer).Tail(t.Context(), after)
		must(t, err)
		for _, e := range entries {
			if e.UID == "tbl_2" && e.Event == model.EventSuccess {
				return
			}
		}
		after = next
	}
}
