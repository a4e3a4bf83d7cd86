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
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// server is a program that people serve feeds with, as they configure it.
type server struct {
	name    string
	with    string // the setting that it is about
	program string // empty: it is a part of this one
	debian  string // the package of Debian that has it
	npm     string // the package of npm that it is of
	// args are those with which it serves a site in the foreground. modules is the folder that it takes modules from.
	args    func(s *site, modules string) []string
	modules string   // the folder where Debian has them
	version []string // arguments with which the program prints its version; nil: its responses have it

	cache bool   // whether it is in front of another server, the one of Go
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

// installations are the system's and others beside it. Of npm there is none without make feeds.
func (s *server) installations() (found []installation) {
	switch {
	case s.npm == "":
		found = []installation{{program: s.program}}
	case more != "":
		return []installation{{program: s.programOfNpm()}}
	}
	if more == "" || s.program == "" {
		return found
	}
	others, _ := filepath.Glob(filepath.Join(more, s.program+"-[0-9]*", s.program))
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

func (s *server) start(site *site, i installation) {
	if s.cache {
		site.origin = site.serve()
	}
	if s.program == "" {
		site.address = site.serve()
		return
	}
	for range 3 {
		site.address = testkit.FreeAddress(site.T)
		if site.start(i.program, s.args(site, filepath.Join("/", i.root, s.modules)), "NODE_PATH="+filepath.Join(more, "node/node_modules")) {
			return
		}
	}
	site.Fatalf("want %s to listen, it ends", i.program)
}

// called is how the table calls it, with a version.
func (s *server) called(version string) string {
	if s.with == "" {
		return s.name + " " + version
	}
	return s.name + " " + version + ", " + s.with
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)*`)

// numbered is the version of a server that has responded.
func (s *server) numbered(t *testing.T, i installation, headers http.Header) string {
	t.Helper()
	output := []byte(headers.Get("Server"))
	switch {
	case s.npm != "":
		text := check.Got(os.ReadFile(filepath.Join(more, "node/node_modules", s.npm, "package.json")))(t)
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
