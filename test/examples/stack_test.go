package examples

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// stack is an example as docker compose runs it, but with programs of this machine: a copy of its folder, and what the services of its compose
// file are called, have mounted, and have as files of their images, here.
type stack struct {
	t        *testing.T
	dir      string
	volumes  string // where the named volumes are
	file     compose
	programs map[string]string // by their name in a command
	environ  []string
	hosts    *strings.Replacer
	redis    *testkit.Server
}

// newStack copies an example. hosts are pairs: an address as the files of the example have it, and the one that takes its place.
func newStack(t *testing.T, name, language string, hosts ...string) *stack {
	t.Helper()
	testkit.RequireProgram(t, "redis-cli", "redis-tools")
	testkit.RequireProgram(t, "bash", "bash")
	program, environ := testkit.Interpreter(t, language)
	s := &stack{t: t, dir: t.TempDir(), volumes: t.TempDir(), environ: environ, redis: testkit.Redis(t)}
	s.hosts = strings.NewReplacer(slices.Concat(hosts, []string{"redis:6379", s.redis.Addr})...)
	s.programs = map[string]string{"/refreshd": testkit.Binary(t), "python": program, "node": program}
	must(t, os.CopyFS(s.dir, os.DirFS(filepath.Join(root, "examples", name))))
	models := check.Got(filepath.Glob(filepath.Join(s.dir, "models", "*")))(t)
	for _, file := range models {
		text := check.Got(os.ReadFile(file))(t)
		must(t, os.WriteFile(file, []byte(s.hosts.Replace(string(text))), 0o600))
	}
	s.file = read(t, s.dir)
	return s
}

// up starts the services that are built here: first those that end, then those that go on.
func (s *stack) up() {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.file.Services)) {
		if service := s.file.Services[name]; service.ours() && service.ends() {
			output, err := s.command(name).CombinedOutput()
			stopIf(s.t, err != nil, "%s: %v\n%s", name, err, output)
		}
	}
	for name, service := range s.file.Services {
		if service.ours() && !service.ends() {
			testkit.StartCommand(s.t, s.command(name))
		}
	}
}

// command is the command of a service, or, as with docker compose exec, another one in its place.
func (s *stack) command(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	service := s.file.Services[name]
	stopIf(s.t, service == nil, "%s: no such service", name)
	if len(args) == 0 {
		args = service.Command
		if service.Image == "refreshd" {
			args = slices.Concat([]string{"/refreshd"}, args) // the entry point of the image
		}
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = s.here(service, args[i])
	}
	if program, known := s.programs[args[0]]; known {
		args[0] = program
	}
	if args[0] == "redis-cli" {
		args = slices.Insert(args, 1, "-u", s.redis.URL)
	}
	command := exec.Command(args[0], args[1:]...)
	command.Dir, command.Env = s.image(service), slices.Clone(s.environ)
	for key, value := range service.Environment {
		command.Env = append(command.Env, key+"="+s.here(service, value))
	}
	return command
}

// here finds a path or an address of a service on this machine.
func (s *stack) here(service *service, text string) string {
	for _, volume := range service.Volumes {
		source, target := mount(volume)
		rest, found := strings.CutPrefix(text, target)
		if !found || rest != "" && rest[0] != '/' {
			continue
		}
		if strings.HasPrefix(source, ".") {
			return filepath.Join(s.dir, source) + rest
		}
		path := filepath.Join(s.volumes, source)
		must(s.t, os.MkdirAll(path, 0o700))
		return path + rest
	}
	return s.hosts.Replace(text)
}

// image is a folder with the files that the Dockerfile of a service copies.
func (s *stack) image(service *service) string {
	s.t.Helper()
	dir := s.t.TempDir()
	if !service.ours() {
		return dir
	}
	for _, path := range service.copies(s.t) {
		text := check.Got(os.ReadFile(filepath.Join(root, path)))(s.t)
		must(s.t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600))
	}
	return dir
}

// prepare runs a program on each file that a service reads when it begins with an empty volume.
func (s *stack) prepare(name string, program ...string) {
	s.t.Helper()
	for _, volume := range s.file.Services[name].Volumes {
		if _, target := mount(volume); strings.HasPrefix(target, "/docker-entrypoint-initdb.d/") {
			output, err := s.command(name, append(program, target)...).CombinedOutput()
			stopIf(s.t, err != nil, "%s: %v\n%s", target, err, output)
		}
	}
}

// runModel runs a model as soon as it is idle.
func (s *stack) runModel(uid string) {
	s.t.Helper()
	check.Eventually(s.t, uid+" is run", func() bool {
		return s.command("refreshd", "/refreshd", "model", "run", uid).Run() == nil
	})
}

// expect waits until refreshd prints a text.
func (s *stack) expect(command, text string) {
	s.t.Helper()
	check.Eventually(s.t, command+" prints "+text, func() bool {
		output, _ := s.run("docker compose exec refreshd /refreshd " + command)
		return strings.Contains(output, text)
	})
}

// model reads a field of a model.
func (s *stack) model(uid, field string) string {
	s.t.Helper()
	return s.redis.Client(s.t).HGet(s.t.Context(), "bigtables:model:"+uid, field).Val()
}
