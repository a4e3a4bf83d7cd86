package examples

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// startMariaDB starts an empty MariaDB on loopback, which asks for no password, with a database that is called test.
func startMariaDB(t *testing.T, program string) (address string) {
	t.Helper()
	dir := check.Got(os.MkdirTemp("", "mariadb-"))(t) // not t.TempDir, which is too long for a socket
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Mkdir(filepath.Join(dir, "test"), 0o755))
	address = testkit.FreeAddress(t)
	options := []string{"--no-defaults", "--datadir=" + dir, "--socket=" + filepath.Join(dir, "socket"), "--bind-address=127.0.0.1", "--port=" + portOf(address),
		"--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
	if os.Getuid() == 0 {
		options = append(options, "--user=root")
	}
	server := testkit.StartCommand(t, asUser(nil, program, options...))
	t.Cleanup(func() { server.Signal(syscall.SIGKILL); server.Wait() }) // there is nothing to keep
	server.AwaitOutput(t, "ready for connections")
	return address
}

// mariadbProgram finds the server, which Debian does not put into everybody's PATH.
func mariadbProgram(t *testing.T) string {
	t.Helper()
	const debian = "/usr/sbin/mariadbd"
	if _, err := os.Stat(debian); err == nil {
		return debian
	}
	testkit.RequireProgram(t, "mariadbd", "mariadb-server-core")
	return "mariadbd"
}
