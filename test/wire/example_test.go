package wire

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// play lets the example work on a feed of 2,500 rows with a Redis that only answers: it prints the types of what the worker says.
const play = `
import json, sys
sys.path.insert(0, sys.argv[1])
import worker

class Redis:
    asked = {}

    def command(self, *words):
        self.asked[words] = self.asked.get(words, 0) + 1
        if words[0] != "BLPOP" and len(sys.argv) > 4 and (self.asked[words] <= 2 or sys.argv[4].startswith("NOPERM")):
            raise RuntimeError(sys.argv[4])
        if words[0] == "BLPOP":
            url = "data:text/plain," + "row%0A" * 2500
            return [b"q-input", json.dumps({"big_table_uid": "m", "refresh_attempt_uid": "a1", "input_url": url}).encode()]
        if words[0] == "HGET":
            return {"attempt_uid": sys.argv[2], "deadline_at": sys.argv[3]}[words[2]].encode() or None
        print(json.loads(words[2])["type"], end=" ")

worker.work(Redis(), "q", worker.refresh)
`

func TestTheExampleInPythonStopsWhenItsFenceIsLostOrItsDeadlineHasPassed(t *testing.T) {
	testkit.RequireProgram(t, "python3", "python3")
	example, err := filepath.Abs("../../examples/pythonworker")
	if err != nil {
		t.Fatal(err)
	}
	const whole = "started user_friendly_status success"
	for _, test := range []struct{ fence, deadline, want string }{
		{"a1", "2199-01-01T00:00:00.000Z", whole},
		{"a1", "", whole},
		{"a2", "2199-01-01T00:00:00.000Z", "started"},
		{"", "", "started"},
		{"a1", "2020-01-01T00:00:00.000Z", "started"},
	} {
		said, err := exec.CommandContext(t.Context(), "python3", "-c", play, example, test.fence, test.deadline).CombinedOutput()
		if got := strings.TrimSpace(string(said)); err != nil || got != test.want {
			t.Errorf("%+v: said %q, %v", test, got, err)
		}
	}
}

func TestTheExampleInPythonSaysAgainWhatRedisRefuses(t *testing.T) {
	testkit.RequireProgram(t, "python3", "python3")
	example, err := filepath.Abs("../../examples/pythonworker")
	if err != nil {
		t.Fatal(err)
	}
	for refusal, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'.": "started user_friendly_status success",
		"BUSY Redis is busy running a script.":                    "started user_friendly_status success",
		"NOPERM this user has no permissions":                     "",
	} {
		said, err := exec.CommandContext(t.Context(), "python3", "-c", play, example, "a1", "", refusal).Output()
		if got := strings.TrimSpace(string(said)); err != nil || got != want {
			t.Errorf("%s: said %q, %v", refusal, got, err)
		}
	}
}
