package handlers

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFeedIsFetchedAndTheNextTimeOnlyWhenItHasChanged(t *testing.T) {
	body, etag, requests, bodies := table, `"v1"`, 0, 0
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
		if r.Header.Get("If-None-Match") == etag {
			if r.Header.Get("If-Modified-Since") != "Sat, 21 Nov 2026 07:00:00 GMT" {
				t.Errorf("asked with If-Modified-Since %q", r.Header.Get("If-Modified-Since"))
			}
			w.WriteHeader(http.StatusNotModified)
			return
		}
		bodies++
		_, _ = io.WriteString(w, body)
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds(table)
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	f.holds(table)
	body, etag = "id\n", `"v2"`
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds("id\n")
	if diff := cmp.Diff([]string{".tbl%2F1.meta", "tbl%2F1"}, f.files()); diff != "" || requests != 3 || bodies != 2 {
		t.Errorf("%d requests, %d bodies, want 3 and 2; files (-want +got):\n%s", requests, bodies, diff)
	}
}

func TestAConditionIsOnlySentForTheFileThatIsThere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *feed) (url string){
		"another URL":  func(f *feed) string { return f.url + "?v=2" },
		"file is gone": func(f *feed) string { _ = os.Remove(filepath.Join(f.dir, "tbl%2F1")); return f.url },
		"file is another": func(f *feed) string {
			_ = os.WriteFile(filepath.Join(f.dir, "tbl%2F1"), []byte("x"), 0o600)
			return f.url
		},
		"sidecar is odd": func(f *feed) string {
			_ = os.WriteFile(filepath.Join(f.dir, ".tbl%2F1.meta"), []byte("{"), 0o600)
			return f.url
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
				if etag := r.Header.Get("If-None-Match"); etag != "" {
					t.Errorf("asked with If-None-Match %s", etag)
				}
				w.Header().Set("ETag", `"v1"`)
				_, _ = io.WriteString(w, table)
			}, FetchOptions{})
			f.fetch(t.Context(), f.url)
			f.fetch(t.Context(), change(f))
			f.holds(table)
		})
	}
}

func TestNotModifiedIsNoSuccessWithoutTheFileThatItIsAbout(t *testing.T) {
	code := http.StatusOK
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		if code == http.StatusOK {
			_, _ = io.WriteString(w, table)
		}
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	must(t, os.Remove(filepath.Join(f.dir, "tbl%2F1")))
	code = http.StatusNotModified
	if m := f.fetch(t.Context(), f.url); m.ErrorType != "http_304" {
		t.Errorf("told %+v, want a failure, as there is no file", m)
	}
}

func TestTheSameBytesAgainAreNoChange(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, table) }, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	f.holds(table)
}

func TestASidecarVouchesForNoOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "feed")
	must(t, writeSidecar(path, sidecar{URL: digest("u"), Bytes: int64(len(table))}))
	d := &download{ctx: t.Context(), attempt: example(), path: path, response: &http.Response{Body: io.NopCloser(strings.NewReader(table))}, most: 100}
	if err := replace(path, d.receive); err != nil { // and here the worker is killed
		t.Fatal(err)
	}
	if meta, found := readSidecar(path, "u"); found {
		t.Errorf("the sidecar of the old file vouches for the new one: %+v", meta)
	}
}
