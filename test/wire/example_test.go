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
	t.Parallel()
	const later = "2199-01-01T00:00:00.000Z"
	expectSaid(t, whole, "a1", later)
	expectSaid(t, whole, "a1", "")
	expectSaid(t, "started", "a2", later)
	expectSaid(t, "started", "", "")
	expectSaid(t, "started", "a1", "2020-01-01T00:00:00.000Z")
}

func TestTheExampleInPythonSaysAgainWhatRedisRefuses(t *testing.T) {
	t.Parallel()
	expectSaid(t, whole, "a1", "", "OOM command not allowed when used memory > 'maxmemory'.")
	expectSaid(t, whole, "a1", "", "BUSY Redis is busy running a script.")
	expectSaid(t, "", "a1", "", "NOPERM this user has no permissions")
}

// whole is what the example says of an attempt that it ends.
const whole = "started user_friendly_status success"

// expectSaid lets the example work under a fence and a deadline, and perhaps with what Redis refuses by.
func expectSaid(t *testing.T, want string, args ...string) {
	t.Helper()
	testkit.RequireProgram(t, "python3", "python3")
	example, err := filepath.Abs("../../examples/pythonworker")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "python3", append([]string{"-c", play, example}, args...)...).Output()
	if got := strings.TrimSpace(string(said)); err != nil || got != want {
		t.Errorf("%q: said %q, %v, want %q", args, got, err, want)
	}
}
