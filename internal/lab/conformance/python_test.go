package conformance_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// versions lets the worker in Python do one attempt for each error that redis-py raises, in the classes and words of its versions, when a result
// is pushed: twice, or always if the name begins with never. It prints how often the result was pushed.
const versions = `
import json, logging, sys
sys.path.insert(0, sys.argv[1])
import redis, refreshd
logging.disable(logging.CRITICAL)

def stripped(name, text, *bases):
    return type(name, bases or (redis.ResponseError,), {})(text)

errors = {
    "4 READONLY": redis.exceptions.ReadOnlyError("You can't write against a read only replica."),
    "4 LOADING": redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    "4 OOM": redis.ResponseError("OOM command not allowed when used memory > 'maxmemory'."),
    "5 OOM": stripped("OutOfMemoryError", "command not allowed when used memory > 'maxmemory'."),
    "7 MISCONF": redis.ResponseError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."),
    "7 NOREPLICAS": redis.ResponseError("NOREPLICAS Not enough good replicas to write."),
    "7 BUSY": redis.ResponseError("BUSY Redis is busy running a script."),
    "7 CLUSTERDOWN": stripped("ClusterDownError", "The cluster is down", redis.exceptions.ClusterError, redis.ResponseError),
    "7 MASTERDOWN": stripped("MasterDownError", "Link with MASTER is down"),
    "7 TRYAGAIN": stripped("TryAgainError", "Multiple keys request during rehashing of slot"),
    "7 NOAUTH": redis.AuthenticationError("Authentication required."),
    "never NOPERM": redis.exceptions.NoPermissionError("this user has no permissions to access one of the keys used as arguments"),
    "never WRONGTYPE": redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
}

class Redis:
    def __init__(self, name):
        self.name, self.pushed, self.asked = name, 0, []
        self.entries = [json.dumps({"big_table_uid": "m", "refresh_attempt_uid": "a1"}).encode()]

    def pipeline(self, transaction):
        self.asked = []
        return self

    def hget(self, key, field):
        self.asked.append(b"a1" if field == "attempt_uid" else None)

    def execute(self, raise_on_error=True):
        return self.asked

    def blpop(self, lists, timeout):
        if self.entries:
            return b"q-input", self.entries.pop()
        worker.stop()

    def rpush(self, key, message):
        if json.loads(message)["type"] == "started":
            self.asked.append(1)
            return
        self.pushed += 1
        if self.pushed <= 2 or self.name.startswith("never"):
            raise errors[self.name]

for name in errors:
    fake = Redis(name)
    worker = refreshd.Worker(lambda attempt: None, queue="q", plain=True)
    worker._redis = fake
    worker.run()
    print(name, fake.pushed)
`

func TestThePythonClientRepeatsWhateverItsLibraryCallsARefusal(t *testing.T) {
	long.Only(t)
	t.Parallel()
	program, environ := testkit.Interpreter(t, "python")
	command := exec.CommandContext(t.Context(), program, "-c", versions, fromRoot(t, "clients/python"))
	command.Env = environ
	said, err := command.CombinedOutput()
	want := `4 READONLY 3
4 LOADING 3
4 OOM 3
5 OOM 3
7 MISCONF 3
7 NOREPLICAS 3
7 BUSY 3
7 CLUSTERDOWN 3
7 MASTERDOWN 3
7 TRYAGAIN 3
7 NOAUTH 3
never NOPERM 1
never WRONGTYPE 1
`
	diff := cmp.Diff(want, string(said))
	failIf(t, diff != "" || err != nil, "%v, how often a result was pushed (-want +got):\n%s", err, diff)
}

// signalled has SIGTERM come while the main thread holds the lock of what the handler has to set, as in the middle of a wait.
const signalled = `import os, signal, refreshd
worker = refreshd.Worker(lambda attempt: None)
def wait(names):
    with worker._stop._cond:
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000)) # the handler runs
    worker._stop.wait(60)
worker._take_all = wait
worker.run()`

func TestASignalAtAnyMomentEndsAPythonWorker(t *testing.T) {
	long.Only(t)
	t.Parallel()
	worker := startHandler(t, "python", signalled, testkit.Redis(t).URL)
	defer time.AfterFunc(check.Limit, worker.Kill).Stop()
	check.Equal(t, worker.Wait(), 0)
}
