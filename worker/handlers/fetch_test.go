package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

func TestTheDefaultsOfAFetchAreThoseOfItsDocumentation(t *testing.T) {
	want := FetchOptions{
		MaxBytes: 1073741824, Stall: time.Minute, LeastRate: 1024, Revalidate: 168 * time.Hour, UserAgent: "refreshd (+https://github.com/refreshd/refreshd)",
	}
	equal(t, want, FetchOptions{}.withDefaults())
}

func TestAFeedAboveTheLimitIsRefusedAndLeavesTheOldFile(t *testing.T) {
	for name, send := range ways { // gzip: a bomb
		t.Run(name, func(t *testing.T) {
			body := table
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { send(w, []byte(body)) }, FetchOptions{MaxBytes: 1 << 10})
			f.expect(success, f.fetch(t.Context(), f.url))
			body = strings.Repeat("x", 1<<10)
			f.expect(success, f.fetch(t.Context(), f.url)) // exactly the limit
			f.holds(body)
			old := body
			body += "x"
			m := f.fetch(t.Context(), f.url)
			if m.ErrorType != "too_large" || m.Retryable == nil || *m.Retryable || m.UserFriendlyReason != "The feed is larger than the 1.0 KiB that are allowed." {
				t.Errorf("told %+v", m)
			}
			f.holds(old)
		})
	}
}

func TestAFeedThatSaysItIsTooLargeIsNotDownloaded(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1025")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // not a byte comes
	}, FetchOptions{MaxBytes: 1 << 10})
	m := f.fetch(t.Context(), f.url)
	failIf(t, m.ErrorType != "too_large", "told %+v, want a failure of type too_large", m)
}

func TestTheOwnerIsToldWhatIsWrongWithTheAddress(t *testing.T) {
	no := false
	status := http.StatusNotFound
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, FetchOptions{})
	address := strings.Replace(f.url, "http://", "http://user:pass@", 1) + "?token=secret#x"
	for code, text := range map[int]string{
		404: "The feed was not found (404): ", 410: "The feed is gone (410): ", 401: "The feed asks for a login (401): ",
		403: "Access to the feed was refused (403): ",
	} {
		status = code
		f.expect(model.Message{Type: model.MessageFailure, Failure: policy.Failure{
			Reason: fmt.Sprintf("%d %s", code, http.StatusText(code)), ErrorType: fmt.Sprintf("http_%d", code), Retryable: &no,
			UserFriendlyReason: text + f.url,
		}}, f.fetch(t.Context(), address))
	}
}

func TestAnInputURLThatIsNoneIsNotRetried(t *testing.T) {
	handler := check.Got(Fetch(t.TempDir(), FetchOptions{}))(t)
	for _, payload := range []string{
		``, `[]`, `{}`, `{"input_url":null}`, `{"input_url":""}`, `{"input_url":7}`, `{"input_url":"feed.csv"}`,
		`{"input_url":"file:///etc/passwd"}`, `{"input_url":"ftp://x/y"}`, `{"input_url":"http:///y"}`, `{"input_url":"http://x/%zz"}`,
	} {
		a := &worker.Attempt{UID: "m", AttemptUID: "a1", Payload: json.RawMessage(payload)}
		_, m := try(t.Context(), t, handler, a)
		named := strings.HasPrefix(m.Reason, "input_url: expected ") || strings.HasPrefix(m.Reason, "payload: expected ")
		failIf(t, m.Type != model.MessageFailure || m.ErrorType != "input_url" || m.Retryable == nil || *m.Retryable || !named, "%s: told %+v", payload, m)
	}
}

func TestOtherAnswersAreFailuresThatMayBeRetried(t *testing.T) {
	for _, code := range []int{204, 206, 304, 500} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, FetchOptions{})
		m := f.fetch(t.Context(), f.url)
		failIf(t, m.Type != model.MessageFailure || m.Retryable != nil || m.ErrorType != fmt.Sprintf("http_%d", code), "%d: told %+v", code, m)
	}
}

func TestARedirectionIsFollowedButNotToAFile(t *testing.T) {
	to := "/real"
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/real" {
			_, _ = io.WriteString(w, table)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds(table)
	to = "file:///etc/passwd?token=secret"
	m := f.fetch(t.Context(), f.url)
	failIf(t, m.Type != model.MessageFailure || m.ErrorType != "forbidden_address" || strings.Contains(m.Reason, "secret"), "told %+v", m)
	f.holds(table)
}

func TestTheStatusTellsBytesAndAtTheEndRows(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		known bool
		want  []string
	}{
		"length known":   {table, true, []string{"Downloading: 20 B of 20 B", "Downloaded 2 rows, 20 B"}},
		"length unknown": {table, false, []string{"Downloading: 20 B", "Downloaded 2 rows, 20 B"}},
		"one row":        {"id\n1", true, []string{"Downloading: 4 B of 4 B", "Downloaded 1 row, 4 B"}},
		"one byte":       {"x", true, []string{"Downloading: 1 B of 1 B", "Downloaded 0 rows, 1 B"}},
		"empty":          {"", true, []string{"Downloaded 0 rows, 0 B"}},
		"no CSV":         {"PK\x00\x01", true, []string{"Downloading: 4 B of 4 B", "Downloaded 4 B"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.known {
					w.Header().Set("Content-Length", strconv.Itoa(len(c.body)))
				} else {
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.WriteString(w, c.body)
			}, FetchOptions{})
			f.expect(success, f.fetch(t.Context(), f.url))
			var got []string
			for i, m := range f.said {
				got = append(got, m.Status)
				known := m.Progress != nil
				failIf(t, known != (c.known || i == len(f.said)-1), "%s: progress %v", m.Status, m.Progress)
			}
			equal(t, c.want, got, whole)
		})
	}
}

func TestADownloadCountsItsBytesAndTheRowsOfCSVAndJSONLinesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		path, kind, body string
		want             map[string]float64
	}{
		"CSV by its name":        {"/feed.csv", "", table, map[string]float64{"bytes": 20, "rows": 2}},
		"CSV by its type":        {"/feed", "text/csv; charset=utf-8", table, map[string]float64{"bytes": 20, "rows": 2}},
		"a header alone":         {"/feed.csv", "", "id,name\n", map[string]float64{"bytes": 8, "rows": 0}},
		"nothing":                {"/feed.csv", "", "", map[string]float64{"bytes": 0, "rows": 0}},
		"JSON lines by name":     {"/feed.jsonl", "", "{\"a\":\"\\\"\"}\n\n{}", map[string]float64{"bytes": 14, "rows": 2}},
		"JSON lines by type":     {"/feed", "application/x-ndjson", "{}\n", map[string]float64{"bytes": 3, "rows": 1}},
		"something else":         {"/feed", "text/html", table, map[string]float64{"bytes": 20}},
		"binary of a wrong name": {"/feed.csv", "", "PK\x00\x01", map[string]float64{"bytes": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.body)
			}, FetchOptions{})
			m := f.fetch(t.Context(), strings.TrimSuffix(f.url, "/feed.csv")+c.path)
			diff := cmp.Diff(c.want, m.Metrics)
			failIf(t, m.Type != model.MessageSuccess || diff != "", "told %s (-want +got):\n%s", m.Type, diff)
		})
	}
}

func TestADownloadEndsWithTheContextAndLeavesTheOldFile(t *testing.T) {
	block, began := false, make(chan struct{})
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, table)
		if block {
			_ = http.NewResponseController(w).Flush()
			close(began)
			<-r.Context().Done()
		}
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	block = true
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	a := &worker.Attempt{UID: "tbl/1", AttemptUID: "a1", Payload: json.RawMessage(`{"input_url":"` + f.url + `"}`)}
	go func() { result <- f.handler(ctx, a) }()
	check.Await(t, began, "the first bytes")
	cancel(worker.ErrFenceLost)
	err := check.Await(t, result, "the end of the handler")
	failIf(t, !errors.Is(err, worker.ErrFenceLost), "got %v, want worker.ErrFenceLost", err)
	f.clean()
	f.holds(table)
}

func TestAStaleDownloadReplacesNothingEvenWhenItIsWhole(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &download{ctx: ctx, attempt: example(), source: &url.URL{}, response: &http.Response{Request: &http.Request{URL: &url.URL{}}, Body: io.NopCloser(strings.NewReader(table))}, most: 100}
	cancel(worker.ErrFenceLost)
	path := filepath.Join(t.TempDir(), "feed")
	err := replace(path, d.receive)
	failIf(t, !errors.Is(err, worker.ErrFenceLost), "got %v, want worker.ErrFenceLost", err)
	_, err = os.Stat(path)
	failIf(t, !errors.Is(err, os.ErrNotExist), "stat: %v, want that there is no file", err)
}

func TestAFileThatCannotBeWrittenIsAFailureThatMayBeRetried(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, table) }, FetchOptions{})
	must(t, os.Mkdir(filepath.Join(f.dir, "tbl%2F1"), 0o700)) // a directory is in the way of the file
	m := f.fetch(t.Context(), f.url)
	failIf(t, m.ErrorType != "disk" || m.Retryable != nil || m.Reason != "the file cannot be written", "told %+v, want a failure of type disk without a path", m)
}

const table = "id,name\n1,\"a\nb\"\n2,c\n"

func (f *feed) clean() {
	f.t.Helper()
	for _, name := range f.files() {
		failIf(f.t, strings.HasSuffix(name, tempSuffix), "left behind: %s", name)
	}
}

func (f *feed) files() (names []string) {
	f.t.Helper()
	entries := check.Got(os.ReadDir(f.dir))(f.t)
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
	if bytes, told := got.Metrics["bytes"]; told {
		body, err := os.ReadFile(filepath.Join(f.dir, "tbl%2F1"))
		failIf(f.t, err != nil || bytes != float64(len(body)), "told %v bytes, of a file with %d, %v", bytes, len(body), err)
	}
	got.Metrics = nil
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
	d := &download{ctx: t.Context(), attempt: example(), path: path, source: &url.URL{}, response: &http.Response{Request: &http.Request{URL: &url.URL{}}, Body: io.NopCloser(strings.NewReader(table))}, most: 100}
	must(t, replaceBy(path, d.receive, d.rename)) // and here the worker is killed
	meta := readSidecar(path, "u")
	failIf(t, meta != sidecar{}, "the sidecar of the old file vouches for the new one: %+v", meta)
}

// TestAFrozenDownloadReplacesNothingNewer stops an attempt between the last byte and the file. Meanwhile a later one publishes.
func TestAFrozenDownloadReplacesNothingNewer(t *testing.T) {
	dir, body := t.TempDir(), "old"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	t.Cleanup(server.Close)
	source := check.Got(url.Parse(server.URL))(t)
	begin := func(fence int64) *download {
		response := check.Got(server.Client().Get(server.URL))(t)
		t.Cleanup(func() { must(t, response.Body.Close()) })
		return &download{ctx: t.Context(), attempt: &worker.Attempt{UID: "m", Fence: fence}, source: source, response: response, path: filepath.Join(dir, "m"), most: 100}
	}
	holds := func(want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "m"))
		meta := readSidecar(filepath.Join(dir, "m"), source.String())
		failIf(t, err != nil || string(text) != want || meta.SHA256 != digest(want), "the file holds %q (%v), its sidecar %+v; want %q", text, err, meta, want)
	}
	frozen := begin(7)
	err := replaceBy(frozen.path, frozen.receive, func(written string) error {
		body = "new"
		later := begin(8)
		must(t, replaceBy(later.path, later.receive, later.publish))
		return frozen.publish(written)
	})
	failIf(t, !errors.Is(err, errOvertaken), "the frozen one is told %v", err)
	holds("new")
	body = "same"
	twin := begin(8)
	must(t, replaceBy(twin.path, twin.receive, twin.publish)) // it was handed out twice, and the first has published
	holds("new")
	untold := begin(0)
	must(t, replaceBy(untold.path, untold.receive, untold.publish)) // its entry has no fence
	holds("same")
	left := check.Got(filepath.Glob(filepath.Join(dir, ".*"+tempSuffix)))(t)
	failIf(t, len(left) > 0, "expected no temporary files, found %q", left)
}

func TestADownloadWaitsForAWorkerThatPublishesAndNotForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	ctx, cancel := context.WithCancel(t.Context())
	must(t, publish(ctx, path, 1, func() error {
		cancel()
		err := publish(ctx, path, 2, func() error { return errors.New("two at a time") })
		failIf(t, !errors.Is(err, context.Canceled), "the second is told %v", err)
		return nil
	}))
	must(t, publish(t.Context(), path, 2, func() error { return nil }))
	failIf(t, !errors.Is(publish(t.Context(), path, 1, func() error { return errors.New("overtaken") }), errOvertaken), "fence 1 behind fence 2 publishes")
}
