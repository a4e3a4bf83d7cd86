package people

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	equal  = check.Equal
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// desk is where a person sits: a directory, and programs.
type desk struct {
	t        *testing.T
	dir      string
	refreshd string
	environ  []string
}

// command is a program that this person runs in their directory.
func (d *desk) command(program string, args ...string) *exec.Cmd {
	command := exec.Command(program, args...)
	command.Dir, command.Env = d.dir, d.environ
	return command
}

// start starts a program that goes on.
func (d *desk) start(program string, args ...string) *testkit.Process {
	d.t.Helper()
	return testkit.StartCommand(d.t, d.command(program, args...))
}

// run runs a program that ends well, and returns what it prints.
func (d *desk) run(program string, args ...string) string {
	d.t.Helper()
	output, err := d.command(program, args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, output)
	}
	return string(output)
}

// prints waits until a program prints a text.
func (d *desk) prints(text, program string, args ...string) {
	d.t.Helper()
	var last []byte
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("%s %s last printed\n%s", filepath.Base(program), strings.Join(args, " "), last)
		}
	})
	check.Eventually(d.t, program+" prints "+text, func() bool {
		last, _ = d.command(program, args...).CombinedOutput()
		return strings.Contains(string(last), text)
	})
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	must(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

// serve answers HTTP on loopback until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
