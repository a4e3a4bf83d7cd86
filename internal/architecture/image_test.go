package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

// TestAnImageKnowsItsVersion builds with the command of the Dockerfile, in a checkout, in one that git cannot read, and with a version.
func TestAnImageKnowsItsVersion(t *testing.T) {
	long.Only(t)
	ignored, err := os.ReadFile("../../.dockerignore")
	if err != nil || strings.Contains(string(ignored), ".git") {
		t.Errorf("want .git sent to the build, so that it knows the commit, got %s (%v)", ignored, err)
	}
	checkout := t.TempDir()
	execute(t, ".", nil, "git clone -q --no-hardlinks ../.. "+checkout)
	commit := strings.TrimSpace(execute(t, checkout, nil, "git rev-parse HEAD"))
	build := buildOfImage(t)
	if told := versionOf(t, checkout, build, ""); !strings.HasSuffix(told, ", commit "+commit[:12]+"\n") {
		t.Errorf("in a checkout: want the commit %s, got %s", commit, told)
	}
	if err := os.WriteFile(filepath.Join(checkout, ".git", "HEAD"), []byte("gitdir: elsewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	if told := versionOf(t, checkout, build, "v1.2.3"); !strings.Contains(told, "refreshd v1.2.3,") {
		t.Errorf("without a commit: want the version that was given, got %s", told)
	}
}

var buildCommand = regexp.MustCompile(`(?s)RUN (git rev-parse .*?\./cmd/refreshd)\n`)

// buildOfImage is the command by which the Dockerfile builds the program.
func buildOfImage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	found := buildCommand.FindStringSubmatch(string(text))
	if err != nil || found == nil {
		t.Fatalf("want a Dockerfile that builds the program, got %v\n%s", err, text)
	}
	return found[1]
}

// versionOf builds as the image does, and asks what was built.
func versionOf(t *testing.T, checkout, build, version string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "refreshd")
	execute(t, checkout, []string{"GOFLAGS=-buildvcs=auto", "VERSION=" + version}, strings.Replace(build, "/out/refreshd", program, 1))
	return execute(t, checkout, nil, program+" --version")
}

func execute(t *testing.T, dir string, environ []string, command string) string {
	t.Helper()
	shell := exec.Command("sh", "-c", command)
	shell.Dir, shell.Env = dir, append(os.Environ(), environ...)
	var refused strings.Builder
	shell.Stderr = &refused
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, refused.String())
	}
	return string(out)
}
