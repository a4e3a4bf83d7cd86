// Command image writes the image of a release as an archive in the layout of OCI, without a daemon and without a base image: the program, a
// directory for what a worker downloads, and nothing else. It is a module of its own, so that the libraries for images are none of refreshd's.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type release struct {
	version, revision string
	created           time.Time // of the commit: the same release has the same bytes
	binaries          string    // a path with ARCH in place of the architecture
}

// nobody is the user and the group of the program; no system has given this number to anybody.
const nobody = 65532

func main() {
	var r release
	var to string
	var seconds int64
	flag.StringVar(&r.version, "version", "", "of the release, as in v1.2.3")
	flag.StringVar(&r.revision, "revision", "", "the commit")
	flag.Int64Var(&seconds, "created", 0, "when the commit was made, in Unix seconds")
	flag.StringVar(&r.binaries, "binaries", "", "path of the programs for linux, with ARCH in place of amd64 or arm64")
	flag.StringVar(&to, "o", "", "the archive to write")
	flag.Parse()
	r.created = time.Unix(seconds, 0).UTC()
	if err := r.write(to); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the archive: an index with an image for each architecture.
func (r *release) write(to string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := r.image(arch)
		if err != nil {
			return fmt.Errorf("make the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// By this name one picks it out of the archive.
	top := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendIndex(index, top)
	}
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return archive(dir, to, r.created)
}

func (r *release) image(arch string) (v1.Image, error) {
	program, err := os.ReadFile(strings.ReplaceAll(r.binaries, "ARCH", arch))
	if err != nil {
		return nil, err
	}
	files, err := r.files(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "make release"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: r.created}, Config: r.config(),
		RootFS:  must(image.ConfigFile()).RootFS,
		History: must(image.ConfigFile()).History,
	})
}

func must(file *v1.ConfigFile, err error) *v1.ConfigFile {
	if err != nil {
		panic(err) // of an image in memory
	}
	return file
}

// config says how the program runs. Docker and podman look at the health check; Kubernetes has probes of its own.
func (r *release) config() v1.Config {
	user := fmt.Sprintf("%d:%d", nobody, nobody)
	return v1.Config{
		User: user, Entrypoint: []string{"/refreshd"}, WorkingDir: "/", Env: []string{"REFRESHD_HEALTH=127.0.0.1:8080"},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/refreshd", "health", "/livez"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "refreshd",
			"org.opencontainers.image.description": "Keep models fresh: refresh on a schedule, retry what fails, give up with a reason",
			"org.opencontainers.image.licenses":    "MIT",
			"org.opencontainers.image.source":      "https://github.com/refreshd/refreshd",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.revision,
			"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
		},
	}
}

// files is the only layer. A new volume at /data takes its owner from the directory, so that the worker may write to it.
func (r *release) files(program []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	err := cmp.Or(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: nobody, Gid: nobody, ModTime: r.created}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "refreshd", Mode: 0o755, Size: int64(len(program)), ModTime: r.created}),
	)
	if err == nil {
		_, err = w.Write(program)
	}
	return buffer.Bytes(), errors.Join(err, w.Close())
}

// archive packs a directory, in the order of names and without anything that differs from one time to the next.
func archive(dir, to string, at time.Time) (err error) {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at})
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: at}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	return errors.Join(err, w.Close())
}
