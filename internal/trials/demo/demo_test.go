package demo

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// watched plays the demo until everything was seen, and returns what it printed.
func watched(t *testing.T, config Config) string {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute) // then it says what was not seen
	defer end()
	var out testkit.Buffer
	config.Out, config.complete = &out, end
	if err := Run(ctx, config); err != nil {
		t.Errorf("Run = %v, want no error", err)
	}
	if missing := strings.Count(out.String(), "[ ]"); missing > 0 || strings.Count(out.String(), "[x]") != len(behaviours) {
		t.Errorf("%d behaviours were not seen:\n%s", missing, out.String())
	}
	return out.String()
}

func TestMain(m *testing.M) { testkit.Main(m) }

var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)

func TestDemoShowsEveryBehaviourInAPipeWithoutControlCharacters(t *testing.T) {
	long.Only(t)
	t.Parallel()
	out := watched(t, Config{})
	if found := control.FindString(out); found != "" {
		t.Errorf("found the control character %q, want text only", found)
	}
}

// TestDemoThatIsLeftEarlyEndsWithASummaryAndNoError leaves after the first thing that the demo prints.
func TestDemoThatIsLeftEarlyEndsWithASummaryAndNoError(t *testing.T) {
	t.Parallel()
	for name, screen := range map[string]Screen{"in a pipe": nil, "on a terminal": func() (int, int) { return 100, 30 }} {
		ctx, leave := context.WithCancel(t.Context())
		out := &testkit.Buffer{Written: leave}
		if err := Run(ctx, Config{Out: out, Screen: screen}); err != nil {
			t.Errorf("%s: Run = %v, want no error", name, err)
		}
		said := out.String()
		shown, summary := strings.Index(said, cursorShow), strings.Index(said, "Seen: ")
		if summary < 0 || strings.Count(said, cursorHide) != strings.Count(said, cursorShow) || (shown < 0) != (screen == nil) || shown > summary {
			t.Errorf("%s: output is\n%q\nwant a summary, on a terminal when the cursor is back", name, said)
		}
	}
}

func TestDemoThatIsTooShortSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	var out testkit.Buffer
	err := Run(t.Context(), Config{Out: &out, For: time.Millisecond})
	if !errors.Is(err, ErrNotSeen) || !strings.Contains(err.Error(), "0 of 14 in 1ms") {
		t.Errorf("Run = %v, want %v with 0 of 14 in 1ms", err, ErrNotSeen)
	}
	if strings.Count(out.String(), "[ ]") != len(behaviours) {
		t.Errorf("summary is\n%s\nwant every behaviour without a mark", out.String())
	}
}

func TestDemoRefusesWhatItCannotPlay(t *testing.T) {
	tests := map[string]Config{
		"out":  {},
		"for":  {Out: &testkit.Buffer{}, For: -time.Second},
		"port": {Out: &testkit.Buffer{}, Port: 70000},
	}
	for field, config := range tests {
		if err := Run(t.Context(), config); err == nil || !strings.HasPrefix(err.Error(), field+": expected ") {
			t.Errorf("Run with a bad %s = %v, want a refusal that names it", field, err)
		}
	}
}

func TestWorkersReturnTheErrorOfTheirWork(t *testing.T) {
	broken := errors.New("broken")
	w := newWorkers(func(context.Context) error { return broken })
	if err := w.run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("run = %v, want %v", err, broken)
	}
}
