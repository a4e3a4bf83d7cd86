package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// step is a command of README.md, behind a "$ ", with its output below. … replaces the parts that differ.
type step struct {
	command string
	shows   []string
}

func (s *stack) steps() (steps []step) {
	s.t.Helper()
	text := check.Got(os.ReadFile(filepath.Join(s.dir, "README.md")))(s.t)
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if command, is := strings.CutPrefix(line, "$ "); is {
				steps = append(steps, step{command: command})
			} else if len(steps) > 0 && line != "" && line != "sh" {
				steps[len(steps)-1].shows = append(steps[len(steps)-1].shows, line)
			}
		}
	}
	return steps
}

// follow runs the commands of README.md. One that docker or curl runs is repeated until it ends well and prints what README.md shows: a run is
// refused as long as the one before goes on.
func (s *stack) follow() {
	s.t.Helper()
	for _, step := range s.steps() {
		if strings.HasPrefix(step.command, "docker compose up ") {
			s.up()
			continue
		}
		var output string
		s.t.Cleanup(func() {
			if s.t.Failed() {
				s.t.Logf("$ %s\n%s", step.command, output)
			}
		})
		done := func() bool {
			var err error
			output, err = s.run(step.command)
			return err == nil && step.shown(output)
		}
		if repeated.MatchString(step.command) {
			check.Eventually(s.t, step.command+" prints what README.md shows", done)
		} else {
			stopIf(s.t, !done(), "%s: want %q, got\n%s", step.command, step.shows, output)
		}
	}
}

var repeated = regexp.MustCompile(`^docker|curl `)

func (s step) shown(output string) bool {
	for _, line := range s.shows {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), "…", ".*")
		pattern = `(?m)^\s*` + strings.ReplaceAll(pattern, " ", `\s+`) + `\s*$`
		if !regexp.MustCompile(pattern).MatchString(output) {
			return false
		}
	}
	return true
}

var (
	inside = regexp.MustCompile(`^docker compose (exec|run --rm) (\S+)\s?(.*)$`)
	word   = regexp.MustCompile(`"[^"]*"|\S+`)
)

// run runs a command of README.md in the folder of the example, and returns what it prints, errors too.
func (s *stack) run(text string) (string, error) {
	s.t.Helper()
	command := exec.Command("bash", "-c", s.hosts.Replace(text))
	command.Dir = s.dir
	if docker := inside.FindStringSubmatch(text); docker != nil {
		var args []string
		for _, quoted := range word.FindAllString(docker[3], -1) {
			args = append(args, strings.Trim(quoted, `"`))
		}
		command = s.command(docker[2], args...)
	}
	output, err := command.CombinedOutput()
	return string(output), err
}
