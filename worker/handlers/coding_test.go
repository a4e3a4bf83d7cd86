package handlers

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func deflated(text string) string {
	var packed bytes.Buffer
	zip := zlib.NewWriter(&packed)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
	return packed.String()
}

func rawDeflated(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	zip := check.Got(flate.NewWriter(&packed, -1))(t)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
	return packed.String()
}

// coded serves what it holds, whatever was asked for.
type coded struct {
	coding, kind, body string
}

func (c coded) serve(w http.ResponseWriter) {
	for _, line := range strings.Split(c.coding, "\n") {
		w.Header().Add("Content-Encoding", line)
	}
	w.Header().Set("Content-Type", c.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(c.body)))
	_, _ = io.WriteString(w, c.body)
}

func TestABodyIsUnpackedWhateverCodingItHas(t *testing.T) {
	packed := zipped(table)
	for name, answer := range map[string]coded{
		"gzip":             {"gzip", "text/csv", packed},
		"upper case":       {"GZIP", "text/csv", packed},
		"x-gzip":           {"x-gzip", "text/csv", packed},
		"x-gzip by Apache": {"x-gzip", "application/x-gzip", packed},
		"deflate":          {"deflate", "text/csv", deflated(table)},
		"deflate, raw":     {"deflate", "text/csv", rawDeflated(t, table)},
		"gzip, gzip":       {"gzip, gzip", "text/csv", zipped(packed)},
		"three times":      {"gzip, gzip, gzip", "text/csv", zipped(zipped(packed))},
		"two lines":        {"deflate\ngzip", "text/csv", zipped(deflated(table))},
		"identity":         {"identity", "text/csv", table},
		"identity, gzip":   {"identity, ,gzip", "text/csv", packed},
		"a charset":        {"UTF-8", "text/csv", table},
		"of an upload":     {"aws-chunked", "text/csv", table},
		"none":             {"", "text/csv", table},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { answer.serve(w) }, FetchOptions{})
			m := f.fetch(t.Context(), f.url)
			f.expect(success, m)
			f.holds(table)
			if m.Metrics["rows"] != 2 {
				t.Errorf("got the metrics %v, want 2 rows", m.Metrics)
			}
		})
	}
}

func TestAPackedBodyOfNothingIsAnEmptyFeed(t *testing.T) {
	for _, coding := range []string{"gzip", "x-gzip", "deflate", "gzip, gzip"} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { coded{coding, "text/csv", ""}.serve(w) }, FetchOptions{})
		f.expect(success, f.fetch(t.Context(), f.url))
		f.holds("")
	}
}

func TestACodingThatCannotBeUnpackedIsAFailureAndLeavesTheOldFile(t *testing.T) {
	packed, broken := zipped(table), []byte(zipped(table))
	broken[len(broken)-5] ^= 1 // of the checksum
	for name, c := range map[string]struct {
		coded
		want string
	}{
		"br":               {coded{"br", "text/csv", "\x0b\x09\x80"}, "coding"},
		"zstd":             {coded{"zstd", "text/csv", "\x28\xb5\x2f\xfd"}, "coding"},
		"compress":         {coded{"x-compress", "text/csv", "\x1f\x9d"}, "coding"},
		"unknown":          {coded{"gzip, lzma", "text/csv", packed}, "coding"},
		"too many":         {coded{"gzip, gzip, gzip, gzip", "text/csv", zipped(zipped(zipped(packed)))}, "coding"},
		"not packed":       {coded{"gzip", "text/csv", table}, "coding"},
		"half packed":      {coded{"gzip, gzip", "text/csv", packed}, "coding"},
		"another checksum": {coded{"x-gzip", "text/csv", string(broken)}, "coding"},
		"deflate of none":  {coded{"deflate", "text/csv", "\xff\xff\xff\xff"}, "coding"},
		"gzip, cut off":    {coded{"x-gzip", "text/csv", packed[:len(packed)-9]}, "truncated"},
		"gzip of a byte":   {coded{"x-gzip", "text/csv", packed[:1]}, "truncated"},
		"deflate, cut off": {coded{"deflate", "text/csv", deflated(table)[:9]}, "truncated"},
		"two, cut off":     {coded{"gzip, gzip", "text/csv", zipped(packed)[:30]}, "truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			var odd atomic.Bool
			f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) {
				if odd.Load() {
					c.serve(w)
				} else {
					_, _ = io.WriteString(w, table)
				}
			}, FetchOptions{})
			f.expect(success, f.fetch(t.Context(), f.url))
			odd.Store(true)
			m := f.fetch(t.Context(), f.url)
			if m.Type != model.MessageFailure || m.ErrorType != c.want || m.Retryable != nil {
				t.Errorf("told %+v, want a failure of type %s", m, c.want)
			}
			if c.want == "coding" && m.UserFriendlyReason != "The feed is packed in a way that is not understood." {
				t.Errorf("the owner is told %q", m.UserFriendlyReason)
			}
			f.holds(table)
		})
	}
}

func TestTheLargestFileIsMeasuredUnpacked(t *testing.T) {
	fits, over := noise(1)[:1<<10], strings.Repeat("x", 1<<10+1)
	for name, c := range map[string]struct {
		coded
		want string
	}{
		"packed it is larger":  {coded{"x-gzip", "", zipped(string(fits))}, ""},
		"packed it is smaller": {coded{"x-gzip", "", zipped(over)}, "too_large"},
		"deflate":              {coded{"deflate", "", deflated(over)}, "too_large"},
		"twice":                {coded{"gzip, gzip", "", zipped(zipped(over))}, "too_large"},
	} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { c.serve(w) }, FetchOptions{MaxBytes: 1 << 10})
		if m := f.fetch(t.Context(), f.url); m.ErrorType != c.want {
			t.Errorf("%s: told %+v, want the type %q", name, m, c.want)
		}
	}
}

func TestTheProgressOfAPackedBodyIsOfTheBytesThatCome(t *testing.T) {
	body := zipped(strings.Repeat("x", 100<<10))
	want := fmt.Sprintf("Downloading: %d B of %d B", len(body), len(body))
	for _, coding := range []string{"gzip", "x-gzip"} {
		f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { coded{coding, "", body}.serve(w) }, FetchOptions{})
		f.expect(success, f.fetch(t.Context(), f.url))
		if first := f.said[0]; first.Status != want || first.Progress == nil || *first.Progress != 100 {
			t.Errorf("%s: told %q with the progress %v, want %q with 100", coding, first.Status, first.Progress, want)
		}
		if last := f.said[len(f.said)-1].Status; last != "Downloaded 0 rows, 100.0 KiB" {
			t.Errorf("%s: told %q at the end, want the unpacked size", coding, last)
		}
	}
}

// A watchdog that counted unpacked bytes would take a server that sends a byte a minute for a fast one.
// TestNobodyWaitsForTheServerBehindTheEndOfAPackedBody though nothing has read up to its end: a guard may be asked for long.
func TestNobodyWaitsForTheServerBehindTheEndOfAPackedBody(t *testing.T) {
	for coding, body := range map[string]string{"deflate": deflated(table), "identity": table} {
		w := newWatchdog(t.Context(), time.Hour, 1)
		d := &download{ctx: w.ctx, attempt: example(), source: &url.URL{}, most: 100, response: &http.Response{
			Body: w.respond(io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))), Header: http.Header{"Content-Encoding": {coding}}, Request: &http.Request{URL: &url.URL{}},
		}}
		must(t, d.receive(io.Discard))
		if w.timer.Stop() {
			t.Errorf("%q: the watchdog still waits for more", coding)
		}
		w.end()
	}
}

func TestTheWatchdogCountsTheBytesThatCome(t *testing.T) {
	body := zipped(strings.Repeat("x", 100<<10))
	dog := newWatchdog(t.Context(), time.Hour, 1)
	defer dog.end()
	header := http.Header{"Content-Encoding": {"gzip"}}
	response := &http.Response{Request: &http.Request{URL: &url.URL{}}, Header: header, Body: dog.respond(io.NopCloser(strings.NewReader(body)))}
	d := &download{ctx: t.Context(), attempt: example(), source: &url.URL{}, response: response, most: 1 << 20}
	must(t, d.receive(io.Discard))
	if got, want := dog.came.Load(), int64(len(body)); got != want || d.bytes != 100<<10 {
		t.Errorf("got %d bytes that came and %d unpacked, want %d and %d", got, d.bytes, want, 100<<10)
	}
}
