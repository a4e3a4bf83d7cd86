package feeds

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// site is a folder of feeds that a server serves.
type site struct {
	*testing.T
	dir     string // of the server; the feeds are in www
	address string // of the server
	origin  string // address of the server behind it, if it is a cache
}

// newSite makes a folder where the user nobody may write, who runs the server where root runs the test: most servers refuse to serve as root.
func newSite(t *testing.T) *site {
	s := &site{T: t, dir: check.Got(os.MkdirTemp("", "feeds-"))(t)} // not t.TempDir, where only its owner may go
	t.Cleanup(func() { must(t, os.RemoveAll(s.dir)) })
	must(t, os.Mkdir(s.path("www"), 0o755))
	must(t, os.Chmod(s.dir, 0o755))
	if who := nobody(t); who != nil {
		must(t, os.Chown(s.dir, int(who.Credential.Uid), int(who.Credential.Gid)))
	}
	return s
}

func nobody(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	who := check.Got(user.Lookup("nobody"))(t)
	uid, gid := check.Got(strconv.Atoi(who.Uid))(t), check.Got(strconv.Atoi(who.Gid))(t)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func (s *site) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}
func (s *site) port() string { return strings.TrimPrefix(s.address, "127.0.0.1:") }

// configure writes a configuration, in which the site replaces $DIR, $ADDRESS, $PORT, $ORIGIN and $ORIGIN_PORT.
func (s *site) configure(text string) (path string) {
	path = s.path("config")
	_, originPort, _ := strings.Cut(s.origin, ":")
	text = strings.NewReplacer("$DIR", s.dir, "$ADDRESS", s.address, "$PORT", s.port(), "$ORIGIN_PORT", originPort, "$ORIGIN", s.origin).Replace(text)
	must(s.T, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// start runs a server until the test ends, and returns when it takes connections; false: it has ended, as somebody else has got its port.
func (s *site) start(program string, args []string, environ ...string) bool {
	command := exec.Command(program, args...)
	command.Dir, command.SysProcAttr = s.dir, nobody(s.T)
	command.Env = append(os.Environ(), append(environ, "HOME="+s.dir)...)
	server := testkit.StartCommand(s.T, command)
	s.Cleanup(func() { server.Stop() }) // its children end with it
	ended := make(chan struct{})
	go func() { server.Wait(); close(ended) }()
	listens := false
	check.Eventually(s.T, program+" listens or ends", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		connection, err := net.Dial("tcp", s.address)
		if err != nil {
			return false
		}
		listens = true
		return connection.Close() == nil
	})
	return listens
}

// serve serves the folder in this process.
func (s *site) serve() (address string) {
	server := httptest.NewServer(http.FileServer(http.Dir(s.path("www"))))
	s.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// write writes a feed in place, as a program does that exports a table, or as of an older time.
func (s *site) write(name string, content []byte, at time.Time) {
	path := s.path("www", name)
	must(s.T, os.WriteFile(path, content, 0o644))
	if !at.IsZero() {
		must(s.T, os.Chtimes(path, at, at))
	}
}

// second is that in which a feed was written last.
func (s *site) second(name string) time.Time {
	return check.Got(os.Stat(s.path("www", name)))(s.T).ModTime().Truncate(time.Second)
}
