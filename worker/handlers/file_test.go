package handlers

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheNameOfAFileStaysInItsDirectory(t *testing.T) {
	long := strings.Repeat("a", 300)
	for uid, want := range map[string]string{
		"tbl_1":            "tbl_1",
		"a.b-C":            "a.b-C",
		"../../etc/passwd": "%2E.%2F..%2Fetc%2Fpasswd",
		"..":               "%2E.",
		".hidden":          "%2Ehidden",
		`a\b:c`:            "a%5Cb%3Ac",
		"a%2Fb":            "a%252Fb",
		"a~b":              "a%7Eb",
		"\x00\n":           "%00%0A",
		long[:150]:         long[:150],
		long[:151]:         long[:120] + "~" + digest(long[:151])[:24],
		long:               long[:120] + "~" + digest(long)[:24],
	} {
		got := fileName(uid)
		failIf(t, got != want, "%q: %q, want %q", uid, got, want)
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("tbl_1", "../x")
	f.Add(strings.Repeat("/", 51), strings.Repeat("/", 52))
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := fileName(a), fileName(b)
		failIf(t, (x == y) != (a == b), "%q and %q are named %q and %q", a, b, x, y)
		failIf(t, len(x) > 160 || strings.HasPrefix(x, ".") || strings.ContainsAny(x, "/\\\x00:"), "%q is named %q", a, x)
	})
}

func TestAFileIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "feed")
	write := func(text string, err error) func(io.Writer) error {
		return func(file io.Writer) error {
			_, failed := io.WriteString(file, text)
			return errors.Join(failed, err)
		}
	}
	must(t, replace(path, write("old", nil)))
	err := replace(path, write("half", io.ErrShortWrite))
	failIf(t, !errors.Is(err, io.ErrShortWrite), "got %v, want the error of the writer", err)
	text, err := os.ReadFile(path)
	failIf(t, err != nil || string(text) != "old", "the file holds %q, %v; want old", text, err)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	failIf(t, !cmp.Equal(files, []string{path}), "files: %q", files)
	files, _ = filepath.Glob(filepath.Join(dir, ".*"))
	failIf(t, len(files) > 0, "left behind: %q", files)
}

func TestLeftoversOfKilledWorkersAreRemovedAndNothingElse(t *testing.T) {
	if runtime.GOOS == "solaris" || runtime.GOOS == "aix" {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	for _, name := range []string{".feed.123" + tempSuffix, "feed", ".feed.meta", "feed" + tempSuffix} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	var living string
	err := replace(filepath.Join(dir, "busy"), func(file io.Writer) error {
		living = file.(*os.File).Name()
		_, err := Fetch(dir, FetchOptions{}) // another worker starts meanwhile
		return err
	})
	stopIf(t, err != nil, "the file of a living worker was taken away: %v (%s)", err, living)
	var got []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	equal(t, []string{".feed.meta", "busy", "feed", "feed" + tempSuffix}, got)
}

func TestWhatIsMissingIsNoErrorAndAllElseIs(t *testing.T) {
	err := ignoreMissing(&os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist})
	failIf(t, err != nil, "want no error, got %v", err)
	err = ignoreMissing(os.ErrPermission)
	failIf(t, !errors.Is(err, os.ErrPermission), "want %v, got %v", os.ErrPermission, err)
}
