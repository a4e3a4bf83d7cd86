package examples

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// startPostgres starts the Postgres of the system.
func startPostgres(t *testing.T) (address string) {
	t.Helper()
	return startPostgresOf(t, postgresProgram(t, "initdb"), postgresProgram(t, "postgres"))
}

// startPostgresOf starts an empty Postgres on loopback, which asks for no password.
func startPostgresOf(t *testing.T, initdb, postgres string) (address string) {
	t.Helper()
	who, empty := postgresCredential(t), emptyDatabase(t, initdb)
	dir := check.Got(os.MkdirTemp("", "postgres-"))(t) // not t.TempDir, where only the user who runs the test may go
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	give(t, who, dir)
	output, err := asUser(who, "cp", "-R", empty, dir+"/data").CombinedOutput()
	stopIf(t, err != nil, "copy %s: %v\n%s", empty, err, output)
	address = testkit.FreeAddress(t)
	server := testkit.StartCommand(t, asUser(who, postgres, "-D", dir+"/data", "-h", "127.0.0.1", "-p", portOf(address), "-k", "", "-F"))
	t.Cleanup(func() { server.Signal(syscall.SIGQUIT); server.Wait() }) // its children end with it
	server.AwaitOutput(t, "ready to accept connections")
	return address
}

// databases are the folders that each initdb has filled: to copy one takes a tenth of the time.
var databases = struct {
	sync.Mutex
	folders map[string]string // guarded by the mutex
}{folders: map[string]string{}}

// emptyDatabase returns the folder of a database that nobody has started. It stays until the tests of the package have ended.
func emptyDatabase(t *testing.T, initdb string) string {
	t.Helper()
	databases.Lock()
	defer databases.Unlock()
	if dir := databases.folders[initdb]; dir != "" {
		return dir
	}
	dir, who := check.Got(os.MkdirTemp("", "postgres-"))(t), postgresCredential(t)
	testkit.AtEnd(func() { _ = os.RemoveAll(dir) })
	give(t, who, dir)
	output, err := asUser(who, initdb, "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput()
	stopIf(t, err != nil, "initdb: %v\n%s", err, output)
	databases.folders[initdb] = dir
	return dir
}

// give gives a folder to a user; nil: to whom it belongs.
func give(t *testing.T, who *syscall.SysProcAttr, dir string) {
	t.Helper()
	if who != nil {
		must(t, os.Chown(dir, int(who.Credential.Uid), int(who.Credential.Gid)))
	}
}

func portOf(address string) string { return address[len("127.0.0.1:"):] }

// postgresProgram finds a program of the server, which Debian does not put into the PATH.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	testkit.RequireProgram(t, name, "postgresql")
	return name
}

// postgresCredential is the user postgres where root runs the test, as which Postgres refuses to run.
func postgresCredential(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	who := check.Got(user.Lookup("postgres"))(t)
	uid, gid := check.Got(strconv.Atoi(who.Uid))(t), check.Got(strconv.Atoi(who.Gid))(t)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func asUser(who *syscall.SysProcAttr, program string, args ...string) *exec.Cmd {
	command := exec.Command(program, args...)
	command.Dir, command.SysProcAttr = "/", who
	return command
}
