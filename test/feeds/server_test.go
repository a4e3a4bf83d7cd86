package feeds

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// server is a program that people serve feeds with, as they configure it.
type server struct {
	name    string
	program string // empty: it is a part of this one
	debian  string // the package of Debian that has it
	npm     string // the package of npm that it is of
	// args are those with which it serves a site in the foreground. modules is the folder that it takes modules from.
	args    func(s *site, modules string) []string
	modules string   // the folder where Debian has them
	version []string // arguments with which the program tells its version; nil: its responses tell it

	cache bool   // whether it stands in front of another server, which is that of Go
	stale bool   // whether nothing makes it ask that server before a time of its own
	whole bool   // whether it never answers 304
	note  string // for the table
}

// more is the folder with other versions of servers, NAME-VERSION/NAME, and with node/node_modules. .ci/feeds fills it.
var more = os.Getenv("REFRESHD_FEEDS")

// installation is one version of a server.
type installation struct {
	program string
	root    string // of the files of its package
}

func (s *server) installations() []installation {
	if s.npm != "" {
		return []installation{{program: s.programOfNpm()}}
	}
	found := []installation{{program: s.program}}
	others, _ := filepath.Glob(filepath.Join(more, s.program+"-[0-9]*", s.program))
	if more == "" || s.program == "" {
		others = nil
	}
	for _, program := range others {
		found = append(found, installation{program, filepath.Join(filepath.Dir(program), "unpacked")})
	}
	return found
}

func (s *server) programOfNpm() string {
	if s.program == "node" {
		return s.program
	}
	return filepath.Join(more, "node/node_modules/.bin", s.program)
}

// require skips the test where a server is missing, and fails it in CI if Debian has it.
func (s *server) require(t *testing.T) {
	t.Helper()
	switch {
	case s.npm != "" && more == "":
		t.Skip("it is of npm: make feeds runs it")
	case s.debian != "":
		testkit.RequireProgram(t, s.program, s.debian)
	}
}

func (s *server) start(site *site, i installation) {
	if s.cache {
		site.origin = site.serve()
	}
	if s.program == "" {
		site.address = site.serve()
		return
	}
	site.start(i.program, s.args(site, filepath.Join("/", i.root, s.modules)))
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)*`)

// numbered is the version of a server that has responded.
func (s *server) numbered(t *testing.T, i installation, headers http.Header) string {
	t.Helper()
	output := []byte(headers.Get("Server"))
	switch {
	case s.npm != "":
		text := testkit.Got(os.ReadFile(filepath.Join(more, "node/node_modules", s.npm, "package.json")))(t)
		var about struct{ Version string }
		must(t, json.Unmarshal(text, &about))
		return about.Version
	case s.program == "":
		output = []byte(runtime.Version())
	case s.version != nil:
		output, _ = exec.Command(i.program, s.version...).CombinedOutput() // some exit with 1
	}
	found := versionNumber.Find(output)
	stopIf(t, found == nil, "%s %q: want its version, got %s", i.program, s.version, output)
	return string(found)
}
