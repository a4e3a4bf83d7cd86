package architecture

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	failIf(t, err != nil || strings.Contains(string(ignored), ".git"),
		"want .git sent to the build, so that it knows the commit, got %s (%v)", ignored, err)
	text, err := os.ReadFile("../../Dockerfile")
	build := buildCommand.FindStringSubmatch(string(text))
	stopIf(t, err != nil || build == nil, "want a Dockerfile that builds the program, got %v\n%s", err, text)
	checkout, program := cloneOf(t), filepath.Join(t.TempDir(), "refreshd")
	versionOf := func(version string) string {
		execute(t, checkout, []string{"GOFLAGS=-buildvcs=auto", "VERSION=" + version}, strings.Replace(build[1], "/out/refreshd", program, 1))
		return execute(t, checkout, nil, program+" --version")
	}
	commit := strings.TrimSpace(execute(t, checkout, nil, "git rev-parse HEAD"))
	told := versionOf("")
	failIf(t, !strings.HasSuffix(told, ", commit "+commit[:12]+"\n"), "in a checkout: want the commit %s, got %s", commit, told)
	must(t, os.WriteFile(filepath.Join(checkout, ".git", "HEAD"), []byte("gitdir: elsewhere"), 0o600))
	told = versionOf("v1.2.3")
	failIf(t, !strings.Contains(told, "refreshd v1.2.3,"), "without a commit: want the version that was given, got %s", told)
}

var buildCommand = regexp.MustCompile(`(?s)RUN (git rev-parse .*?\./cmd/refreshd)\n`)

func cloneOf(t *testing.T) (checkout string) {
	t.Helper()
	checkout = filepath.Join(t.TempDir(), "checkout")
	execute(t, ".", nil, "git clone -q --no-hardlinks ../.. "+checkout)
	return checkout
}

func execute(t *testing.T, dir string, environ []string, command string) string {
	t.Helper()
	shell := exec.Command("sh", "-c", command)
	shell.Dir, shell.Env = dir, append(os.Environ(), environ...)
	var refused strings.Builder
	shell.Stderr = &refused
	out, err := shell.Output()
	stopIf(t, err != nil, "%s: %v\n%s%s", command, err, out, refused.String())
	return string(out)
}

func TestTheImageOfAReleaseRunsAsNobodyAndTellsItsHealth(t *testing.T) {
	long.Only(t)
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		must(t, os.WriteFile(filepath.Join(dir, "refreshd-"+arch), []byte("the program for "+arch), 0o600))
	}
	write := func(to string) map[string]string {
		execute(t, "../../deploy/image", []string{"GOFLAGS=-mod=readonly -trimpath"},
			"go run . -version v1.2.3 -revision abc -created 1790000000 -binaries "+dir+"/refreshd-ARCH -o "+filepath.Join(dir, to))
		file, err := os.Open(filepath.Join(dir, to))
		must(t, err)
		defer func() { _ = file.Close() }()
		files, _ := untar(t, file)
		return files
	}
	files := write("image.tar")
	equal(t, files, write("again.tar"))
	blob := func(digest any) string {
		return files["blobs/"+strings.Replace(fmt.Sprint(digest), ":", "/", 1)]
	}
	top := parse(t, files["index.json"])
	stopIf(t, len(list(top, "manifests")) != 1 || at(top, "manifests/0/annotations/org.opencontainers.image.ref.name") != "v1.2.3",
		"expected one image of many platforms by its version, found %s", files["index.json"])
	platforms := list(parse(t, blob(at(top, "manifests/0/digest"))), "manifests")
	stopIf(t, len(platforms) != 2, "expected two platforms, found %+v", platforms)
	for _, m := range platforms {
		arch, manifest := fmt.Sprint(at(m, "platform/architecture")), parse(t, blob(at(m, "digest")))
		const label = "config/Labels/org.opencontainers.image."
		expectAt(t, arch, parse(t, blob(at(manifest, "config/digest"))), map[string]string{
			"architecture": arch, "os": "linux", "config/User": "65532:65532", "config/Entrypoint": "[/refreshd]",
			"config/Env": "[REFRESHD_HEALTH=127.0.0.1:8080]", "config/Healthcheck/Test": "[CMD /refreshd health /livez]", label + "version": "v1.2.3", label + "revision": "abc", label + "licenses": "MIT",
		})
		zipped, err := gzip.NewReader(strings.NewReader(blob(at(manifest, "layers/0/digest"))))
		layers := len(list(manifest, "layers"))
		stopIf(t, err != nil || layers != 1, "expected one layer, found %d, %v", layers, err)
		inside, modes := untar(t, zipped)
		failIf(t, inside["refreshd"] != "the program for "+arch || modes["refreshd"] != "-rwxr-xr-x 0" || modes["data/"] != "drwxr-xr-x 65532" || len(modes) != 2,
			"expected the program and a directory of nobody, found %v", modes)
	}
}

func parse(t *testing.T, text string) (value any) {
	t.Helper()
	err := json.Unmarshal([]byte(text), &value)
	stopIf(t, err != nil, "%v in %s", err, text)
	return value
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		text, failed := os.ReadFile(filepath.Join(dir, entry.Name()))
		files[entry.Name()], err = string(text), errors.Join(err, failed)
	}
	must(t, err)
	return files
}

// untar reads the files of an archive, and of each entry the mode and the owner.
func untar(t *testing.T, from io.Reader) (files, modes map[string]string) {
	t.Helper()
	files, modes = map[string]string{}, map[string]string{}
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		text, failed := io.ReadAll(archive)
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
		modes[header.Name] = fmt.Sprintf("%s %d", header.FileInfo().Mode(), header.Uid)
	}
}
