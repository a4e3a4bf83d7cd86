package handlers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/refreshd/refreshd/model"
)

// noise is a body of many reads that no compression shortens.
func noise(seed byte) []byte {
	body := make([]byte, 1<<20+17)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(body)
	return body
}

// ways are how a server may send a body.
var ways = map[string]func(w http.ResponseWriter, body []byte){
	"length known": func(w http.ResponseWriter, body []byte) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	},
	"chunked": func(w http.ResponseWriter, body []byte) {
		for len(body) > 0 {
			n := min(len(body), 100_003) // not a size that anybody reads in
			_, _ = w.Write(body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	},
	"gzip": func(w http.ResponseWriter, body []byte) {
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		_, _ = zip.Write(body)
		_ = zip.Close()
	},
}

func TestABodyOfManyReadsArrivesByteForByte(t *testing.T) {
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			first, second := noise(1), noise(1)
			second[len(second)-1] ^= 1 // only the last byte is another
			var body atomic.Pointer[[]byte]
			body.Store(&first)
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { send(w, *body.Load()) }, FetchOptions{})
			f.expect(success, f.fetch(t.Context(), f.url))
			f.holdsBytes(first)
			if last := f.said[len(f.said)-1].Status; last != "Downloaded 1.0 MiB" {
				t.Errorf("the last status is %q, want all bytes counted", last)
			}
			f.expect(unchanged(), f.fetch(t.Context(), f.url))
			body.Store(&second)
			f.expect(success, f.fetch(t.Context(), f.url))
			f.holdsBytes(second)
		})
	}
}

func TestABodyThatIsCutOffInItsMiddleLeavesTheOldFileWhole(t *testing.T) {
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			old := noise(1)
			var cut atomic.Bool
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
				if !cut.Load() {
					send(w, old)
					return
				}
				send(&cutting{ResponseWriter: w, left: 700_000}, noise(2))
			}, FetchOptions{})
			f.expect(success, f.fetch(t.Context(), f.url))
			cut.Store(true)
			if m := f.fetch(t.Context(), f.url); m.Type != model.MessageFailure || m.ErrorType != "truncated" {
				t.Errorf("told %+v, want a failure of type truncated", m)
			}
			f.holdsBytes(old)
		})
	}
}

// cutting breaks the connection after so many bytes.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// holdsBytes compares the file and what is remembered of it with what was sent.
func (f *feed) holdsBytes(want []byte) {
	f.t.Helper()
	path := filepath.Join(f.dir, "tbl%2F1")
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		f.t.Errorf("the file holds %d bytes, %v; want the %d that were sent", len(got), err, len(want))
	}
	meta, found := readSidecar(path, f.url)
	if !found || meta.Bytes != int64(len(want)) || meta.SHA256 != digest(string(want)) {
		f.t.Errorf("the sidecar says %+v, %t; want %d bytes with the hash %s", meta, found, len(want), digest(string(want)))
	}
}

// A reader that errs behind its last bytes, or that brings bytes with its end, says so in one call.
func TestWhatComesTogetherWithTheEndOfABodyCounts(t *testing.T) {
	for _, end := range []error{io.EOF, fmt.Errorf("reset")} {
		d := &download{ctx: t.Context(), attempt: example(), response: &http.Response{Body: io.NopCloser(&lastWords{"abc", end})}, most: 3, path: filepath.Join(t.TempDir(), "f")}
		var file bytes.Buffer
		err := d.receive(&file)
		if whole := err == nil && file.String() == "abc"; whole != errors.Is(end, io.EOF) {
			t.Errorf("%v: received %q, %v", end, file.String(), err)
		}
	}
}

// lastWords are a body that comes with its end in one call.
type lastWords struct {
	text string
	end  error
}

func (l *lastWords) Read(p []byte) (int, error) { return copy(p, l.text), l.end }
