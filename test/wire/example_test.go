package wire

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	failIf = check.FailIf
	stopIf = check.StopIf
)

// play lets the example work on a feed of 2,500 rows with a Redis that only answers, once for each case: a fence, a deadline, and what Redis
// refuses by. It prints the types of what the worker says, a line for each case.
const play = `
import json, sys
sys.path.insert(0, sys.argv[1])
import worker

class Redis:
    def __init__(self, fence, deadline, refusal):
        self.hash, self.refusal = {"attempt_uid": fence, "deadline_at": deadline}, refusal
        self.asked, self.said = {}, []

    def command(self, *words):
        self.asked[words] = self.asked.get(words, 0) + 1
        if words[0] != "BLPOP" and self.refusal and (self.asked[words] <= 2 or self.refusal.startswith("NOPERM")):
            raise RuntimeError(self.refusal)
        if words[0] == "BLPOP":
            url = "data:text/plain," + "row%0A" * 2500
            return [b"q-input", json.dumps({"big_table_uid": "m", "refresh_attempt_uid": "a1", "input_url": url}).encode()]
        if words[0] == "HGET":
            return self.hash[words[2]].encode() or None
        self.said.append(json.loads(words[2])["type"])

for case in json.loads(sys.argv[2]):
    redis = Redis(*case)
    worker.work(redis, "q", worker.refresh)
    print(*redis.said)
`

// whole is how the example treats an attempt that it ends.
const whole = "started user_friendly_status success"

func TestTheExampleInPythonStopsWhenItsFenceIsLostOrItsDeadlineHasPassed(t *testing.T) {
	t.Parallel()
	const later = "2199-01-01T00:00:00.000Z"
	expectSaid(t, [][]string{
		{whole, "a1", later, ""},
		{whole, "a1", "", ""},
		{"started", "a2", later, ""},
		{"started", "", "", ""},
		{"started", "a1", "2020-01-01T00:00:00.000Z", ""},
	})
}

func TestTheExampleInPythonSaysAgainWhatRedisRefuses(t *testing.T) {
	t.Parallel()
	expectSaid(t, [][]string{
		{whole, "a1", "", "OOM command not allowed when used memory > 'maxmemory'."},
		{whole, "a1", "", "BUSY Redis is busy running a script."},
		{"", "a1", "", "NOPERM this user has no permissions"},
	})
}

// expectSaid lets the example work on cases, each behind what it is to say.
func expectSaid(t *testing.T, cases [][]string) {
	t.Helper()
	testkit.RequireProgram(t, "python3", "python3")
	example := check.Got(filepath.Abs("../../examples/pythonworker"))(t)
	given := make([][]string, len(cases))
	for i := range cases {
		given[i] = cases[i][1:]
	}
	text, _ := json.Marshal(given)
	said, err := exec.CommandContext(t.Context(), "python3", "-c", play, example, string(text)).Output()
	lines := strings.Split(string(said), "\n")
	stopIf(t, err != nil || len(lines) != len(cases)+1, "the example ended with %v, and said %q", err, said)
	for i, c := range cases {
		failIf(t, lines[i] != c[0], "%q: said %q, want %q", given[i], lines[i], c[0])
	}
}
