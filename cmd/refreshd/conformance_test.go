package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/trials/conformance"
)

// hasty ends at once, with a word to the person.
var hasty = []string{"--", "sh", "-c", "echo 'no \x1b[31mredis' >&2; exit 3"}

func TestConformanceTellsWhatFailsAndLeavesNothingBehind(t *testing.T) {
	long.Only(t)
	t.Parallel()
	server := testkit.Redis(t)
	p := testkit.Refreshd(t, append([]string{"conformance", "--redis", server.URL, "--scenario", "success"}, hasty...)...)
	code, output := p.Wait(), p.Output()
	for _, want := range []string{
		"[success] no  [31mredis\n", "a result is answered as success (found: nothing within the time; the worker has ended: exit status 3)",
		"not yet a worker of refreshd",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("expected %q, found %s", want, output)
		}
	}
	if left := server.Dump(t); code != exitFailed || len(left) > 0 {
		t.Errorf("expected a failure and an empty Redis, found %d and %v", code, left)
	}
}

func TestConformanceIsToldToProgramsToo(t *testing.T) {
	t.Parallel()
	c := at(t, testkit.Miniredis(t))
	code, stdout, _ := c.run(append([]string{"conformance", "-o", "json", "--scenario", "success"}, hasty...)...)
	var report conformance.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitFailed || report.Holds || len(report.Checks) != 3 {
		t.Errorf("expected a report and a failure, found %v, %d, %s", err, code, stdout)
	}
}
