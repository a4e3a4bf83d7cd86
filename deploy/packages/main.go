// Command packages writes the clients of a release as pip, npm and composer install them. It needs none of the three: their versions would write
// other bytes.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type release struct {
	version string    // as in 1.2.3-rc.1
	created time.Time // of the commit: the same release has the same bytes
	to      string    // a directory
	err     error     // all that has failed
}

type file struct {
	name string
	text []byte
}

func main() {
	var r release
	var seconds int64
	flag.StringVar(&r.version, "version", "", "of the release, as in v1.2.3")
	flag.Int64Var(&seconds, "created", 0, "when the commit was made, in Unix seconds")
	flag.StringVar(&r.to, "o", "", "the directory to write to")
	flag.Parse()
	r.version = strings.TrimPrefix(r.version, "v")
	r.created = time.Unix(seconds, 0).UTC()
	r.python()
	r.node()
	r.php()
	if r.err != nil {
		fmt.Fprintln(os.Stderr, "packages:", r.err)
		os.Exit(1)
	}
}

func (r *release) read(path string) []byte {
	text, err := os.ReadFile(path)
	r.err = errors.Join(r.err, err)
	return text
}

func (r *release) files(client string, names ...string) []file {
	files := []file{{"LICENSE", r.read("LICENSE")}}
	for _, name := range names {
		files = append(files, file{name, r.read(filepath.Join("clients", client, name))})
	}
	return files
}

func (r *release) python() {
	version := strings.Replace(r.version, "-rc.", "rc", 1) // as Python writes it
	files := r.files("python", "refreshd.py", "README.md", "pyproject.toml")
	metadata := metadata(version, string(files[3].text), files[2].text)
	r.tar("refreshd-"+version+".tar.gz", "refreshd-"+version+"/", append(files, file{"PKG-INFO", metadata}))
	info := "refreshd-" + version + ".dist-info/"
	wheel := []file{
		files[1],
		{info + "LICENSE", files[0].text},
		{info + "METADATA", metadata},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: refreshd\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
	}
	var record bytes.Buffer
	for _, f := range wheel {
		sum := sha256.Sum256(f.text)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	r.zip("refreshd-"+version+"-py3-none-any.whl", append(wheel, file{info + "RECORD", record.Bytes()}))
}

var setting = regexp.MustCompile(`(?m)^(name|description|requires-python|dependencies) = \[?"(.*?)"\]?$`)

// metadata is the description of the package for pip. A test compares it with the output of setuptools.
func metadata(version, project string, readme []byte) []byte {
	said := map[string]string{}
	for _, line := range setting.FindAllStringSubmatch(project, -1) {
		said[line[1]] = line[2]
	}
	return fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nLicense: MIT\nRequires-Python: %s\n"+
		"Description-Content-Type: text/markdown\nLicense-File: LICENSE\nRequires-Dist: %s\n\n%s",
		said["name"], version, said["description"], said["requires-python"], said["dependencies"], readme)
}

func (r *release) node() {
	var manifest struct{ Files []string }
	r.err = errors.Join(r.err, json.Unmarshal(r.read("clients/node/package.json"), &manifest))
	r.tar("refreshd-"+r.version+".tgz", "package/", r.files("node", append(manifest.Files, "package.json")...))
}

func (r *release) php() {
	r.zip("refreshd-php-"+r.version+".zip", r.files("php", "composer.json", "README.md", "src/Refreshd.php"))
}

func (r *release) zip(name string, files []file) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.created}
		header.SetMode(0o644)
		r.copy(f, func() (io.Writer, error) { return w.CreateHeader(header) })
	}
	r.write(name, &archive, w.Close())
}

func (r *release) tar(name, folder string, files []file) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		r.copy(f, func() (io.Writer, error) {
			return w, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: folder + f.name, Mode: 0o644, Size: int64(len(f.text)), ModTime: r.created})
		})
	}
	r.write(name, &archive, cmp.Or(w.Close(), zipped.Close()))
}

func (r *release) copy(f file, open func() (io.Writer, error)) {
	to, err := open()
	if err == nil {
		_, err = to.Write(f.text)
	}
	r.err = errors.Join(r.err, err)
}

func (r *release) write(name string, archive *bytes.Buffer, closed error) {
	r.err = errors.Join(r.err, closed, os.WriteFile(filepath.Join(r.to, name), archive.Bytes(), 0o644))
}
