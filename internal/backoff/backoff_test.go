package backoff

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit/long"
)

// bench is one Backoff with its log and its clock.
type bench struct {
	*Backoff
	log bytes.Buffer
	now time.Time
}

func newBench() *bench {
	b := &bench{now: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)}
	log := zerolog.New(&b.log)
	b.Backoff = New(Config{"poller", "round", 50 * time.Millisecond, time.Second, &log, func() time.Time { return b.now }})
	return b
}

// lines returns what was written since the last call.
func (b *bench) lines() []string {
	defer b.log.Reset()
	return strings.Split(strings.TrimSuffix(b.log.String(), "\n"), "\n")[:strings.Count(b.log.String(), "\n")]
}

func TestALongOutageIsLoggedInFewLinesAndItsEndOnceWithItsLengthAndCount(t *testing.T) {
	b := newBench()
	for range 1000 {
		b.After(errors.New("dial tcp: connection refused"))
		b.now = b.now.Add(time.Second)
	}
	if lines := b.lines(); len(lines) != 10 { // 1, 2, 4 ... 512
		t.Errorf("want 10 lines for 1000 failures, got %d", len(lines))
	}
	b.After(nil)
	b.After(nil)
	want := `{"level":"info","failures":1000,"lasted_ms":1000000,"message":"poller: round works again"}`
	if lines := b.lines(); len(lines) != 1 || lines[0] != want {
		t.Errorf("want one line %s, got %s", want, lines)
	}
}

func TestAnotherErrorInTheSameRowIsLoggedAtOnceAndAnotherPortIsNoOtherError(t *testing.T) {
	b := newBench()
	for i := range 3 {
		b.After(fmt.Errorf("read tcp 127.0.0.1:4%d1->127.0.0.1:6379: i/o timeout", i))
	}
	b.lines()
	b.After(errors.New("read tcp 127.0.0.1:977->127.0.0.1:6379: i/o timeout"))
	b.After(errors.New("LOADING Redis is loading the dataset in memory"))
	if lines := b.lines(); len(lines) != 2 || !strings.Contains(lines[0], `"like_this":4`) || !strings.Contains(lines[1], "LOADING") {
		t.Errorf("want the 4th timeout and the 1st LOADING, got %s", lines)
	}
}

func TestFailuresThatComeAndGoDoNotFloodTheLog(t *testing.T) {
	b := newBench()
	for range 1000 {
		b.After(errors.New("i/o timeout"))
		b.After(nil)
		b.now = b.now.Add(100 * time.Millisecond)
	}
	if lines := b.lines(); len(lines) != 20 {
		t.Errorf("want 10 failures and 10 ends logged of 1000, got %d lines", len(lines))
	}
	b.now = b.now.Add(forgetAfter)
	b.After(errors.New("i/o timeout"))
	if lines := b.lines(); len(lines) != 1 {
		t.Errorf("want a failure after a quiet minute logged at once, got %s", lines)
	}
}

func TestPausesDoubleUpToMaxAndStartAgainAfterASuccess(t *testing.T) {
	b := newBench()
	for _, want := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000} {
		want *= time.Millisecond
		if got := b.After(errors.New("x")); got < want/2 || got > want {
			t.Errorf("want a pause of %s to %s, got %s", want/2, want, got)
		}
	}
	if got := b.After(nil); got != 0 {
		t.Errorf("want no pause after a success, got %s", got)
	}
	if got := b.After(errors.New("x")); got > 50*time.Millisecond {
		t.Errorf("want at most 50ms, got %s", got)
	}
}

func TestAMillionKindsOfErrorsTakeFewLinesAndLittleMemory(t *testing.T) {
	var sampler Sampler
	now, logged := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), 0
	for i := range long.Or(100_000, 1_000_000) {
		name := strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))
		if _, log := sampler.Sample("model "+name, now); log {
			logged++
		}
	}
	if logged > 100 || len(sampler.kinds) > maxKinds+1 {
		t.Errorf("want at most 100 lines and %d kinds, got %d and %d", maxKinds+1, logged, len(sampler.kinds))
	}
}

func TestAKindIsLoggedAndForgottenInTimeAlsoWhenTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second, time.Minute, time.Hour} {
		var sampler Sampler
		now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
		for i := range maxKinds {
			for range 3 {
				sampler.Sample("fault "+strings.Repeat("x", i), now)
			}
		}
		now = now.Add(-back)
		if count, log := sampler.Sample("fault ", now); count != 1 || !log {
			t.Errorf("%s back: want a known kind counted from 1, got %d", back, count)
		}
		if count, log := sampler.Sample("news", now); count != 1 || !log || sampler.kinds["news"] == nil {
			t.Errorf("%s back: want room for a new kind, got number %d of %d kinds", back, count, len(sampler.kinds))
		}
	}
}

func TestALengthThatTheClockMadeNegativeIsNotTold(t *testing.T) {
	b := newBench()
	b.After(errors.New("dial tcp: connection refused"))
	b.now = b.now.Add(-time.Hour)
	b.lines()
	b.After(nil)
	if lines := b.lines(); len(lines) != 1 || !strings.Contains(lines[0], `"lasted_ms":0,`) {
		t.Errorf("want no negative length, got %s", lines)
	}
}
