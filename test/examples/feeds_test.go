package examples

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// feeds is the web server of an example: it serves a folder with ETags, or fails.
type feeds struct {
	dir string // set before the first request

	mu         sync.Mutex
	status     int    // that it fails with; 0: it does not. guarded by mu
	retryAfter string // guarded by mu
	cut        bool   // whether it sends less than it says, guarded by mu
	unchanged  int    // how often it has answered 304, guarded by mu
}

// serve starts one on loopback.
func (f *feeds) serve(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL + "/"
}

func (f *feeds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status != 0 {
		w.Header().Set("Retry-After", f.retryAfter)
		w.WriteHeader(f.status)
		return
	}
	text, err := os.ReadFile(filepath.Join(f.dir, filepath.Base(r.URL.Path)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(text)))
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		f.unchanged++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if f.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	}
	_, _ = w.Write(text)
}

func (f *feeds) fail(status int, retryAfter string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.retryAfter = status, retryAfter
}

// cutOff makes it break off each feed before its end.
func (f *feeds) cutOff(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = cut
}

// notModified is how often it has answered 304.
func (f *feeds) notModified() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unchanged
}
