package demo

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	failIf = check.FailIf
	stopIf = check.StopIf
)

// watched plays the demo until everything was seen, and returns what it printed.
func watched(t *testing.T, config Config) string {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute) // then it says what was not seen
	defer end()
	var out check.Buffer
	config.Out, config.complete = &out, end
	err := Run(ctx, config)
	failIf(t, err != nil, "Run = %v, want no error", err)
	missing := strings.Count(out.String(), "[ ]")
	failIf(t, missing > 0 || strings.Count(out.String(), "[x]") != len(behaviours), "%d behaviours were not seen:\n%s", missing, out.String())
	return out.String()
}

func TestMain(m *testing.M) { testkit.Main(m) }

var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)

func TestDemoShowsEveryBehaviourWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	out := watched(t, Config{})
	found := control.FindString(out)
	failIf(t, found != "", "found the control character %q, want text only", found)
}

// TestDemoThatIsLeftEarlyEndsWithASummaryAndNoError leaves after the first thing that the demo prints.
func TestDemoThatIsLeftEarlyEndsWithASummaryAndNoError(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	out := &check.Buffer{Written: leave}
	err := Run(ctx, Config{Out: out})
	failIf(t, err != nil, "Run = %v, want no error", err)
	failIf(t, !strings.Contains(out.String(), "Seen: "), "output is\n%q\nwant a summary", out.String())
}

func TestDemoThatIsTooShortSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	var out check.Buffer
	err := Run(t.Context(), Config{Out: &out, For: time.Millisecond})
	failIf(t, !errors.Is(err, ErrNotSeen) || !strings.Contains(err.Error(), "0 of 14 in 1ms"), "Run = %v, want %v with 0 of 14 in 1ms", err, ErrNotSeen)
	failIf(t, strings.Count(out.String(), "[ ]") != len(behaviours), "summary is\n%s\nwant every behaviour without a mark", out.String())
}

func TestDemoRefusesWhatItCannotPlay(t *testing.T) {
	tests := map[string]Config{
		"out":  {},
		"for":  {Out: &check.Buffer{}, For: -time.Second},
		"port": {Out: &check.Buffer{}, Port: 70000},
	}
	for field, config := range tests {
		err := Run(t.Context(), config)
		failIf(t, err == nil || !strings.HasPrefix(err.Error(), field+": expected "), "Run with a bad %s = %v, want a refusal that names it", field, err)
	}
}

func TestWorkersReturnTheErrorOfTheirWork(t *testing.T) {
	broken := errors.New("broken")
	w := newWorkers(func(context.Context) error { return broken })
	err := w.run(t.Context())
	failIf(t, !errors.Is(err, broken), "run = %v, want %v", err, broken)
}
