package handlers

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

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

// until fetches until it is told as wanted: a busy machine may make any download stall.
func (f *feed) until(want model.Message) {
	f.t.Helper()
	testkit.Eventually(f.t, string(want.Type)+" "+want.ErrorType, func() bool {
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
		p.add(bytes / 2)
		p.add(bytes / 2)
		if p.tick(p.turn); p.ctx.Err() != nil {
			t.Fatalf("%d bytes in a minute: %v, want 100 a second to be enough", bytes, context.Cause(p.ctx))
		}
	}
	p.add(5999)
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
	if p.tick(waiting); p.ctx.Err() != nil {
		t.Errorf("after the response: %v", context.Cause(p.ctx))
	}
	waiting = p.turn
	_, err := body.Read(nil)
	stopIf(t, err != io.EOF, "%v", err)
	if p.tick(waiting); p.ctx.Err() != nil {
		t.Errorf("after the body: %v", context.Cause(p.ctx))
	}
}
