package architecture

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// versioned are the files that say the version, which has to be the one of the tag.
var versioned = []string{
	"CHANGELOG.md", "docs/deploy.md", "clients/node/package.json", "clients/php/composer.json", "clients/python/refreshd.py", "deploy/install.sh",
	"deploy/kubernetes/chart/Chart.yaml",
}

// releasable copies what a release looks at before it builds, and returns the version that it has.
func releasable(t *testing.T) (root, version string) {
	t.Helper()
	root = t.TempDir()
	for _, name := range append(versioned, "deploy/release.sh") {
		text := check.Got(os.ReadFile(filepath.Join("../..", name)))(t)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), text, 0o700)) //nolint:gosec // one is run
	}
	return root, versionOf(t, root)
}

func versionOf(t *testing.T, root string) string {
	t.Helper()
	return fmt.Sprint("v", at(parse(t, string(check.Got(os.ReadFile(filepath.Join(root, "clients/node/package.json")))(t))), "version"))
}

func expectRefused(t *testing.T, want, root string, args ...string) {
	t.Helper()
	told, err := exec.Command(filepath.Join(root, "deploy/release.sh"), args...).CombinedOutput()
	failIf(t, err == nil || !strings.Contains(string(told), want), "%q: expected %s, found %v, %s", args, want, err, told)
}

func TestAReleaseNeedsAVersionAndAnEmptyDirectory(t *testing.T) {
	root, version := releasable(t)
	expectRefused(t, `expected a version such as v1.2.3 or v1.2.3-rc.1, found ""`, root)
	expectRefused(t, `found "1.2"`, root, "1.2")
	expectRefused(t, `found "v1.2.3; rm -rf"`, root, "v1.2.3; rm -rf")
	expectRefused(t, "expected an empty directory", root, version, root)
}

func TestAReleaseHasTheVersionOfItsTagInEachClient(t *testing.T) {
	root, version := releasable(t)
	for _, name := range versioned {
		path := filepath.Join(root, name)
		text := check.Got(os.ReadFile(path))(t)
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), version[1:], version[1:]+"-rc.1")), 0o600))
		expectRefused(t, " in "+name+", found", root, version, root)
		must(t, os.WriteFile(path, text, 0o600))
	}
	execute(t, root, nil, `git init -q && git config user.name a && git config user.email a@example.com && git add . && git commit -qm first &&
		git tag `+version+` && git commit -q --allow-empty -m second`)
	expectRefused(t, "expected the commit of the tag "+version, root, version, t.TempDir())
	execute(t, root, nil, "git checkout -q "+version+" && touch new.go")
	expectRefused(t, "expected the files of the tag "+version, root, version, t.TempDir())
}

// TestAReleaseHasTheSameBytesWhoeverBuildsIt builds the part for one platform in two checkouts.
func TestAReleaseHasTheSameBytesWhoeverBuildsIt(t *testing.T) {
	long.Only(t)
	var built []map[string]string
	var dist, version string
	for range 2 {
		dist = filepath.Join(t.TempDir(), "dist")
		checkout := cloneOf(t)
		version = versionOf(t, checkout)
		execute(t, checkout, []string{"PLATFORMS=linux/amd64"}, "deploy/release.sh "+version+" "+dist)
		built = append(built, filesOf(t, dist))
	}
	number, program := version[1:], "refreshd-"+version+"-linux-amd64"
	equal(t, []string{
		"SHA256SUMS", "install.sh", "refreshd-" + number + "-py3-none-any.whl", "refreshd-" + number + ".tar.gz", "refreshd-" + number + ".tgz",
		"refreshd-php-" + number + ".zip", program, program + ".cdx.json",
	}, slices.Sorted(maps.Keys(built[0])))
	for name := range built[0] {
		failIf(t, built[0][name] != built[1][name], "%s: expected the same bytes, found others", name)
	}
	execute(t, dist, nil, "sha256sum -c --quiet SHA256SUMS")
	equal(t, len(built[0])-1, strings.Count(built[0]["SHA256SUMS"], "\n"))
	parts := parse(t, built[0][program+".cdx.json"])
	failIf(t, at(parts, "bomFormat") != "CycloneDX" || len(list(parts, "components")) < 10, "expected what the program consists of, found %+v", parts)
	told := execute(t, dist, nil, "./"+program+" --version")
	released := regexp.MustCompile(`^refreshd ` + regexp.QuoteMeta(version) + `, go1\.\S+, commit [0-9a-f]{12}\n$`)
	failIf(t, !released.MatchString(told), "expected version and commit, found %s", told)
	if told, err := exec.Command("ldd", filepath.Join(dist, program)).CombinedOutput(); err == nil {
		t.Errorf("expected a static program, found %s", told)
	}
}
