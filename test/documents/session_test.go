package documents

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// session is a shell in which the blocks of a page run one after the other: in a directory of its own that looks like a clone, with a Redis
// of its own, and with every port of the page somewhere else.
type session struct {
	t      *testing.T
	page   string
	dir    string
	server *testkit.Server
	ports  map[string]string // of the page, where they are
	script strings.Builder
	steps  []step // compared
	lines  []int  // their lines in the page
}

// mark encloses the output of a compared command.
const mark = "\x1e"

func newSession(t *testing.T, page string) *session {
	t.Helper()
	testkit.RequireProgram(t, "bash", "bash")
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	s := &session{t: t, page: page, dir: t.TempDir(), server: testkit.Redis(t), ports: map[string]string{}}
	_, port, _ := net.SplitHostPort(s.server.Addr)
	s.ports["6379"] = port
	programs := filepath.Join(s.dir, ".programs")
	err := os.Mkdir(programs, 0o700)
	for _, entry := range check.Got(os.ReadDir(root))(t) {
		if entry.Name() == "clients" { // pip builds in it
			err = errors.Join(err, os.CopyFS(filepath.Join(s.dir, entry.Name()), os.DirFS(filepath.Join(root, entry.Name()))))
		} else if !strings.HasPrefix(entry.Name(), ".") {
			err = errors.Join(err, os.Symlink(filepath.Join(check.Got(filepath.Abs(root))(t), entry.Name()), filepath.Join(s.dir, entry.Name())))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	binary, cli := testkit.Binary(t), check.Got(exec.LookPath("redis-cli"))(t)
	program(t, programs, "refreshd", fmt.Sprintf(`case "$1" in up|demo) ;; *) export REDIS_URL=${REDIS_URL:-%s} ;; esac
exec %q "$@"`, s.server.URL, binary))
	program(t, programs, "redis-cli", fmt.Sprintf("exec %q -p %s \"$@\"", cli, port))
	program(t, programs, "go", fmt.Sprintf(`case "$1 $2 $3 $4" in
"run ./cmd/refreshd "*) shift 2; exec "${0%%/*}/refreshd" "$@";;
"build -o refreshd ./cmd/refreshd") exec cp "${0%%/*}/refreshd" refreshd;;
"build -o "*) to=$(realpath -m "$3"); cd %[1]q && exec %[2]q build -o "$to" "${@:4}";;
*) cd %[1]q && exec %[2]q "$@";;
esac`, check.Got(filepath.Abs(root))(t), check.Got(exec.LookPath("go"))(t)))
	return s
}

var portOf = regexp.MustCompile(`(127\.0\.0\.1[: ]|localhost:|-p |--port )(\d{4,5})\b`)

func (s *session) elsewhere(text string) string {
	return portOf.ReplaceAllStringFunc(text, func(found string) string {
		parts := portOf.FindStringSubmatch(found)
		if s.ports[parts[2]] == "" {
			_, s.ports[parts[2]], _ = net.SplitHostPort(testkit.FreeAddress(s.t))
		}
		return parts[1] + s.ports[parts[2]]
	})
}

const (
	markLong   = "takes long"
	markGoesOn = "goes on"
	markNotRun = "not run: "
	markFile   = "file: "  // its text is saved under this name
	markUntil  = "until: " // its command is repeated until it prints this text
)

// interpreters run the files of a page. Python makes environments that find what the machine has, as no test reaches a registry.
var interpreters = map[string][2]string{".py": {"python3", "python with environments"}, ".js": {"node", "node"}, ".php": {"php", "php"}}

// save writes a file of the page, for an interpreter that has what the file imports.
func (s *session) save(name, text string) {
	s.t.Helper()
	if found, is := interpreters[filepath.Ext(name)]; is {
		interpreter, _ := testkit.Interpreter(s.t, found[1])
		path := check.Got(exec.LookPath(interpreter))(s.t) // a bare name would be found here again
		program(s.t, filepath.Join(s.dir, ".programs"), found[0], fmt.Sprintf(`[ "$1 $2" != "-m venv" ] || exec %q -m venv --system-site-packages "$3"
exec %[1]q "$@"`, path))
	}
	check.Must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text+"\n"), 0o600))
}

// install makes Python, Node and PHP find the clients of refreshd, and returns the environment for it.
func (s *session) install() []string {
	s.t.Helper()
	clients, vendor := filepath.Join(s.dir, "clients"), filepath.Join(s.dir, "vendor")
	check.Must(s.t, errors.Join(os.Mkdir(vendor, 0o700), os.Symlink(clients+"/php/src/Refreshd.php", vendor+"/autoload.php")))
	return []string{"PYTHONPATH=" + clients + "/python", "NODE_PATH=/usr/share/nodejs:" + clients + "/node"}
}

// goes is a setting of Go that would follow from another HOME.
func goes(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(string(check.Got(exec.Command("go", "env", name).Output())(t)))
}

func (s *session) add(blocks ...*block) {
	s.t.Helper()
	for _, b := range blocks {
		s.addOne(b)
	}
}

func (s *session) addOne(b *block) {
	fmt.Fprintf(&s.script, "printf '%%s' %q >.at\n", fmt.Sprint("line ", b.line))
	name, isFile := strings.CutPrefix(b.marker, markFile)
	until, repeated := strings.CutPrefix(b.marker, markUntil)
	text := s.elsewhere(strings.Join(b.lines, "\n"))
	switch {
	case isFile:
		s.save(name, text)
	case b.asks():
		for _, found := range b.steps() {
			s.steps, s.lines = append(s.steps, found), append(s.lines, b.line+found.at-1)
			command := s.elsewhere(found.command)
			if repeated {
				command = fmt.Sprintf("for _ in $(seq 600); do %s >.tried || true; grep -qF %q .tried && break; sleep 0.05; done; cat .tried", command, until)
			}
			fmt.Fprintf(&s.script, "printf '%s'\n%s\n", mark, command)
		}
		fmt.Fprintf(&s.script, "printf '%s%s'\n", mark, mark)
	case b.marker == markGoesOn:
		fmt.Fprintf(&s.script, "(%s) >>.background 2>&1 &\n", text)
		if port := portOf.FindStringSubmatch(text); port != nil {
			fmt.Fprintf(&s.script, "for _ in $(seq 600); do (: </dev/tcp/127.0.0.1/%s) 2>/dev/null && break; sleep 0.05; done\n", port[2])
		}
	default:
		fmt.Fprintf(&s.script, "%s\n", text)
	}
}

func (s *session) run() {
	s.t.Helper()
	shell := exec.Command("bash", "-e", "-c", s.script.String())
	shell.Dir = s.dir
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Env = append(os.Environ(), "PATH="+filepath.Join(s.dir, ".programs")+":"+os.Getenv("PATH"), "REDIS_URL=", "TZ=UTC", "HOME="+s.dir,
		"GOCACHE="+goes(s.t, "GOCACHE"), "GOPATH="+goes(s.t, "GOPATH"), "PIP_NO_INDEX=1", "PIP_NO_BUILD_ISOLATION=0")
	shell.Env = append(shell.Env, s.install()...)
	out := check.Got(os.Create(filepath.Join(s.dir, ".out")))(s.t) // a pipe would be held open by what goes on
	defer func() { _ = out.Close() }()
	shell.Stdout, shell.Stderr = out, check.Got(os.Create(filepath.Join(s.dir, ".complaints")))(s.t)
	if err := shell.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) })
	stuck := time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) })
	err := shell.Wait()
	stuck.Stop()
	text, _ := os.ReadFile(out.Name())
	if err != nil {
		at, _ := os.ReadFile(filepath.Join(s.dir, ".at"))
		said, _ := os.ReadFile(filepath.Join(s.dir, ".complaints"))
		behind, _ := os.ReadFile(filepath.Join(s.dir, ".background"))
		s.t.Fatalf("%s: the block at %s: %v\n%s\n%s%s", s.page, at, err, text, said, behind)
	}
	s.compare(string(bytes.TrimSuffix(text, []byte("\n"))))
}

func (s *session) compare(text string) {
	s.t.Helper()
	var outputs []string
	for part := range strings.SplitSeq(text, mark+mark) {
		if pieces := strings.Split(part, mark); len(pieces) > 1 {
			outputs = append(outputs, pieces[1:]...)
		}
	}
	if len(outputs) != len(s.steps) {
		s.t.Fatalf("%s: want what %d commands print, got %d: %q", s.page, len(s.steps), len(outputs), text)
	}
	for i, found := range s.steps {
		want, got := normal(strings.Join(found.output, "\n")), normal(strings.TrimRight(outputs[i], "\n"))
		for from, to := range s.ports {
			got = strings.ReplaceAll(got, to, from)
		}
		if diff := cmp.Diff(want, got); diff != "" && !excerpt(want, got) {
			s.t.Errorf("%s line %d: %s (-page +printed):\n%s\nwhole:\n%s", s.page, s.lines[i], found.command, diff, outputs[i])
		}
	}
}

// excerpt reports whether a page has what was printed, with "…" for what it leaves out.
func excerpt(page, printed string) bool {
	found := strings.Contains(page, "…")
	for piece := range strings.SplitSeq(page, "…") {
		if _, rest, is := strings.Cut(printed, strings.TrimSpace(piece)); is {
			printed = rest
		} else {
			found = false
		}
	}
	return found
}
