package handlers

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

const webPage = "\n<!DOCTYPE html>\n<html><body>Please sign in</body></html>\n"

func TestWhatABodyConsistsOfIsSaidByItsTypeElseByAName(t *testing.T) {
	for _, c := range []struct {
		address, kind, disposition string
		want                       *counter
	}{
		{"/x", "text/csv; charset=utf-8", "", asCSV()},
		{"/x", "Text/CSV", "", asCSV()},
		{"/x", "text/csv; header=absent", "", &counter{quotes: true}},
		{"/x", "text/csv; charset=utf-8; header", "", asCSV()}, // a parameter that is none
		{"/x", "text/csv, text/csv", "", asCSV()},
		{"/x", "application/csv", "", asCSV()},
		{"/x", "text/x-csv", "", asCSV()},
		{"/x", "text/comma-separated-values", "", asCSV()},
		{"/x", "text/tab-separated-values", "", asTSV()},
		{"/x", "application/x-ndjson", "", asLines()},
		{"/x", "application/jsonl", "", asLines()},
		{"/x.csv", "", "", asCSV()},
		{"/X.CSV", "text/plain", "", asCSV()},
		{"/x.tsv", "text/plain", "", asTSV()},
		{"/x.tab", "application/octet-stream", "", asTSV()},
		{"/x.jsonl", "text/plain", "", asLines()},
		{"/x.ndjson", "", "", asLines()},
		{"/x.csv.gz", "application/gzip", "", asCSV()},
		{"/x.csv.gz", "application/x-gzip", "", asCSV()},
		{"/x", "application/vnd.ms-excel", `attachment; filename="Ex port.csv"`, asCSV()},
		{"/x", "application/octet-stream", "attachment; filename*=UTF-8''%C3%A9t%C3%A9.csv", asCSV()},
		{"/x", "application/force-download", "attachment; filename=ex port.csv", asCSV()}, // not quoted
		{"/x.csv", "", "attachment; filename=x.tsv", asTSV()},
		{"/x", "text/html", `attachment; filename="x.csv"`, asCSV()}, // PHP without a configured type
		{"/get?file=x.csv&v=2", "text/plain", "", asCSV()},
		{"/get?file=exports%2Fx.tsv", "text/plain", "", asTSV()},
		{"/x?format=csv", "text/plain", "", asCSV()},
		{"/pub?gid=0&single=true&output=csv", "", "", asCSV()},
		{"/gviz?tqx=out:csv", "", "", asCSV()},
		{"/gviz?tqx=out%3Acsv", "", "", asCSV()},
		{"/export_csv", "", "", asCSV()},
		{"/export.php?csv", "text/html", "", asCSV()},
		{"/export/csv", "text/plain", "", asCSV()},
		{"/x.csv", "application/json", "", nil},
		{"/x.csv", "text/plainer", "", nil},
		{"/x.csv", "application/rss+xml", "", nil},
		{"/x.csv", "application/zip", "", nil},
		{"/x", "text/plain", "", nil},
		{"/x", "application/vnd.ms-excel", "", nil},
		{"/x.csv.zip", "", "", nil},
		{"/csvs?x=%zz", "", "", nil},
	} {
		source := check.Got(url.Parse("http://h" + c.address))(t)
		header := http.Header{"Content-Type": {c.kind}, "Content-Disposition": {c.disposition}}
		if got := counterOf(&http.Response{Request: &http.Request{URL: source}, Header: header}, source); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q %q: got %+v, want %+v", c.address, c.kind, c.disposition, got, c.want)
		}
	}
}

func TestANameCountsAfterARedirectionAndBefore(t *testing.T) {
	for from, to := range map[string]string{"/latest": "/2026.csv", "/latest.csv": "/objects/7", "/get": "/objects?format=csv", "/get?format=csv": "/objects/7"} {
		f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RequestURI() == from {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, table)
		}, FetchOptions{})
		if m := f.fetch(t.Context(), strings.Replace(f.url, "/feed.csv", from, 1)); m.Metrics["rows"] != 2 {
			t.Errorf("%s to %s: got the metrics %v, want 2 rows", from, to, m.Metrics)
		}
	}
}

func TestStatusAndMetricTellTheSameRowsAndNothingElseIsCalledSo(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body, want string
	}{
		"CSV":        {"text/csv", table, "Downloaded 2 rows, 20 B"},
		"TSV":        {"text/tab-separated-values", "t\n5\" disk\nx\n", "Downloaded 2 rows, 12 B"},
		"JSON lines": {"application/x-ndjson", "{}\n{}\n{}\n", "Downloaded 3 rows, 9 B"},
		"RSS":        {"application/rss+xml", "<?xml version=\"1.0\"?>\n<rss>\n</rss>\n", "Downloaded 35 B"},
		"JSON":       {"application/json", "{\n\"a\": 1\n}\n", "Downloaded 11 B"},
		"HTML":       {"text/html", webPage, "Downloaded 58 B"},
		"page.csv":   {"text/csv", webPage, "Downloaded 58 B"},
	} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.body)
		}, FetchOptions{})
		m := f.fetch(t.Context(), f.url)
		if got := f.said[len(f.said)-1].Status; got != c.want {
			t.Errorf("%s: told %q, want %q", name, got, c.want)
		}
		if _, counted := m.Metrics["rows"]; counted != strings.Contains(c.want, "row") {
			t.Errorf("%s: got the metrics %v with the status %q", name, m.Metrics, c.want)
		}
	}
}

func TestAPageIsToldByItsTypeAndItsFirstBytes(t *testing.T) {
	for _, c := range []struct {
		kind, head string
		want       bool
	}{
		{"", webPage, true},
		{"text/csv", webPage, true},
		{"text/plain", "\ufeff \r\n<HTML lang=en>", true},
		{"text/html", "<div>", true},
		{"text/html", "\n<meta charset=utf-8><title>Log in</title>", true},
		{"text/html", "<form action=/login>", true},
		{"text/html", "<center>Log in</center>", true},
		{"text/html; charset=utf-8", "<!-- a page -->", true},
		{"application/xhtml+xml", "<?xml version='1.0'?>\n<html xmlns='x'>", true},
		{"text/html", "<?xml version='1.0'?>\n<html xmlns='x'>", true},
		{"text/html", "<?xml version='1.0'?>\n<rss>", false}, // PHP without a configured type
		{"text/html", table, false},
		{"text/html", "id,text\n1,<html>\n", false}, // likewise
		{"text/html", "\ufeff<?xml version='1.0'?>\n<!-- a\npage -->\n<HTML>", true},
		{"text/html", "", false},
		{"application/xml", "<!-- a feed --><rss>", false},
		{"text/xml", "<a><b/></a>", false},
		{"", "<table>", false},
		{"text/csv", "id,html\n1,<html>\n", false},
	} {
		if got := isHTML(c.kind, []byte(c.head)); got != c.want {
			t.Errorf("%q, %q: got %t, want %t", c.kind, c.head, got, c.want)
		}
	}
}

func TestAPageInPlaceOfDataIsAFailureAndLeavesTheOldFile(t *testing.T) {
	body, kind := table, "text/csv"
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}, FetchOptions{})
	f.expect(success, f.fetch(t.Context(), f.url))
	for _, kind = range []string{"text/html; charset=utf-8", "text/csv"} {
		body = webPage
		m := f.fetch(t.Context(), f.url)
		if m.ErrorType != "html" || m.Retryable != nil || m.UserFriendlyReason != "The address gave a web page in place of the feed." {
			t.Errorf("%s: told %+v, want a failure of type html that may be retried", kind, m)
		}
		f.holds(table)
	}
	body = "id\n"
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds("id\n")
}

func TestAFeedThatIsAPageRemainsOne(t *testing.T) {
	for _, first := range []string{webPage, "<div>1</div>", ""} {
		body := first
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, body)
		}, FetchOptions{})
		f.expect(success, f.fetch(t.Context(), f.url))
		body = webPage + "2"
		f.expect(success, f.fetch(t.Context(), f.url))
		f.holds(body)
	}
}

func TestAPayloadMayExpectAPage(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, webPage) })
	for expect, want := range map[string]string{`"html"`: "", `"csv"`: "html", `7`: "html", `null`: "html"} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "m"), []byte(table), 0o600))
		handler := check.Got(Fetch(dir, FetchOptions{Client: ownClient(t)}))(t)
		payload := json.RawMessage(`{"input_url":"` + address + `","expect":` + expect + `}`)
		_, m := try(t.Context(), t, handler, &worker.Attempt{UID: "m", AttemptUID: "a1", Payload: payload})
		if m.ErrorType != want || (m.Type == model.MessageSuccess) != (want == "") {
			t.Errorf("expect %s: told %+v, want the type %q", expect, m, want)
		}
	}
}
