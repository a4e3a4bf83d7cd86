package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// modified is the Last-Modified of the responses; its Unix time is 1795244400, in hexadecimal 6b014170, to the base of 36 toubg0.
const modified = "Sat, 21 Nov 2026 07:00:00 GMT"

func TestOnlyWhatTheNextChangeIsSureToChangeIsKeptOfAResponse(t *testing.T) {
	const soon, later = "Sat, 21 Nov 2026 07:00:01 GMT", "Sat, 21 Nov 2026 07:00:02 GMT"
	for name, test := range map[string]struct {
		etag, modified, date string
		want                 validators
	}{
		"two seconds later":            {`"6b014170-30d32"`, modified, later, validators{ETag: `"6b014170-30d32"`, LastModified: modified}},
		"within two seconds":           {`"v1"`, modified, soon, validators{ETag: `"v1"`}},
		"nginx":                        {`"6b014170-30d32"`, modified, soon, validators{}},
		"nginx, packed":                {`W/"6b014170-30d32"`, modified, soon, validators{}},
		"caddy":                        {`"toubg04c1e"`, modified, soon, validators{}},
		"busybox":                      {`"6b014170-30d32"`, modified, soon, validators{}},
		"Apache":                       {`"30d32-660c3e8c11e40"`, modified, soon, validators{}},
		"Apache, packed":               {`"30d32-660c3e8c11e40-gzip"`, modified, soon, validators{}},
		"milliseconds":                 {`W/"200000-1795244400123"`, modified, soon, validators{}},
		"lighttpd, a hash":             {`"3631179695"`, modified, soon, validators{ETag: `"3631179695"`}},
		"a date ahead of the response": {"", modified, "Sat, 21 Nov 2026 06:59:00 GMT", validators{}},
		"no Date":                      {`"v1"`, modified, "", validators{ETag: `"v1"`}},
		"no date that can be read":     {`"v1"`, "yesterday", later, validators{ETag: `"v1"`}},
		"an ETag alone":                {`"v1"`, "", later, validators{ETag: `"v1"`}},
		"nothing":                      {"", "", later, validators{}},
		"an ETag that fills a header":  {`"` + strings.Repeat("x", 1<<10) + `"`, modified, later, validators{LastModified: modified}},
	} {
		response := &http.Response{Header: http.Header{}, Request: &http.Request{URL: &url.URL{}}}
		response.Header.Set("ETag", test.etag)
		response.Header.Set("Last-Modified", test.modified)
		response.Header.Set("Date", test.date)
		got := validatorsOf(response)
		got.From = ""
		if got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// watched is a feed whose server answers and notes what it is asked.
func watched(t *testing.T, options FetchOptions, answer http.HandlerFunc) (f *feed, requests *[]http.Header) {
	t.Helper()
	requests = new([]http.Header)
	f = newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.Header)
		answer(w, r)
	}, options)
	return f, requests
}

// unchanging is a feed that never changes.
func unchanging(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	if r.Header.Get("If-None-Match") != "" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, table)
}

func TestWhatApacheHasAddedToAnETagIsSentWithAndWithout(t *testing.T) {
	f, requests := watched(t, FetchOptions{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"30d32-1-gzip"`)
		if strings.Contains(r.Header.Get("If-None-Match"), `"30d32-1"`) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, table)
	})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.expect(unchanged(), f.fetch(t.Context(), f.url))
	if got, want := (*requests)[1].Get("If-None-Match"), `"30d32-1-gzip", "30d32-1"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAValidatorThatTheServerRefusesIsDroppedAndTheWholeIsAskedFor(t *testing.T) {
	f, requests := watched(t, FetchOptions{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		_, _ = io.WriteString(w, table)
	})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.expect(unchanged(), f.fetch(t.Context(), f.url)) // the same bytes
	if got := len(*requests); got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}
	refusing := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPreconditionFailed) }, FetchOptions{})
	if m := refusing.fetch(t.Context(), refusing.url); m.Type != model.MessageFailure || m.ErrorType != "http_412" {
		t.Errorf("got %+v, want a failure: nothing was asked conditionally", m)
	}
}

// TestAServerIsBelievedForAWeekThatNothingHasChanged by the fences of attempts, which are at least the time in Unix ms.
func TestAServerIsBelievedForAWeekThatNothingHasChanged(t *testing.T) {
	f, requests := watched(t, FetchOptions{}, unchanging)
	week := (7 * 24 * time.Hour).Milliseconds()
	first := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC).UnixMilli()
	for i, test := range []struct {
		fence int64
		whole bool
	}{{first, true}, {first + 1000, false}, {first + week, false}, {first + week + 1, true}, {first + week + 2, false}, {first + 2*week + 2, true}} {
		f.fetchAs(t, &worker.Attempt{Fence: test.fence})
		if got := (*requests)[i].Get("If-None-Match") == ""; got != test.whole {
			t.Errorf("attempt %d: got whole %t, want %t", i, got, test.whole)
		}
	}
}

func TestAFileOfAnUnknownAgeIsAskedForOnceAsAWhole(t *testing.T) {
	f, requests := watched(t, FetchOptions{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		_, _ = io.WriteString(w, table)
	})
	f.expect(success, f.fetch(t.Context(), f.url)) // without a fence
	f.fetchAs(t, &worker.Attempt{Fence: 1795244400000})
	f.fetchAs(t, &worker.Attempt{Fence: 1795244401000})
	for i, want := range []string{"", "", `"v1"`} {
		if got := (*requests)[i].Get("If-None-Match"); got != want {
			t.Errorf("request %d: got %q, want %q", i, got, want)
		}
	}
}

func TestACacheMustAskTheOriginAndARunByHandPassesIt(t *testing.T) {
	f, requests := watched(t, FetchOptions{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		_, _ = io.WriteString(w, table)
	})
	f.fetchAs(t, &worker.Attempt{Purpose: model.ForPlanned})
	if got := (*requests)[0].Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the whole: got %q, want no-cache", got)
	}
	for _, test := range []struct {
		purpose model.Purpose
		want    string
	}{{model.ForPlanned, "max-age=0"}, {model.ForRetry, "max-age=0"}, {model.ForChange, "max-age=0"}, {model.ForRun, "no-cache"}, {"", "max-age=0"}} {
		f.fetchAs(t, &worker.Attempt{Purpose: test.purpose})
		if got := (*requests)[len(*requests)-1].Get("Cache-Control"); got != test.want {
			t.Errorf("%s: got %q, want %q", test.purpose, got, test.want)
		}
	}
}

func TestARequestSaysWhoAsksAndWhatTheOperatorAdds(t *testing.T) {
	own := http.Header{"x-api-key": {"geheim"}}
	f, requests := watched(t, FetchOptions{UserAgent: "refreshd/v1 (+https://example.com)", Header: own}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, table)
	})
	f.expect(success, f.fetch(t.Context(), f.url))
	for name, want := range map[string]string{"User-Agent": "refreshd/v1 (+https://example.com)", "Accept": "*/*", "X-Api-Key": "geheim"} {
		if got := (*requests)[0].Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAHeaderOfTheOperatorIsNotSentOnToAnotherHost(t *testing.T) {
	var told []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("X-Api-Key"))
		_, _ = io.WriteString(w, table)
	}))
	t.Cleanup(other.Close)
	f, _ := watched(t, FetchOptions{Header: http.Header{"X-Api-Key": {"geheim"}}}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			told = append(told, r.Header.Get("X-Api-Key"))
			_, _ = io.WriteString(w, table)
		case "/near.csv":
			http.Redirect(w, r, "/same", http.StatusFound)
		default:
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
		}
	})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.expect(success, f.fetch(t.Context(), strings.Replace(f.url, "feed.csv", "near.csv", 1)))
	if len(told) != 2 || told[0] != "" || told[1] != "geheim" {
		t.Errorf("the header arrives as %q, want it at its own host only", told)
	}
}

func TestA304CarriesTheNumbersOfTheFileThatIsInForce(t *testing.T) {
	f, _ := watched(t, FetchOptions{}, unchanging)
	first, second := f.fetch(t.Context(), f.url), f.fetch(t.Context(), f.url)
	for name, want := range first.Metrics {
		if got := second.Metrics[name]; got != want || want == 0 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if second.Changed == nil || *second.Changed {
		t.Error("the 304 is told as something new")
	}
}
