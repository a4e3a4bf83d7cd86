package conformance_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/care/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/poller"
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
	for language, extension := range map[string]string{"python": "py", "node": "js", "php": "php"} {
		t.Run(language, func(t *testing.T) {
			if language != "python" {
				long.Only(t)
			}
			t.Parallel()
			program, environ := testkit.Interpreter(t, language)
			users := fixture.WithUsers(t, store.DefaultQueue)
			t.Cleanup(func() { users.ExpectNoRefusal(t) })
			startDaemons(t, users)
			run := func(role acl.Role, script string) *exec.Cmd {
				command := exec.Command(program, fromRoot(t, "clients/"+language+"/examples/"+script+"."+extension))
				command.Env = append(environ, "REDIS_URL="+users.URL(t, role), "REFRESHD_CONCURRENCY=1")
				return command
			}
			output, err := run(acl.Application, "application").CombinedOutput()
			diff := cmp.Diff(told, string(output))
			stopIf(t, diff != "" || err != nil, "%v, output (-want +got):\n%s", err, diff)
			var said testkit.Buffer
			worker := run(acl.Worker, "conformance")
			worker.Stdout, worker.Stderr = &said, &said
			must(t, worker.Start())
			awaitSuccess(t, users)
			must(t, worker.Process.Signal(os.Interrupt))
			err = worker.Wait()
			failIf(t, err != nil, "%v: %s", err, said.String())
		})
	}
}

// TestAClientThatMayRunNoScriptPopsItsAttempts lets each of them work with the rights of a worker that knows but two lists.
func TestAClientThatMayRunNoScriptPopsItsAttempts(t *testing.T) {
	for language, extension := range map[string]string{"python": "py", "node": "js", "php": "php"} {
		t.Run(language, func(t *testing.T) {
			if language != "python" {
				long.Only(t)
			}
			t.Parallel()
			program, environ := testkit.Interpreter(t, language)
			users := fixture.WithUsers(t, store.DefaultQueue)
			startDaemons(t, users)
			var said testkit.Buffer
			worker := exec.Command(program, fromRoot(t, "clients/"+language+"/examples/conformance."+extension))
			worker.Env = append(environ, "REDIS_URL="+users.URL(t, acl.ForeignWorker), "REFRESHD_CONCURRENCY=1")
			worker.Stdout, worker.Stderr = &said, &said
			must(t, worker.Start())
			awaitSuccess(t, users)
			must(t, worker.Process.Signal(os.Interrupt))
			must(t, worker.Wait())
			failIf(t, strings.Count(said.String(), "waits for its deadline") != 1, "want one warning, got %s", said.String())
		})
	}
}

func TestAnApplicationThatMayNotSendCommandsIsToldSo(t *testing.T) {
	users := fixture.WithUsers(t, store.DefaultQueue)
	for language, extension := range map[string]string{"python": "py", "node": "js", "php": "php"} {
		t.Run(language, func(t *testing.T) {
			if language != "python" {
				long.Only(t)
			}
			program, environ := testkit.Interpreter(t, language)
			command := exec.Command(program, fromRoot(t, "clients/"+language+"/examples/application."+extension))
			command.Env = append(environ, "REDIS_URL="+users.URL(t, acl.Viewer))
			if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "no permissions") || strings.Contains(string(output), "no reply") {
				t.Errorf("expected that Redis refuses the user, found %v, %s", err, output)
			}
		})
	}
}

func TestAWorkerWithoutARedisSaysWhereItLooksAndEndsWhenItIsAsked(t *testing.T) {
	long.Only(t)
	for language, extension := range map[string]string{"python": "py", "node": "js", "php": "php"} {
		start := func(t *testing.T, address string) *testkit.Process {
			program, environ := testkit.Interpreter(t, language)
			command := exec.Command(program, fromRoot(t, "clients/"+language+"/examples/conformance."+extension))
			command.Env = append(environ, "REDIS_URL=redis://"+address)
			return testkit.StartCommand(t, command)
		}
		end := func(t *testing.T, worker *testkit.Process, address string) {
			worker.AwaitOutput(t, address)
			defer time.AfterFunc(testkit.Limit, worker.Kill).Stop()
			code := worker.Stop()
			failIf(t, code != 0, "want the worker to end well, got exit code %d", code)
		}
		t.Run(language+" from the beginning", func(t *testing.T) {
			t.Parallel()
			address := testkit.FreeAddress(t)
			end(t, start(t, address), address)
		})
		t.Run(language+" while it waits for work", func(t *testing.T) {
			t.Parallel()
			server := testkit.Redis(t)
			worker, clients := start(t, server.Addr), server.Client(t)
			testkit.Eventually(t, "the worker waits for work", func() bool {
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
	d := testkit.Got(dispatcher.New(users.Store(t, acl.Dispatcher), dispatcher.Config{}))(t)
	p := testkit.Got(poller.New(users.Store(t, acl.Poller), poller.Config{}))(t)
	testkit.Run(t, d.Run, p.Run)
}

// awaitSuccess saves a model with the Go client, as an application too, and waits until it has been refreshed.
func awaitSuccess(t *testing.T, users *fixture.Users) {
	t.Helper()
	app := testkit.Got(client.New(fixture.Open(t, users.URL(t, acl.Application), store.Config{}), client.Config{}))(t)
	must(t, testkit.Only(app.Put(t.Context(), client.Definition{UID: "tbl_2", Payload: map[string]any{"do": "succeed"}})))
	viewer := users.Store(t, acl.Viewer)
	for after := store.TailStart; ; {
		entries, next, err := viewer.Report().Tail(t.Context(), after)
		must(t, err)
		for _, e := range entries {
			if e.UID == "tbl_2" && e.Event == model.EventSuccess {
				return
			}
		}
		after = next
	}
}
