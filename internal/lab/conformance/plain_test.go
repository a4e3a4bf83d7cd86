package conformance_test

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// plain is a worker that does one attempt, as it was before clients took attempts as the pool does.
const plain = `
import sys
sys.path.insert(0, sys.argv[1])
import refreshd

def refresh(attempt):
    worker.stop()

worker = refreshd.Worker(refresh, name="w", fence_every=60, plain=True)
worker.run()
`

// saidPlainly returns the commands of a plain client to Redis.
const saidPlainly = `hget {q}:settings parts
hget {q}:settings model_name
hget {q}:settings attempt_name
hget {q}:settings payload
blpop q-input 1
rpush q-output {"type": "started", "uid": "m", "refresh_attempt_uid": "u", "worker": "w"}
hget q:model:m attempt_uid
rpush q-output {"type": "success", "uid": "m", "refresh_attempt_uid": "u"}
`

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// commandOf is a line of MONITOR without its time and its client; empty: a connection begins with it.
func commandOf(t *testing.T, line string) string {
	t.Helper()
	var words []string
	for _, word := range quoted.FindAllString(line, -1) {
		words = append(words, check.Got(strconv.Unquote(word))(t))
	}
	command := strings.ToLower(words[0])
	if slices.Contains([]string{"client", "hello", "select", "monitor"}, command) {
		return ""
	}
	return strings.Join(append([]string{command}, words[1:]...), " ") + "\n"
}

func TestAPlainWorkerSaysToRedisWhatItAlwaysSaid(t *testing.T) {
	t.Parallel()
	program, environ := testkit.Interpreter(t, "python")
	server := testkit.Redis(t)
	admin, ctx := server.Client(t), t.Context()
	must(t, admin.HSet(ctx, "q:model:m", "attempt_uid", "u").Err())
	must(t, admin.RPush(ctx, "q-input", `{"big_table_uid":"m","refresh_attempt_uid":"u"}`).Err())
	monitor := check.Got(net.Dial("tcp", server.Addr))(t)
	defer func() { _ = monitor.Close() }()
	must(t, check.Only(fmt.Fprint(monitor, "MONITOR\r\n")))
	lines := bufio.NewScanner(monitor)
	lines.Scan() // OK
	worker := exec.Command(program, "-c", plain, fromRoot(t, "clients/python"))
	worker.Env = append(environ, "REDIS_URL="+server.URL, "REFRESHD_QUEUE=q")
	output, err := worker.CombinedOutput()
	stopIf(t, err != nil, "%v: %s", err, output)
	must(t, admin.Echo(ctx, "the end").Err())
	said := ""
	for lines.Scan() && !strings.Contains(lines.Text(), "the end") {
		if command := commandOf(t, lines.Text()); !strings.Contains(said, command) || !strings.HasPrefix(command, "blpop") { // it may wait once more
			said += command
		}
	}
	failIf(t, said != saidPlainly, "said (-want +got):\n%s", cmp.Diff(saidPlainly, said))
	keys := admin.Keys(ctx, "*").Val()
	slices.Sort(keys)
	failIf(t, cmp.Diff([]string{"q-output", "q:model:m"}, keys) != "", "want no trace of a lease, found %q", keys)
}
