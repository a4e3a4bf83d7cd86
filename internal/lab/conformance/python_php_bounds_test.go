package conformance_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// inBoth runs a test for the clients in Python and in PHP, with a program for each.
func inBoth(t *testing.T, programs map[string]string, test func(t *testing.T, language, program string)) {
	t.Helper()
	long.Only(t)
	t.Parallel()
	for language, program := range programs {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			test(t, language, program)
		})
	}
}

func TestAfterAClientHasRunTheHandlersOfSignalsAreAsBefore(t *testing.T) {
	inBoth(t, map[string]string{
		"python": `import refreshd, signal
def mine(*_): pass
signal.signal(signal.SIGTERM, mine)
worker = refreshd.Worker(lambda a: worker.stop())
worker.run()
print("as before", signal.getsignal(signal.SIGTERM) is mine, signal.getsignal(signal.SIGINT) is signal.default_int_handler)`,
		"php": `require getenv("FILE");
$mine = fn () => null;
pcntl_signal(SIGTERM, $mine);
$worker = new Refreshd\Worker(function ($a) use (&$worker) { $worker->stop(); }, logger: false);
$worker->run();
$as = fn (bool $is) => $is ? "True" : "False";
echo "as before ", $as(pcntl_signal_get_handler(SIGTERM) === $mine), " ", $as(pcntl_signal_get_handler(SIGINT) === SIG_DFL);`,
	}, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		push(t, s.Client(t), "m", "")
		worker := startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q")
		check.Equal(t, strings.TrimSpace(worker.Output()), "as before True True")
	})
}

// sleepers are workers that compare what they have in hand ten times a second.
var sleepers = map[string]string{
	"python": `import refreshd
def refresh(a):
    print("begun", a.uid, flush=True)
    try:
        a.sleep(a.payload.get("seconds", 1))
    except refreshd.Stopped as stopped:
        print("stopped", a.uid, stopped, flush=True)
        raise
refreshd.Worker(refresh, fence_every=0.1).run()`,
	"php": `require getenv("FILE"); (new Refreshd\Worker(function ($a) { echo "begun $a->uid\n"; $a->sleep(1); }, fenceEvery: 0.1))->run();`,
}

func TestAnAttemptOfADamagedModelIsWorkedOn(t *testing.T) {
	inBoth(t, sleepers, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client := s.Client(t)
		worker := startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q")
		push(t, client, "time", "")
		check.Equal(t, heard(t, client), "started time")
		worker.AwaitOutput(t, "begun time")
		must(t, client.HSet(t.Context(), "q:model:time", "deadline_at", "no time", "processing_at", "\xff").Err())
		check.Equal(t, heard(t, client), "success time")
		push(t, client, "type", "")
		check.Equal(t, heard(t, client), "started type")
		worker.AwaitOutput(t, "begun type")
		must(t, client.Set(t.Context(), "q:model:type", "x", 0).Err())
		check.Equal(t, heard(t, client), "success type")
	})
}

func TestADamagedModelDoesNotBlindAPythonWorkerForTheOthers(t *testing.T) {
	long.Only(t)
	t.Parallel()
	s := testkit.Redis(t)
	client := s.Client(t)
	worker := startHandler(t, "python", sleepers["python"], s.URL, "REFRESHD_QUEUE=q")
	for _, uid := range []string{"type", "time", "good"} {
		push(t, client, uid, `,"seconds":600`)
		check.Equal(t, heard(t, client), "started "+uid)
		worker.AwaitOutput(t, "begun "+uid)
	}
	must(t, client.Set(t.Context(), "q:model:type", "x", 0).Err())
	must(t, client.HSet(t.Context(), "q:model:time", "deadline_at", "no time").Err())
	worker.AwaitOutput(t, "no tim") // it has met both
	for _, uid := range []string{"good", "time"} {
		must(t, client.HSet(t.Context(), "q:model:"+uid, "attempt_uid", "next").Err())
		worker.AwaitOutput(t, "stopped "+uid+" fence_lost")
	}
}

// gated are plain workers whose handler waits until a file is there. What is called old was taken a minute ago.
var gated = map[string]string{
	"python": `import os, refreshd, time
def refresh(a):
    if a.uid == "old": a._taken_at -= 60
    os.write(1, b"begun")
    while not os.path.exists(os.environ["GO"]): time.sleep(.05)
refreshd.Worker(refresh, plain=True, concurrency=1, fence_every=600).run()`,
	"php": `require getenv("FILE");
(new Refreshd\Worker(function ($a) {
	$a->uid === "old" && (fn () => $this->takenAt -= 60)->call($a);
	for (print("begun"); !file_exists(getenv("GO")); clearstatcache()) { usleep(50000); }
}, plain: true, fenceEvery: 600.0))->run();`,
}

// TestAClientPushesAtOnceWhenAKilledRedisIsBack counts how long it rests between two tries: a server that answers nothing replaces Redis.
func TestAClientPushesAtOnceWhenAKilledRedisIsBack(t *testing.T) {
	inBoth(t, gated, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client, gate := s.Client(t), t.TempDir()+"/go"
		worker := startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q", "GO="+gate)
		push(t, client, "m", "")
		check.Equal(t, heard(t, client), "started m")
		worker.AwaitOutput(t, "begun")
		s.Kill(t)
		open(t, gate)
		var listener net.Listener
		check.Eventually(t, "the port is free", func() (free bool) {
			var err error
			listener, err = net.Listen("tcp", s.Addr)
			return err == nil
		})
		for try := range 12 {
			must(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(3*time.Second)))
			conn, err := listener.Accept()
			stopIf(t, err != nil, "expected another try within 3 s after %d tries, found none", try)
			must(t, conn.Close())
		}
		must(t, listener.Close())
		s.Restart(t)
		check.Equal(t, heardWithin(t, client, 3*time.Second), "success m")
	})
}

// TestATextIsCutAt2000Characters has each text that a handler says, but the log.
func TestATextIsCutAt2000Characters(t *testing.T) {
	inBoth(t, map[string]string{
		"python": `import refreshd
def refresh(a):
    a.log("é" * 3000)
    a.status("é" * 3000)
    raise refreshd.Failure("é" * 3000, error_type="é" * 3000, user_friendly_reason="é" * 1999 + "ü")
refreshd.Worker(refresh).run()`,
		"php": `require getenv("FILE");
(new Refreshd\Worker(function ($a) {
	$a->log(str_repeat("é", 3000));
	$a->status(str_repeat("é", 3000));
	throw new Refreshd\Failure(str_repeat("é", 3000), errorType: str_repeat("é", 3000), userFriendlyReason: str_repeat("é", 1999) . "ü");
}))->run();`,
	}, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client := s.Client(t)
		startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q")
		push(t, client, "m", "")
		cut := strings.Repeat("é", 2000)
		check.Equal(t, await(t, client, "user_friendly_status", "m").Status, cut)
		failure := await(t, client, "failure", "m")
		failIf(t, failure.Reason != cut || failure.ErrorType != cut, "expected 2000 characters, found %d and %d",
			utf8.RuneCountInString(failure.Reason), utf8.RuneCountInString(failure.ErrorType))
		failIf(t, failure.Log != strings.Repeat("é", 3000), "expected the whole log, found %d characters", utf8.RuneCountInString(failure.Log))
	})
}

func TestAClientRestsWhileAnOperatorAsksItToBeQuiet(t *testing.T) {
	inBoth(t, map[string]string{"python": handlers["python"], "php": handlers["php"]}, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client := s.Client(t)
		startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q")
		push(t, client, "m", "")
		check.Equal(t, heard(t, client), "started m")
		check.Equal(t, heard(t, client), "success m")
		name := owner(t, client)
		must(t, client.HSet(t.Context(), "q:orders", name, "quiet ann").Err())
		beat := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
		passed := func(ms float64) {
			since := beat()
			check.Eventually(t, "heartbeats", func() bool { return beat() > since+ms })
		}
		passed(1500) // the wait for an entry that was under way is over
		push(t, client, "n", "")
		must(t, client.ConfigResetStat(t.Context()).Err())
		passed(4000)
		calls := client.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]
		n := 0
		_, _ = fmt.Sscanf(calls["cmdstat_evalsha"], "calls=%d", &n)
		failIf(t, n > 20 || n < 3, "expected some takes in four seconds, found %d", n)
		check.Equal(t, client.LLen(t.Context(), "q-input").Val(), int64(1))
		must(t, client.Del(t.Context(), "q:orders").Err())
		check.Equal(t, heard(t, client), "started n")
	})
}

// TestAResultIsPushedUntilTheLastResort has the deadlines of two attempts pass, which nobody has said to have begun. One was taken a minute ago.
func TestAResultIsPushedUntilTheLastResort(t *testing.T) {
	inBoth(t, gated, func(t *testing.T, language, program string) {
		for uid, gives := range map[string]bool{"old": true, "young": false} {
			t.Run(uid, func(t *testing.T) {
				t.Parallel()
				s := testkit.Redis(t)
				client, gate := s.Client(t), t.TempDir()+"/go"
				worker := startHandler(t, language, program, s.URL, "REFRESHD_QUEUE=q", "GO="+gate)
				push(t, client, uid, `,"deadline_at":"2026-01-01T00:00:00.000Z"`)
				check.Equal(t, heard(t, client), "started "+uid)
				worker.AwaitOutput(t, "begun")
				s.Kill(t)
				open(t, gate)
				worker.AwaitOutput(t, s.Addr) // it has tried
				s.Restart(t)
				if gives {
					worker.AwaitOutput(t, "attempt of-old of old: success may not have reached redis")
					push(t, client, "next", "")
					check.Equal(t, heard(t, client), "started next")
				} else {
					check.Equal(t, heard(t, client), "success young")
				}
			})
		}
	})
}

// TestTheHeartbeatsGoOnWhileTheReplyOfATakeIsLost loses the reply of each take, and no heartbeat.
func TestTheHeartbeatsGoOnWhileTheReplyOfATakeIsLost(t *testing.T) {
	inBoth(t, map[string]string{"python": handlers["python"], "php": handlers["php"]}, func(t *testing.T, language, program string) {
		s := testkit.Redis(t)
		client, link := s.Client(t), newLink(t, s)
		startHandler(t, language, program, link.address, "REFRESHD_QUEUE=q")
		push(t, client, "m", "")
		check.Equal(t, heard(t, client), "started m")
		check.Equal(t, heard(t, client), "success m")
		name := owner(t, client)
		const most = 10 // of the words of a take: the command, its script, 4 keys and their number, time, owner, whether that is new
		link.dropping(func(words []string) bool {
			return len(words) == most+3 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") && words[most] != "0"
		})
		beat := func() float64 { return client.ZScore(t.Context(), "q:workers", name).Val() }
		begun, last := beat(), beat()
		for last < begun+10_000 {
			check.Eventually(t, "another heartbeat", func() bool { return beat() != last })
			gap := beat() - last
			failIf(t, gap > 5000, "expected a heartbeat within the lease of 5 s, found a gap of %g ms", gap)
			last += gap
		}
		check.Equal(t, owner(t, client), name)
		link.dropping(nil)
		push(t, client, "n", "")
		check.Equal(t, heard(t, client), "started n")
	})
}
