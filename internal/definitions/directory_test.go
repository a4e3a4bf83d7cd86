package definitions

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

// folder writes files by their paths, and returns the directory that they stand in.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

// told is what a directory holds: uids, names of policies, and what is said of refused documents.
func told(d Directory) (models, policies, refused []string) {
	for _, m := range d.Models {
		models = append(models, m.Definition.UID)
	}
	for _, p := range d.Policies {
		policies = append(policies, p.Draft.Name())
	}
	for _, doc := range d.Refused {
		refused = append(refused, doc.At(doc.Err).Error())
	}
	return models, policies, refused
}

func TestADirectoryIsReadWithThoseBelowIt(t *testing.T) {
	root := folder(t, map[string]string{
		"a.yaml":         "uid: a\n---\nname: nightly\ntimeout: 1h\n",
		"b/c.json":       "\xEF\xBB\xBF" + `{"uid": "c", "payload": {"n": 1e3}}`,
		"b/d.jsonl":      `{"uid":"d"}` + "\n" + `{"name":"export","policy":{"timeout":"1m"}}`,
		"notes.txt":      "not read",
		".hidden.yaml":   "not read either: [",
		".git/conf.yaml": "nor this: [",
	})
	must(t, os.Symlink("a.yaml", filepath.Join(root, "b", "no-suffix")))
	d := check.Got(ReadDirectory(root))(t)
	models, policies, refused := told(d)
	equal(t, [][]string{{"a", "c", "d"}, {"nightly", "export"}, nil}, [][]string{models, policies, refused})
	failIf(t, d.Models[1].Definition.Payload != `{"n":1e3}`, "expected the digits that were written, found %s", d.Models[1].Definition.Payload)
}

func TestALinkMayStandForAFileOfTheDirectoryAndForNoOther(t *testing.T) {
	outside := folder(t, map[string]string{"secret.yaml": "uid: outside\n"})
	root := folder(t, map[string]string{"..data/a.yaml": "uid: a\n", "z.yaml": "uid: z\n"})
	link(t, filepath.Join("..data", "a.yaml"), filepath.Join(root, "a.yaml")) // as a mounted ConfigMap has it
	d, err := ReadDirectory(root)
	models, _, _ := told(d)
	failIf(t, err != nil || !cmp.Equal([]string{"a", "z"}, models), "expected models a and z, found %q, %v", models, err)
	for name, to := range map[string]string{
		"absolute": filepath.Join(outside, "secret.yaml"),
		"relative": filepath.Join("..", filepath.Base(outside), "secret.yaml"),
	} {
		at := filepath.Join(root, "link.yaml")
		link(t, to, at)
		d, err := ReadDirectory(root)
		models, _, _ := told(d)
		failIf(t, err == nil || !strings.Contains(err.Error(), at) || strings.Contains(strings.Join(models, " "), "outside"),
			"%s: expected an error that names the link, found %q, %v", name, models, err)
		must(t, os.Remove(at))
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	must(t, os.Symlink(to, at))
}

func TestAPipeIsRefusedAndNotWaitedFor(t *testing.T) {
	root := folder(t, map[string]string{"a.yaml": "uid: a\n"})
	at := filepath.Join(root, "pipe.yaml")
	must(t, syscall.Mkfifo(at, 0o600))
	for _, path := range []string{root, at} {
		_, err := ReadDirectory(path)
		failIf(t, err == nil || !strings.Contains(err.Error(), "pipe.yaml: expected a regular file"),
			"%s: expected a refusal of the pipe, found %v", path, err)
	}
}

func TestTheSizeOfFilesAndDocumentsIsBounded(t *testing.T) {
	filler := strings.Repeat("x", maxDocument)
	for name, text := range map[string]string{
		"large.yaml":  "uid: a\npayload: {text: " + filler + "}\n---\nuid: b\n",
		"keys.yaml":   "uid: a\npayload: {? " + filler + " : 1}\n---\nuid: b\n",
		"large.json":  `[{"uid":"a","payload":{"text":"` + filler + `"}},{"uid":"b"}]`,
		"alias.yaml":  "uid: a\npayload: {x: &x " + filler[:maxDocument/2] + ", y: *x, z: *x}\n---\nuid: b\n",
		"policy.yaml": "name: " + filler + "\ntimeout: 1h\n---\nuid: b\n",
	} {
		if name != "large.json" && !long.Enabled() { // YAML of this size takes a second
			continue
		}
		d, err := ReadDirectory(folder(t, map[string]string{name: text}))
		models, _, refused := told(d)
		failIf(t, err != nil || !cmp.Equal([]string{"b"}, models) || len(refused) != 1 || !strings.Contains(refused[0], "at most 4 MiB"),
			"%s: expected the large document alone to be refused, found %q, %.200q, %v", name, models, refused, err)
	}
	line := folder(t, map[string]string{"large.jsonl": `{"uid":"a","payload":{"text":"` + filler + `"}}` + "\n"})
	if _, err := ReadDirectory(line); err == nil || !strings.Contains(err.Error(), "line 1: read a line of at most 4 MiB") {
		t.Errorf("expected a line of at most 4 MiB, found %v", err)
	}
	if !long.Enabled() { // it takes 64 MiB
		return
	}
	large := filepath.Join(folder(t, map[string]string{"large.yaml": "uid: a\n"}), "large.yaml")
	must(t, os.Truncate(large, maxFile+1))
	if _, err := ReadDirectory(filepath.Dir(large)); err == nil || !strings.Contains(err.Error(), "expected at most 64 MiB") {
		t.Errorf("expected a file of at most 64 MiB, found %v", err)
	}
}

func TestAnErrorRepeatsNothingOfAFileThatIsNoDefinition(t *testing.T) {
	const secret = "hunter2"
	for name, text := range map[string]string{
		"a text.yaml":        secret + "\n",
		"a list.yaml":        "- " + secret + "\n- [" + secret + "]\n",
		"other fields.yaml":  "apiVersion: v1\nkind: " + secret + "\ndata: {password: " + secret + "}\n",
		"fields twice.yaml":  secret + ": 1\n" + secret + ": 2\n",
		"an anchor.yaml":     "password: *" + secret + "\n",
		"passwords.yaml":     "root:" + secret + ":19000:0:99999:7::\n",
		"cut off.yaml":       "password: \"" + secret,
		"a text.json":        `"` + secret + `"`,
		"other fields.json":  `{"kind":"` + secret + `","password":"` + secret + `"}`,
		"cut off.json":       `{"password":"` + secret,
		"yaml.json":          "password: " + secret,
		"no json.jsonl":      secret + "\n",
		"a text.jsonl":       `"` + secret + `"` + "\n",
		"other fields.jsonl": `{"password":"` + secret + `"}` + "\n",
		"other bytes.jsonl":  `{"password":"` + secret + "\xff\"}\n",
	} {
		root := folder(t, map[string]string{name: text})
		d, err := ReadDirectory(root)
		_, _, said := told(d)
		if err != nil {
			said = append(said, err.Error())
		}
		failIf(t, len(said) == 0 || strings.Contains(strings.Join(said, "\n"), secret), "%s: expected a refusal without the secret, found %q", name, said)
		got, _ := read(t, name, text)
		failIf(t, len(got) == 0 || strings.Contains(strings.Join(got, "\n"), secret),
			"%s, as models: expected a refusal without the secret, found %q", name, got)
	}
}

func TestAFileNamedJSONIsReadAsJSON(t *testing.T) {
	d, err := ReadDirectory(folder(t, map[string]string{"a.json": `{"uid":"a","payload":{"b":no}}`}))
	failIf(t, err == nil || !strings.Contains(err.Error(), "a.json line 1: expected JSON"), "expected JSON, found %v, %v", d.Models, err)
	for _, text := range []string{`{"name":"a","timeout":1h}`, "name: a\ntimeout: 1h\n"} {
		_, err := ReadPolicies("p.json", strings.NewReader(text))
		failIf(t, err == nil, "%s: expected JSON, found a policy", text)
	}
}

// failing is a file system whose n-th call fails, and each one after it.
type failing struct {
	fs.FS
	left *int
}

var errDisk = errors.New("the disk does not answer")

func (f failing) fail() bool {
	*f.left--
	return *f.left <= 0
}

func (f failing) Open(name string) (fs.File, error) {
	if f.fail() {
		return nil, errDisk
	}
	file, err := f.FS.Open(name)
	return failingFile{file, f}, err
}

type failingFile struct {
	fs.File
	system failing
}

func (f failingFile) Read(into []byte) (int, error) {
	if f.system.fail() {
		return 0, errDisk
	}
	return f.File.Read(into)
}

func (f failingFile) Stat() (fs.FileInfo, error) {
	if f.system.fail() {
		return nil, errDisk
	}
	return f.File.Stat()
}

func (f failingFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if f.system.fail() {
		return nil, errDisk
	}
	return f.File.(fs.ReadDirFile).ReadDir(n)
}

// A part of a directory must not pass for all of it: apply --prune would delete the models of the rest.
func TestADirectoryIsReadWholeOrNotAtAll(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml": {Data: []byte("uid: a\n")}, "b/c.yaml": {Data: []byte("uid: c\n")}, "b/d/e.jsonl": {Data: []byte(`{"uid":"e"}`)},
		"f.json": {Data: []byte(`{"uid":"f"}`)},
	}
	for n := 1; ; n++ {
		var d Directory
		left := n
		err := d.readTree(failing{files, &left}, "dir", make(map[string]string))
		if left > 0 {
			models, _, _ := told(d)
			stopIf(t, err != nil || len(models) != 4, "expected all models, found %q, %v", models, err)
			failIf(t, n < 15, "expected more calls than %d", n)
			return
		}
		failIf(t, !errors.Is(err, errDisk), "call %d failed: expected that to be told, found %v", n, err)
	}
}
