package conformance_test

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

func init() { workers["default"] = workWithDefaults }

// workWithDefaults is a pool as most programs start it.
func workWithDefaults(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	pool, err := worker.Open(ctx, os.Getenv("REDIS_URL"), os.Getenv("REFRESHD_QUEUE"), refresh, worker.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	_ = pool.Run(ctx) // it reports what it could not push
	return nil
}

// startWorker starts a client, or the pool, which go is.
func startWorker(t *testing.T, language, address string) *testkit.Process {
	t.Helper()
	if language != "go" {
		return startClient(t, language, address)
	}
	config := self(t, "default")
	command := exec.Command(config.Command[0])
	command.Env = append(append(os.Environ(), config.Environ...), "REDIS_URL="+address, "REFRESHD_QUEUE=q")
	return testkit.StartCommand(t, command)
}

// expectHeard looks at the type alone: the pool calls the model by the name of its queue.
func expectHeard(t *testing.T, client redis.UniversalClient, kind string) {
	t.Helper()
	said, _, _ := strings.Cut(heard(t, client), " ")
	check.Equal(t, said, kind)
}

// working is the payload of an attempt that ends on a request.
const working = `,"wait":1,"after_ms":600000,"do":"succeed"`

// bound is from docs/worker.md: 10 s for the work in hand, and 5 s to hand it back.
const bound = 15*time.Second + room

func TestAWorkerEndsWithin15SecondsOfASignalWhateverRedisDoes(t *testing.T) {
	for _, language := range []string{"go", "bash"} {
		for state, payload := range map[string]string{"idle": "", "working": working} {
			for fault, strike := range map[string]func(*testing.T, *testkit.Server){
				"frozen": func(t *testing.T, s *testkit.Server) {
					s.Signal(t, syscall.SIGSTOP)
					t.Cleanup(func() { s.Signal(t, syscall.SIGCONT) })
				},
				"killed": func(t *testing.T, s *testkit.Server) { s.Kill(t) },
			} {
				t.Run(language+" "+state+" "+fault, func(t *testing.T) {
					long.Only(t)
					t.Parallel()
					s := testkit.Redis(t, "--appendonly", "no")
					client, worker := s.Client(t), startWorker(t, language, s.URL)
					push(t, client, "m", payload)
					expectHeard(t, client, "started")
					if state == "idle" {
						expectHeard(t, client, "success")
					}
					strike(t, s)
					defer time.AfterFunc(check.Limit, worker.Kill).Stop()
					begun := time.Now()
					worker.Stop()
					took := time.Since(begun)
					failIf(t, took > bound, "want its end within %s, took %s", bound, took)
				})
			}
		}
	}
}

func TestAWorkerGoesOnWhenAFrozenRedisThaws(t *testing.T) {
	for _, language := range []string{"go", "bash"} {
		t.Run(language, func(t *testing.T) {
			long.Only(t)
			t.Parallel()
			s := testkit.Redis(t)
			client, worker := s.Client(t), startWorker(t, language, s.URL)
			push(t, client, "m", "")
			expectHeard(t, client, "started")
			expectHeard(t, client, "success")
			s.Signal(t, syscall.SIGSTOP)
			time.Sleep(6 * time.Second) // longer than each of its time limits
			s.Signal(t, syscall.SIGCONT)
			begun := time.Now()
			push(t, client, "n", "")
			expectHeard(t, client, "started")
			failIf(t, time.Since(begun) > bound, "want the next attempt within %s, took %s", bound, time.Since(begun))
			expectHeard(t, client, "success")
			check.Equal(t, worker.Stop(), 0)
		})
	}
}

// TestADamagedModelDoesNotKeepABashWorkerFromTheDeadline damages the model of the attempt in hand.
func TestADamagedModelDoesNotKeepABashWorkerFromTheDeadline(t *testing.T) {
	for name, damage := range map[string][][]any{
		"no time":         {{"HSET", "q:model:m", "deadline_at", "soon", "processing_at", "2020-01-01T00:00:00.000Z"}},
		"of another type": {{"DEL", "q:model:m"}, {"SET", "q:model:m", "text"}},
	} {
		t.Run(name, func(t *testing.T) {
			long.Only(t)
			t.Parallel()
			s := testkit.Redis(t)
			b := startBash(t, s.Client(t), s.URL, `case $(cat) in *'"m"'*) sleep 600 ;; esac`)
			deadline := model.FormatTime(time.Now().Add(4 * time.Second))
			must(t, b.client.HSet(t.Context(), "q:model:m", "attempt_uid", "of-m", "deadline_at", deadline).Err())
			must(t, b.client.RPush(t.Context(), "q-input", `{"big_table_uid":"m","refresh_attempt_uid":"of-m","deadline_at":"`+deadline+`"}`).Err())
			check.Equal(t, b.next().Type, "started")
			for _, command := range damage {
				must(t, b.client.Do(t.Context(), command...).Err())
			}
			b.hand("n")
			for _, w := range b.end() {
				failIf(t, w.UID != "n" && !strings.HasPrefix(w.Type, "user_"), "expected nothing more about the damaged one, found %+v", w)
			}
		})
	}
}

// TestAClientGivesUpAMinuteAfterItTookAnAttemptThatNobodyLetsItBegin refuses its `started`, and no daemon ends the attempt. Before that minute a poller
// may move the deadline.
func TestAClientGivesUpAMinuteAfterItTookAnAttemptThatNobodyLetsItBegin(t *testing.T) {
	t.Parallel() // it waits
	for _, language := range append(asking, "bash") {
		t.Run(language, func(t *testing.T) {
			long.Only(t)
			t.Parallel()
			s := testkit.Miniredis(t)
			client := redis.NewClient(&redis.Options{Addr: s.Addr})
			t.Cleanup(func() { _ = client.Close() })
			s.Mini.Server().SetPreHook(func(peer *server.Peer, command string, words ...string) bool {
				if command != "RPUSH" || !strings.Contains(strings.Join(words, " "), `of-m"`) || words[0] != "q-output" {
					return false
				}
				peer.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
				return true
			})
			worker := startHandler(t, language, handlers[language], s.URL, "REFRESHD_QUEUE=q")
			deadline := model.FormatTime(time.Now().Add(2 * time.Second))
			begun := time.Now()
			push(t, client, "m", `,"deadline_at":"`+deadline+`"`)
			must(t, client.HSet(t.Context(), "q:model:m", "deadline_at", deadline).Err())
			push(t, client, "n", "")
			check.Equal(t, heard(t, client), "started n")
			took := time.Since(begun)
			failIf(t, took < 50*time.Second || took > 90*time.Second, "want it to give up after a minute, took %s", took)
			check.Equal(t, heard(t, client), "success n")
			check.Equal(t, worker.Stop(), 0)
		})
	}
}
