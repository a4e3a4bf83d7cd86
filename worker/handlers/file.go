package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// fileName derives the name of a file from the uid of a model: every character other than letters, digits and _-. becomes
// %XX, as does a dot at the begin. Long names are cut and made unique again by a hash. Different uids have different names,
// and none leaves the directory, is hidden or is that of a sidecar.
func fileName(uid string) string {
	var name strings.Builder
	for i, b := range []byte(uid) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-', b == '.' && i > 0:
			name.WriteByte(b)
		default:
			fmt.Fprintf(&name, "%%%02X", b)
		}
	}
	if name.Len() <= 150 {
		return name.String()
	}
	// A ~ stands in no other name.
	return name.String()[:120] + "~" + digest(uid)[:24]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sidecar is what is remembered of a file that was fetched: a hidden JSON file beside it. It holds no URL, because there may
// be a password in it.
type sidecar struct {
	URL          string `json:"url_sha256"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	Bytes        int64  `json:"bytes"`
	SHA256       string `json:"sha256"`
}

func sidecarPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".meta")
}

// readSidecar returns what is remembered of a file as long as it is true: it must still be there, with the same size.
func readSidecar(path, url string) (sidecar, bool) {
	var meta sidecar
	text, err := os.ReadFile(sidecarPath(path))
	if err != nil || json.Unmarshal(text, &meta) != nil || meta.URL != digest(url) {
		return sidecar{}, false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != meta.Bytes {
		return sidecar{}, false
	}
	return meta, true
}

const tempSuffix = ".refreshd-part"

// replace writes a file as one step: whoever reads it sees the old or the new one, also after a crash.
func replace(path string, write func(io.Writer) error) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		_ = temp.Close()
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	if err := lock(temp); err != nil {
		return err
	}
	if err := write(temp); err != nil {
		return err
	}
	if err := errors.Join(temp.Chmod(0o644), temp.Sync()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSidecar(path string, meta sidecar) error {
	return replace(sidecarPath(path), func(file io.Writer) error { return json.NewEncoder(file).Encode(meta) })
}

// removeLeftovers removes the temporary files of workers that were killed. Those of living ones are locked.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(entry.Name(), tempSuffix) || !entry.Type().IsRegular() {
			continue
		}
		file, err := os.Open(filepath.Join(dir, entry.Name()))
		if err == nil && lock(file) == nil { // else somebody is writing it
			err = os.Remove(file.Name())
		}
		_ = file.Close() // none: nothing is closed
		errs = append(errs, ignoreMissing(err))
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
