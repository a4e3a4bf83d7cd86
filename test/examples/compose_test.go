package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

const root = "../.."

var names = []string{"feed-reader", "product-feeds", "search-index"}

// compose is a compose file. Other keys are refused.
type compose struct {
	Services map[string]*service
	Volumes  map[string]any
	Refreshd any `yaml:"x-refreshd"`
	Node     any `yaml:"x-node"`
}

type service struct {
	Image, Restart string
	Build          build
	Command        []string
	Environment    map[string]string
	DependsOn      map[string]struct{ Condition string } `yaml:"depends_on"`
	Volumes, Ports []string
	Healthcheck    struct {
		Test     []string
		Interval string
	}
}

type build struct{ Context, Dockerfile string }

// UnmarshalYAML reads the short form too, which is the context alone.
func (b *build) UnmarshalYAML(node *yaml.Node) error {
	b.Dockerfile = "Dockerfile"
	if node.Kind == yaml.ScalarNode {
		b.Context = node.Value
		return nil
	}
	type plain build
	return node.Decode((*plain)(b))
}

// ours reports whether a service is built here, or comes from elsewhere, as Redis does.
func (s *service) ours() bool { return s.Build.Context != "" }

// ends reports whether a service does one thing and ends.
func (s *service) ends() bool { return s.Restart == "" }

// mount splits a volume; a source that begins with a dot is a file or folder of the example, any other one is named.
func mount(volume string) (source, target string) {
	parts := strings.Split(volume, ":")
	return parts[0], parts[1]
}

func read(t *testing.T, dir string) (file compose) {
	t.Helper()
	text := check.Got(os.ReadFile(filepath.Join(dir, "docker-compose.yml")))(t)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&file))
	return file
}

var copied = regexp.MustCompile(`(?m)^COPY (.*) \./$`)

// copies are the files that an image takes from the repository into its folder.
func (s *service) copies(t *testing.T) []string {
	t.Helper()
	text := check.Got(os.ReadFile(filepath.Join(root, s.Build.Dockerfile)))(t)
	found := copied.FindSubmatch(text)
	if found == nil {
		return nil
	}
	return strings.Fields(string(found[1]))
}

func TestEachComposeFileNamesOnlyWhatThereIs(t *testing.T) {
	for _, name := range names {
		dir := filepath.Join(root, "examples", name)
		file := read(t, dir)
		for called, s := range file.Services {
			for on, how := range s.DependsOn {
				to := file.Services[on]
				stopIf(t, to == nil, "%s: %s depends on %s, which is no service", name, called, on)
				failIf(t, how.Condition == "service_healthy" && to.Healthcheck.Test == nil, "%s: nobody asks for the health of %s", name, on)
				failIf(t, how.Condition == "service_completed_successfully" && !to.ends(), "%s: %s never ends", name, on)
			}
			for _, volume := range s.Volumes {
				source, _ := mount(volume)
				_, named := file.Volumes[source]
				_, err := os.Stat(filepath.Join(dir, source))
				failIf(t, !named && err != nil, "%s: %s mounts %s: no such volume, file or folder", name, called, source)
			}
			failIf(t, s.ours() && filepath.Join(dir, s.Build.Context) != root, "%s: want %s built in the root, where the clients are, got %s", name, called, s.Build.Context)
			if s.ours() {
				for _, path := range slices.Concat(s.copies(t), []string{s.Build.Dockerfile}) {
					_, err := os.Stat(filepath.Join(root, path))
					failIf(t, err != nil, "%s: %s is made of %s: %v", name, called, path, err)
				}
			}
		}
	}
}
