package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// build compiles the binary once per test process. `go run` keeps the linked binary, which `go build` does not.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "refreshd-")
	if err != nil {
		return "", err
	}
	built = dir
	binary := filepath.Join(dir, "refreshd")
	output, err := exec.Command("go", "run", "-exec", "cp", "github.com/refreshd/refreshd/cmd/refreshd", binary).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build refreshd: %w\n%s", err, output)
	}
	return binary, nil
})

// built is the directory of the binary; empty until it is needed. Written by build only, read when all tests have ended.
var built string

// Binary returns the path of the compiled command.
func Binary(t testing.TB) string {
	t.Helper()
	binary, err := build()
	check.Must(t, err)
	return binary
}

// Process is one running program. It is killed when the test ends.
type Process struct {
	command *exec.Cmd
	output  check.Buffer
	printed chan struct{} // holds a token when something was printed since it was last looked at
	exited  chan struct{}
}

// Refreshd starts the command with these arguments.
func Refreshd(t testing.TB, args ...string) *Process {
	t.Helper()
	return Start(t, Binary(t), args...)
}

// Start starts a program. Its output is logged if the test fails.
func Start(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(program, args...))
}

// StartCommand starts a program with a directory and an environment of its own, likewise.
func StartCommand(t testing.TB, command *exec.Cmd) *Process {
	t.Helper()
	p, err := launch(command)
	check.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s %s\n%s", filepath.Base(command.Path), strings.Join(command.Args[1:], " "), p.output.String())
		}
	})
	return p
}

func launch(command *exec.Cmd) (*Process, error) {
	p := &Process{command: command, printed: make(chan struct{}, 1), exited: make(chan struct{})}
	p.output.Written = func() { backoff.Signal(p.printed) }
	command.Stdout, command.Stderr = &p.output, &p.output
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	go func() { _ = command.Wait(); close(p.exited) }()
	return p, nil
}

// AwaitOutput waits until the process has printed text. One that listens to signals says that it has started only then: a signal
// that comes earlier kills it.
func (p *Process) AwaitOutput(t testing.TB, text string) {
	t.Helper()
	limit := time.NewTimer(check.Limit)
	defer limit.Stop()
	for !strings.Contains(p.output.String(), text) {
		select {
		case <-limit.C:
			t.Fatalf("want a process that prints %q, it did not", text)
		case <-p.printed:
		case <-p.exited:
			t.Fatalf("want a process that prints %q, got the end of it", text)
		}
	}
}

// Kill ends the process as kill -9 does, and returns when it is gone.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL); <-p.exited }

// Stop asks the process to end and returns its exit code.
func (p *Process) Stop() int {
	p.Ask()
	return p.Wait()
}

// Ask asks the process to end and does not wait for it.
func (p *Process) Ask() { p.Signal(syscall.SIGTERM) }

// Wait waits for the end of the process and returns its exit code.
func (p *Process) Wait() int {
	<-p.exited
	return p.command.ProcessState.ExitCode()
}

// Output is all that a process printed that has ended.
func (p *Process) Output() string { <-p.exited; return p.output.String() }

// Busy is how long the processor was busy with a process that has ended.
func (p *Process) Busy() time.Duration {
	<-p.exited
	return p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
}

// Signal sends the process a signal.
func (p *Process) Signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// File is the path of a file of /proc about a running process, on Linux.
func (p *Process) File(name string) string {
	return fmt.Sprintf("/proc/%d/%s", p.command.Process.Pid, name)
}

// RequireProgram skips the test when the program is not installed, and says which Debian package has it. When the
// environment variable CI is not empty it fails instead: there, a test that does not run is a test that is lost.
func RequireProgram(t testing.TB, name, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	missing(t, name+" not found in PATH", debianPackage)
}

func missing(t testing.TB, what, debianPackage string) {
	t.Helper()
	const advice = "%s: apt-get install %s"
	if os.Getenv("CI") != "" {
		t.Fatalf(advice, what, debianPackage)
	}
	t.Skipf(advice, what, debianPackage)
}

// interpreter is a language in which a worker may be written.
type interpreter struct {
	programs []string // the first that knows Redis is taken
	probe    []string // arguments with which one that knows Redis succeeds
	packages string   // of Debian
}

var interpreters = map[string]interpreter{
	"python":                   {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis"}, "python3 python3-redis"},
	"python with requests":     {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis, requests"}, "python3 python3-redis python3-requests"},
	"python with environments": {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis, requests, ensurepip, setuptools, wheel"}, "python3 python3-redis python3-requests python3-venv python3-wheel"},
	"python with psycopg":      {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis, psycopg"}, "python3 python3-redis python3-psycopg"},
	"python with databases":    {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis, psycopg, pymysql"}, "python3 python3-redis python3-psycopg python3-pymysql"},
	"python with Django":       {[]string{"python3", "/usr/bin/python3"}, []string{"-c", "import redis, django"}, "python3 python3-redis python3-django"},
	"node":                     {[]string{"node"}, []string{"-e", "require('redis')"}, "nodejs node-redis"},
	"node with Express":        {[]string{"node"}, []string{"-e", "require('redis'), require('express'), require('ejs')"}, "nodejs node-redis node-express node-ejs"},
	"php":                      {[]string{"php"}, []string{"-r", "exit(extension_loaded('redis') ? 0 : 1);"}, "php-cli php-redis"},
	"php with databases":       {[]string{"php"}, []string{"-r", "exit(extension_loaded('redis') && extension_loaded('pdo_pgsql') && extension_loaded('pdo_mysql') ? 0 : 1);"}, "php-cli php-redis php-pgsql php-mysql"},
	"php with Laravel":         {[]string{"php"}, []string{"-r", laravel}, "php-cli php-redis php-sqlite3 php-illuminate-console php-illuminate-database php-illuminate-view"},
	"ruby with Rails":          {[]string{"ruby"}, []string{"-e", "%w[redis sqlite3 active_record action_view rake].each { |gem| require gem }"}, "ruby-redis ruby-sqlite3 ruby-activerecord ruby-actionview"},
}

// laravel tells whether PHP has the components of Laravel that Debian has.
const laravel = `foreach (["Console", "Database", "View"] as $part) {
	is_file("/usr/share/php/Illuminate/$part/autoload.php") && extension_loaded("redis") && extension_loaded("pdo_sqlite") || exit(1);
}`

// Interpreter returns the program of a language, a key of interpreters, that has the usual client of Redis, and an
// environment in which it finds that. Without one it skips the test, or fails it in CI, as RequireProgram does.
func Interpreter(t testing.TB, language string) (program string, environ []string) {
	t.Helper()
	wanted, environ := interpreters[language], append(os.Environ(), "NODE_PATH=/usr/share/nodejs") // where Debian has node-redis
	for _, program := range wanted.programs {
		probe := exec.Command(program, wanted.probe...)
		if probe.Env = environ; probe.Run() == nil {
			return program, environ
		}
	}
	missing(t, language+" with a client of Redis not found", wanted.packages)
	return "", nil
}
