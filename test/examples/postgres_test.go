package examples

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
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
	dir := check.Got(os.MkdirTemp("", "postgres-"))(t) // not t.TempDir, where only the user who runs the test may go
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	who := postgresUser(t, dir)
	output, err := asUser(who, initdb, "-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput()
	stopIf(t, err != nil, "initdb: %v\n%s", err, output)
	address = testkit.FreeAddress(t)
	server := testkit.StartCommand(t, asUser(who, postgres, "-D", dir, "-h", "127.0.0.1", "-p", portOf(address), "-k", "", "-F"))
	t.Cleanup(func() { server.Signal(syscall.SIGQUIT); server.Wait() }) // its children end with it
	server.AwaitOutput(t, "ready to accept connections")
	return address
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

// postgresUser gives the folder to the user postgres where root runs the test, as which Postgres refuses to run.
func postgresUser(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	who := postgresCredential(t)
	if who != nil {
		must(t, os.Chown(dir, int(who.Credential.Uid), int(who.Credential.Gid)))
	}
	return who
}

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
