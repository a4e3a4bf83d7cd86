package handlers

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

const table = "id,name\n1,\"a\nb\"\n2,c\n"

type feed struct {
	t       *testing.T
	dir     string
	url     string
	handler worker.Handler
	said    []model.Message
}

func newFeed(t *testing.T, serveFeed http.HandlerFunc, options FetchOptions) *feed {
	t.Helper()
	f := &feed{t: t, dir: filepath.Join(t.TempDir(), "feeds"), url: serve(t, serveFeed) + "/feed.csv"}
	options.Client = ownClient(t)
	handler, err := Fetch(f.dir, options)
	must(t, err)
	f.handler = handler
	return f
}

// fetch runs the handler as a pool would, and returns what the poller would understand.
func (f *feed) fetch(ctx context.Context, url string) model.Message {
	f.t.Helper()
	payload, err := json.Marshal(map[string]string{"input_url": url})
	must(f.t, err)
	a := &worker.Attempt{UID: "tbl/1", AttemptUID: "a1", Payload: payload}
	said, end := try(ctx, f.t, f.handler, a)
	f.said = append(f.said, said...)
	if ctx.Err() == nil {
		f.clean()
	}
	return end
}

func (f *feed) clean() {
	f.t.Helper()
	for _, name := range f.files() {
		failIf(f.t, strings.HasSuffix(name, tempSuffix), "left behind: %s", name)
	}
}

func (f *feed) files() (names []string) {
	f.t.Helper()
	entries, err := os.ReadDir(f.dir)
	must(f.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *feed) holds(want string) {
	f.t.Helper()
	got, err := os.ReadFile(filepath.Join(f.dir, "tbl%2F1"))
	failIf(f.t, err != nil || string(got) != want, "the file holds %.60q, %v; want %.60q", got, err, want)
}

var success = model.Message{Type: model.MessageSuccess}

func unchanged() model.Message { return model.Message{Type: model.MessageSuccess, Changed: new(bool)} }

func (f *feed) expect(want, got model.Message) {
	f.t.Helper()
	diff := cmp.Diff(want, got, whole)
	failIf(f.t, diff != "", "told (-want +got):\n%s", diff)
}

func TestAFeedIsFetchedAndTheNextTimeOnlyWhenItHasChanged(t *testing.T) {
	body, etag, requests, bodies := table, `"v1"`, 0, 0
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
		if r.Header.Get("If-None-Match") == etag {
			failIf(t, r.Header.Get("If-Modified-Since") != "Sat, 21 Nov 2026 07:00:00 GMT",
				"asked with If-Modified-Since %q", r.Header.Get("If-Modified-Since"))
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
	diff := cmp.Diff([]string{".tbl%2F1.meta", "tbl%2F1"}, f.files())
	failIf(t, diff != "" || requests != 3 || bodies != 2, "%d requests, %d bodies, want 3 and 2; files (-want +got):\n%s", requests, bodies, diff)
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
				etag := r.Header.Get("If-None-Match")
				failIf(t, etag != "", "asked with If-None-Match %s", etag)
				w.Header().Set("ETag", `"v1"`)
				_, _ = io.WriteString(w, table)
			}, FetchOptions{})
			f.fetch(t.Context(), f.url)
			f.fetch(t.Context(), change(f))
			f.holds(table)
		})
	}
}

func TestASidecarVouchesForNoOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "feed")
	must(t, writeSidecar(path, sidecar{URL: digest("u"), Bytes: int64(len(table))}))
	d := &download{ctx: t.Context(), attempt: example(), path: path, response: &http.Response{Body: io.NopCloser(strings.NewReader(table))}, most: 100}
	if err := replace(path, d.receive); err != nil { // and here the worker is killed
		t.Fatal(err)
	}
	meta, found := readSidecar(path, "u")
	failIf(t, found, "the sidecar of the old file vouches for the new one: %+v", meta)
}
