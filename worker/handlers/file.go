package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/worker"
)

// fileName derives a file name from the uid of a model: all but letters, digits and _-. becomes %XX, as does a first dot. Long names are cut and
// get a hash. Different uids have different names; none leaves the directory, is hidden or belongs to a sidecar.
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
	// No other name has a ~.
	return name.String()[:120] + "~" + digest(uid)[:24]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sidecar is a hidden JSON file beside a fetched file. It holds no URL, because there may be a password in it.
type sidecar struct {
	URL string `json:"url_sha256"`
	validators
	Bytes  int64  `json:"bytes"`
	Rows   *int64 `json:"rows,omitempty"` // nil: it has none
	SHA256 string `json:"sha256"`
	// Fence is the fence of the attempt that has brought the whole file: at least its time, in Unix ms. 0: not known.
	Fence int64 `json:"fence,omitempty"`
}

// believed are the validators as long as the whole file is not older than an age, by the fence of an attempt. Without fences they are believed.
func (s *sidecar) believed(fence int64, age time.Duration) validators {
	if fence-s.Fence > age.Milliseconds() {
		return validators{}
	}
	return s.validators
}

// report gives an attempt the numbers of the file.
func (s *sidecar) report(attempt *worker.Attempt) {
	attempt.Metric("bytes", float64(s.Bytes))
	if s.Rows != nil {
		attempt.Metric("rows", float64(*s.Rows))
	}
}

// String is how much the file holds, for its owner.
func (s *sidecar) String() string {
	if s.Rows == nil {
		return size(s.Bytes)
	}
	return words.Count(int(*s.Rows), "row", "rows") + ", " + size(s.Bytes)
}

func sidecarPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".meta")
}

// readSidecar returns the sidecar of a file that is still there with the same size; else it is empty.
func readSidecar(path, url string) (meta sidecar) {
	text, _ := os.ReadFile(sidecarPath(path)) // none cannot be read
	info, err := os.Stat(path)
	if json.Unmarshal(text, &meta) != nil || meta.URL != digest(url) || err != nil || !info.Mode().IsRegular() || info.Size() != meta.Bytes {
		return sidecar{}
	}
	return meta
}

const tempSuffix = ".refreshd-part"

// replace writes a file as one step: readers see the old or the new one, also after a crash.
func replace(path string, write func(io.Writer) error) error {
	return replaceBy(path, write, func(written string) error { return os.Rename(written, path) })
}

// replaceBy leaves it to publish to rename the written file.
func replaceBy(path string, write func(io.Writer) error, publish func(written string) error) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		_ = temp.Close()
		_ = os.Remove(temp.Name()) // it is missing if it was published
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
	if err := publish(temp.Name()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSidecar(path string, meta sidecar) error {
	return replace(sidecarPath(path), func(file io.Writer) error { return json.NewEncoder(file).Encode(meta) })
}

// errOvertaken: an attempt with a higher fence has published its file.
var errOvertaken = worker.ErrorType(errors.New("a later attempt has published its file"), "overtaken")

// publish calls write unless a later attempt has published this file: a frozen worker replaces nothing newer. The lock ends with the process.
// Without a fence it only calls.
func publish(ctx context.Context, path string, fence int64, write func() error) error {
	if fence == 0 {
		return write()
	}
	path = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".fence")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := lockWithin(ctx, file); err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	last, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	switch {
	case err != nil:
		return err
	case fence < last:
		return errOvertaken
	case fence == last:
		return nil // somebody who was given the same attempt was faster
	}
	if err := write(); err != nil {
		return err
	}
	_, err = file.WriteAt(fmt.Appendln(nil, fence), 0) // it never becomes shorter
	return err
}

// lockWithin waits for a lock that another worker has.
func lockWithin(ctx context.Context, file *os.File) error {
	for {
		if err := lock(file); !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
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
