package handlers

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

func TestAnotherHostHearsNothingOfTheAddressThatLeadsToIt(t *testing.T) {
	referer := "-"
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		referer = r.Header.Get("Referer")
		_, _ = io.WriteString(w, table)
	})
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other, "127.0.0.1", "localhost", 1)+"/x.csv", http.StatusFound)
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url+"?token=geheim"))
	if referer != "" {
		t.Errorf("got %s, want nothing", referer)
	}
}

func TestABadRedirectionIsToldWithoutItsAddress(t *testing.T) {
	for _, location := range []string{"https://cdn.example.com:99x/?sig=geheim", "https://x y/geheim"} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Location"] = []string{location}
			w.WriteHeader(http.StatusFound)
		}, FetchOptions{})
		got := f.fetch(t.Context(), f.url)
		if want := "the server redirects to what is no address"; got.Reason != want || got.ErrorType != "network" {
			t.Errorf("%s: got %s: %q, want network: %q", location, got.ErrorType, got.Reason, want)
		}
	}
}

// oneOfMany serves the files of a directory by their dates alone, and one of them behind a redirection.
func oneOfMany(t *testing.T, target *string) (f *feed, put func(name, body string, age time.Duration)) {
	t.Helper()
	dir := t.TempDir()
	files := http.FileServer(http.Dir(dir))
	f = newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/feed.csv" && *target != "" {
			http.Redirect(w, r, *target, http.StatusFound)
			return
		}
		files.ServeHTTP(w, r)
	}, FetchOptions{})
	return f, func(name, body string, age time.Duration) {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		must(t, os.WriteFile(path, []byte(body), 0o644))
		must(t, os.Chtimes(path, at, at))
	}
}

func TestAnOlderFileInTheSamePlaceIsNoticed(t *testing.T) {
	target := ""
	f, put := oneOfMany(t, &target)
	put("feed.csv", "id\n1\n", time.Hour)
	f.expect(success, f.fetch(t.Context(), f.url))
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	put("feed.csv", "id\n1\n2\n3\n", 2*time.Hour) // from a backup
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds("id\n1\n2\n3\n")
}

func TestAnotherFileBehindARedirectionIsNoticed(t *testing.T) {
	target := "/a.csv?sig=1"
	f, put := oneOfMany(t, &target)
	put("a.csv", "id\n1\n", time.Hour)
	put("b.csv", "id\n2\n3\n", time.Hour)
	f.expect(success, f.fetch(t.Context(), f.url))
	target = "/a.csv?sig=2" // a query that is new each time makes it no other
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	target = "/b.csv?sig=3"
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds("id\n2\n3\n")
}

func TestA304ThatNamesAnotherVersionIsNotBelieved(t *testing.T) {
	etag, body := `"v1"`, "id\n1\n"
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", modified)
		w.Header().Set("Date", "Sat, 21 Nov 2026 08:00:00 GMT")
		if r.Header.Get("If-Modified-Since") != "" { // as servers do that look at it first
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, body)
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	etag = `W/"v1-gzip"` // the same, as caches and packers write it
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	etag, body = `"v2"`, "id\n1\n2\n"
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds(body)
}

func TestWhatARequestWithAnETagIsRefusedForIsAskedWithout(t *testing.T) {
	for _, code := range []int{400, 412, 431} {
		f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(code)
				return
			}
			_, _ = io.WriteString(w, table)
		}, FetchOptions{})
		f.expect(success, f.fetch(t.Context(), f.url))
		f.expect(unchanged(), f.fetch(t.Context(), f.url))
	}
}

func TestALoginOfTheOperatorThatIsRefusedDisablesNobody(t *testing.T) {
	for _, code := range []int{401, 403} {
		refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		own := newFeed(t, refuse, FetchOptions{Header: http.Header{"Authorization": {"Bearer expired"}}})
		if got := own.fetch(t.Context(), own.url); got.Retryable == nil || !*got.Retryable || got.UserFriendlyReason != "" {
			t.Errorf("%d: got %+v, want it retried, and no owner told", code, got)
		}
		plain := newFeed(t, refuse, FetchOptions{})
		if got := plain.fetch(t.Context(), plain.url); got.Retryable == nil || *got.Retryable || got.UserFriendlyReason == "" {
			t.Errorf("%d: got %+v, want it final, and the owner told", code, got)
		}
	}
}

func TestWhatALaterAttemptHasOvertakenIsToldSo(t *testing.T) {
	f := newFeed(t, unchanging, FetchOptions{})
	f.expect(success, f.fetchAs(t, &worker.Attempt{Fence: 10}))
	said := len(f.said)
	if got := f.fetchAs(t, &worker.Attempt{Fence: 9}); got.Type != model.MessageFailure || got.ErrorType != "overtaken" {
		t.Errorf("a 304: got %+v, want a failure of type overtaken", got)
	}
	f.url += "?v=2"
	if got := f.fetchAs(t, &worker.Attempt{Fence: 9}); got.ErrorType != "overtaken" {
		t.Errorf("a file: got %+v, want a failure of type overtaken", got)
	}
	for _, m := range f.said[said:] {
		if strings.HasPrefix(m.Status, "Downloaded") {
			t.Errorf("the owner reads %q of what replaces nothing", m.Status)
		}
	}
}
