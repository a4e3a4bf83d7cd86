package backoff

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"
)

func TestARestEndsWithASignalItsTimeOrItsContext(t *testing.T) {
	const ages = time.Hour // nobody waits for it
	ended, end := context.WithCancel(t.Context())
	end()
	signal := make(chan struct{}, 1)
	Signal(signal)
	Signal(signal) // there is one already: it waits for nobody
	for name, test := range map[string]struct {
		ctx   context.Context
		pause time.Duration
		wake  <-chan struct{}
		want  bool
	}{
		"no pause":              {t.Context(), 0, signal, false},
		"less than none":        {t.Context(), -1, signal, false},
		"the time is over":      {t.Context(), 1, nil, false},
		"the context has ended": {ended, ages, nil, false},
	} {
		got := Rest(test.ctx, test.pause, test.wake)
		if got != test.want {
			t.Errorf("%s: a signal: %t", name, got)
		}
	}
	if !Rest(t.Context(), ages, signal) {
		t.Error("a signal that was given before is lost")
	}
	if len(signal) != 0 {
		t.Error("two signals wait, want one")
	}
}

func TestAnInstantIsRecentForAWhileAndNotBeforeItCame(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]bool{-1: false, 0: true, time.Minute - 1: true, time.Minute: false} {
		if got := Recent(at, at.Add(since), time.Minute); got != want {
			t.Errorf("%s after it: recent: %t", since, got)
		}
	}
}

func TestWithoutAClockEverySuccessEndsTheSampling(t *testing.T) {
	b := newBench()
	b.config.Clock = nil
	for range 3 {
		b.After(errors.New("lost"))
		b.After(nil)
	}
	const failed, again = `{"level":"error","error":"lost","failures":1,"like_this":1,"pause_ms":50,"message":"poller: round failed"}`, `{"level":"info","failures":1,"message":"poller: round works again"}`
	lines := b.lines()
	for i, line := range lines {
		if want := []string{failed, again}[i%2]; line != want {
			t.Errorf("got %s, want %s", line, want)
		}
	}
	if len(lines) != 6 {
		t.Errorf("got %d lines, want 6", len(lines))
	}
}

func TestANumberIsATimeOfThisCenturyOrAWait(t *testing.T) {
	const first, end = 978_307_200, 4_102_444_800
	for text, want := range map[string]Asked{
		"978307199":       {Wait: (first - 1) * time.Second},
		"978307200":       {Until: time.Unix(first, 0)},
		"4102444799":      {Until: time.Unix(end-1, 0)},
		"4102444800":      {Wait: end * time.Second},
		"978307200000":    {Until: time.Unix(first, 0)},
		"9223372037":      {Wait: math.MaxInt64 / time.Second * time.Second},
		"4102444799999.0": {Until: time.UnixMilli(end*1000 - 1)},
	} {
		got, found := RetryAfter(http.Header{"Retry-After": {text}})
		if !found || got.Wait != want.Wait || !got.Until.Equal(want.Until) {
			t.Errorf("%s: got %+v, %t, want %+v", text, got, found, want)
		}
	}
}
