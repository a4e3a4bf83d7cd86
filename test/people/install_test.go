package people

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

const installer = "../../deploy/install.sh"

// releaseOf is the version that install.sh installs.
func releaseOf(t *testing.T) string {
	t.Helper()
	script := string(check.Got(os.ReadFile(installer))(t))
	return regexp.MustCompile(`(?m)^release=(.*)$`).FindStringSubmatch(script)[1]
}

// mirror serves the files of a release on loopback, and cuts the connection in the middle of those that are torn.
func mirror(t *testing.T, files map[string]string, torn ...string) (address string) {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, has := files[r.URL.Path[1:]]
		if !has {
			http.NotFound(w, r)
			return
		}
		if slices.Contains(torn, r.URL.Path[1:]) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			text = text[:len(text)/2]
		}
		_, _ = w.Write([]byte(text))
	})
}

// toolbox is a directory with some programs of this machine, as the only one of a PATH.
func toolbox(t *testing.T, programs ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range programs {
		path, err := exec.LookPath(name)
		must(t, errors.Join(err, os.Symlink(path, filepath.Join(dir, name))))
	}
	return dir
}

// forInstalling are the needs of install.sh, beside something that downloads and something that makes checksums.
var forInstalling = []string{"sh", "uname", "mkdir", "mktemp", "sed", "cut", "chmod", "mv", "rm"}

func TestTheInstallerInstallsAWholeVerifiedProgramOrNothing(t *testing.T) {
	t.Parallel()
	for program, debian := range map[string]string{"curl": "curl", "wget": "wget", "sha256sum": "coreutils", "shasum": "perl"} {
		testkit.RequireProgram(t, program, debian)
	}
	version := releaseOf(t)
	const program, before = "#!/bin/sh\necho the program runs\n", "the program of before"
	name := "refreshd-" + version + "-linux-amd64"
	line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(program)), name)
	good := map[string]string{name: program, "SHA256SUMS": "0000  " + name + ".cdx.json\n" + line}
	with := func(name, text string) map[string]string {
		files := maps.Clone(good)
		files[name] = text
		return files
	}
	without := func(name string) map[string]string {
		files := maps.Clone(good)
		delete(files, name)
		return files
	}
	curl, x86 := append([]string{"curl", "sha256sum"}, forInstalling...), "Linux x86_64"
	for _, test := range []struct {
		what     string
		address  string
		programs []string
		machine  string
		refusal  string // none: it installs
	}{
		{"curl and sha256sum", mirror(t, good), curl, x86, ""},
		{"wget and shasum", mirror(t, good), append([]string{"wget", "shasum"}, forInstalling...), x86, ""},
		{"neither curl nor wget", mirror(t, good), append([]string{"sha256sum"}, forInstalling...), x86, "expected curl or wget, found neither"},
		{"another program", mirror(t, with(name, "another")), curl, x86, fmt.Sprintf("%s, found %x", line[:64], sha256.Sum256([]byte("another")))},
		{"a truncated program", mirror(t, with(name, program[:9])), curl, x86, "found " + fmt.Sprintf("%x", sha256.Sum256([]byte(program[:9])))},
		{"a torn program", mirror(t, good, name), curl, x86, "could not download all of http://127.0.0.1:"},
		{"torn checksums", mirror(t, good, "SHA256SUMS"), curl, x86, "/SHA256SUMS"},
		{"no program", mirror(t, without(name)), curl, x86, "could not download all of http://127.0.0.1:"},
		{"no checksums", mirror(t, without("SHA256SUMS")), curl, x86, "/SHA256SUMS"},
		{"no checksum of it", mirror(t, with("SHA256SUMS", line[:64]+"  other\n")), curl, x86, "expected the SHA-256 of " + name},
		{"nobody serves", "http://127.0.0.1:1", curl, x86, "could not download all of http://127.0.0.1:1/SHA256SUMS"},
		{"another system", mirror(t, good), curl, "Plan9 x86_64", "found Plan9 on x86_64"},
		{"another processor", mirror(t, good), curl, "Linux riscv64", "found Linux on riscv64"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			system, processor, _ := strings.Cut(test.machine, " ")
			me := &desk{t: t, dir: t.TempDir()}
			me.environ = []string{"PATH=" + toolbox(t, test.programs...), "HOME=" + me.dir, "REFRESHD_DOWNLOADS=" + test.address}
			me.write("uname", "#!/bin/sh\nif [ $1 = -s ]; then echo "+system+"; else echo "+processor+"; fi\n")
			me.run("sh", "-c", `chmod 700 uname && mv uname "$PATH/"`)
			me.write("refreshd", before)

			told, err := me.command("sh", check.Got(filepath.Abs(installer))(t), "--to", ".").CombinedOutput()
			has := string(check.Got(os.ReadFile(filepath.Join(me.dir, "refreshd")))(t))
			failIf(t, len(check.Got(os.ReadDir(me.dir))(t)) != 1, "want nothing beside the program, found more; it said %s", told)
			if test.refusal != "" {
				failIf(t, err == nil || !strings.Contains(string(told), test.refusal), "want a refusal with %q, got %v, %s", test.refusal, err, told)
				failIf(t, has != before, "want the program of before, got %q", has)
				return
			}
			failIf(t, err != nil || has != program, "want the program, got %v, %s", err, told)
			equal(t, "the program runs\n", me.run(filepath.Join(me.dir, "refreshd")))
		})
	}
}
