package handlers

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// noise is a body of many reads that no compression shortens.
func noise(seed byte) []byte {
	body := make([]byte, 1<<20+17)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(body)
	return body
}

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
			last := f.said[len(f.said)-1].Status
			failIf(t, last != "Downloaded 1.0 MiB", "the last status is %q, want all bytes counted", last)
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
			m := f.fetch(t.Context(), f.url)
			failIf(t, m.Type != model.MessageFailure || m.ErrorType != "truncated" || m.Retryable != nil, "told %+v, want a failure of type truncated", m)
			f.holdsBytes(old)
		})
	}
}

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

func (f *feed) holdsBytes(want []byte) {
	f.t.Helper()
	path := filepath.Join(f.dir, "tbl%2F1")
	got, err := os.ReadFile(path)
	failIf(f.t, err != nil || !bytes.Equal(got, want), "the file holds %d bytes, %v; want the %d that were sent", len(got), err, len(want))
	meta := readSidecar(path, f.url)
	failIf(f.t, meta.Bytes != int64(len(want)) || meta.SHA256 != digest(string(want)),
		"the sidecar says %+v; want %d bytes with the hash %s", meta, len(want), digest(string(want)))
}

// A reader that errs behind its last bytes, or that brings bytes with its end, says so in one call.
func TestWhatComesTogetherWithTheEndOfABodyCounts(t *testing.T) {
	for _, end := range []error{io.EOF, fmt.Errorf("reset")} {
		d := &download{ctx: t.Context(), attempt: example(), source: &url.URL{}, response: &http.Response{Request: &http.Request{URL: &url.URL{}}, Body: io.NopCloser(&lastWords{"abc", end})}, most: 3, path: filepath.Join(t.TempDir(), "f")}
		var file bytes.Buffer
		err := d.receive(&file)
		whole := err == nil && file.String() == "abc"
		failIf(t, whole != errors.Is(end, io.EOF), "%v: received %q, %v", end, file.String(), err)
	}
}

type lastWords struct {
	text string
	end  error
}

func (l *lastWords) Read(p []byte) (int, error) {
	n := copy(p, l.text)
	l.text = l.text[n:]
	return n, l.end
}

// A failed write is reported as an error of the file and not of the body, whether the body is read on or over.
func TestAFullDiskIsToldOfTheFile(t *testing.T) {
	for _, body := range [][]byte{[]byte(table), noise(1)} {
		response := &http.Response{Request: &http.Request{URL: &url.URL{}}, Body: io.NopCloser(bytes.NewReader(body))}
		d := &download{ctx: t.Context(), attempt: example(), source: &url.URL{}, response: response, most: 1 << 30}
		got := said(t, d.failure(d.receive(full{})))
		if got.ErrorType != "disk" || got.Reason != "the file cannot be written" {
			t.Errorf("%d bytes: told %+v, want a failure of type disk", len(body), got)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTheLargestFileMayBeAsLargeAsANumber(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, table) }, FetchOptions{MaxBytes: math.MaxInt64})
	f.expect(success, f.fetch(t.Context(), f.url))
	f.holds(table)
}

func TestADownloadThatStallsIsGivenUpAndLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]func(w http.ResponseWriter){
		"no response": func(http.ResponseWriter) {},
		"no body":     func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"half a body": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, table)
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stalls atomic.Bool
			f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
				if stalls.Load() {
					stall(w)
					<-r.Context().Done()
					return
				}
				_, _ = io.WriteString(w, table)
			}, FetchOptions{Stall: 50 * time.Millisecond, LeastRate: 1})
			f.until(success)
			stalls.Store(true)
			f.until(model.Message{Type: model.MessageFailure, Failure: policy.Failure{ErrorType: "stalled"}})
			f.holds(table)
		})
	}
}

// until fetches until the result is the wanted one: a busy machine may make any download stall.
func (f *feed) until(want model.Message) {
	f.t.Helper()
	check.Eventually(f.t, string(want.Type)+" "+want.ErrorType, func() bool {
		m := f.fetch(f.t.Context(), f.url)
		return m.Type == want.Type && m.ErrorType == want.ErrorType && m.Retryable == nil
	})
}

func TestAFeedThatNeverEndsIsGivenUpWhenItIsTooSlow(t *testing.T) {
	f := newFeed(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, table)
			_ = http.NewResponseController(w).Flush()
		}
	}, FetchOptions{Stall: 50 * time.Millisecond, LeastRate: 1 << 40, MaxBytes: 1 << 50})
	f.until(model.Message{Type: model.MessageFailure, Failure: policy.Failure{ErrorType: "too_slow"}})
}

func TestEachPeriodOfADownloadIsJudgedByItself(t *testing.T) {
	p := newWatchdog(t.Context(), time.Minute, 100)
	defer p.end()
	p.respond(http.NoBody)
	for _, bytes := range []int{6000, 9000, 6000} {
		p.came.Add(int64(bytes / 2))
		p.came.Add(int64(bytes / 2))
		p.tick(p.turn)
		stopIf(t, p.ctx.Err() != nil, "%d bytes in a minute: %v, want 100 a second to be enough", bytes, context.Cause(p.ctx))
	}
	p.came.Add(5999)
	p.tick(p.turn)
	no := model.Message{Type: model.MessageFailure, Failure: policy.Failure{
		Reason:    "expected at least 100 bytes a second within 1m, found 100.0",
		ErrorType: "too_slow", UserFriendlyReason: "The server of the feed is too slow: it sent 5.9 KiB in 1m.",
	}}
	got := said(t, context.Cause(p.ctx))
	failIf(t, got.Failure != no.Failure, "told %+v, want %+v", got, no)
}

func TestTheOwnerIsToldHowAFeedStalled(t *testing.T) {
	for want, begin := range map[string]func(*watchdog){
		"The server of the feed did not answer within 1m.": func(*watchdog) {},
		"The server of the feed sent nothing for 1m.":      func(p *watchdog) { p.respond(http.NoBody) },
	} {
		p := newWatchdog(t.Context(), time.Minute, 1)
		begin(p)
		p.tick(p.turn)
		got := said(t, context.Cause(p.ctx))
		failIf(t, got.UserFriendlyReason != want || got.ErrorType != "stalled" || got.Retryable != nil, "told %+v, want %q", got, want)
		p.end()
	}
}

type asked struct {
	http.RoundTripper
	request *http.Request
}

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	a.request = request
	return a.RoundTripper.RoundTrip(request)
}

func TestADownloadThatIsOverHoldsNeitherAContextNorATimer(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	transport := &asked{RoundTripper: ownClient(t).Transport}
	m, _ := guarded(t, address, FetchOptions{Client: &http.Client{Transport: transport}})
	failIf(t, m.ErrorType != "http_404", "told %+v", m)
	failIf(t, transport.request.Context().Err() == nil, "want the context of the download ended with it")
	p := newWatchdog(t.Context(), time.Hour, 1)
	p.end()
	failIf(t, p.timer.Stop(), "want the timer stopped with the download")
}

func TestAServerMayTakeOnePeriodToAnswerAndAnotherToBegin(t *testing.T) {
	p := newWatchdog(t.Context(), time.Hour, 1)
	defer p.end()
	p.timer.Stop()
	p.respond(http.NoBody)
	failIf(t, !p.timer.Stop(), "want a period of its own for the body")
	_, _ = p.respond(http.NoBody).Read(nil)
	failIf(t, p.timer.Stop() || p.ctx.Err() != nil, "want no period once the body is there")
}

func TestFetchRefusesAPaceThatIsNoneAndADirectoryThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := Fetch(file, FetchOptions{})
	failIf(t, err == nil, "expected an error, got nil")
	for want, options := range map[string]FetchOptions{
		"fetch: stall: expected 10ms to 1h, found 1ms":                   {Stall: time.Millisecond},
		"fetch: stall: expected 10ms to 1h, found 2h":                    {Stall: 2 * time.Hour},
		"fetch: least rate: expected at least 1 byte a second, found -1": {LeastRate: -1},
		"fetch: max bytes: expected at least 1, found -1":                {MaxBytes: -1},
	} {
		_, err := Fetch(t.TempDir(), options)
		failIf(t, err == nil || err.Error() != want, "got %v, want %s", err, want)
	}
	for _, stall := range []time.Duration{10 * time.Millisecond, time.Hour} {
		err := (FetchOptions{Stall: stall, LeastRate: 1, MaxBytes: 1}).Validate()
		failIf(t, err != nil, "the ends of the ranges: %v", err)
	}
}

// A timer may fire and then wait while the response comes, or the end of the body.
func TestAPeriodThatIsOverSaysNothing(t *testing.T) {
	p := newWatchdog(t.Context(), time.Minute, 100)
	defer p.end()
	waiting := p.turn
	body := p.respond(http.NoBody)
	p.tick(waiting)
	failIf(t, p.ctx.Err() != nil, "after the response: %v", context.Cause(p.ctx))
	waiting = p.turn
	_, err := body.Read(nil)
	stopIf(t, err != io.EOF, "%v", err)
	p.tick(waiting)
	failIf(t, p.ctx.Err() != nil, "after the body: %v", context.Cause(p.ctx))
}
