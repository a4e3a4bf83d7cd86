package conformance_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

// workers are those that this program is if the environment says so, instead of the tests.
var workers = map[string]func(context.Context) error{"pool": workWithPool, "heedless": workHeedlessly, "naive": workNaively}

const workerVariable = "CONFORMANCE_TEST_WORKER"

// room is how much longer than promised a busy machine may take. Without the promise it would be minutes.
const room = 10 * time.Second

func TestMain(m *testing.M) {
	if work, is := workers[os.Getenv(workerVariable)]; is {
		ctx := context.Background()
		if err := work(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.Main(m)
}

type todo struct {
	Do                 string `json:"do"`
	AfterMS            int    `json:"after_ms"`
	Status             string `json:"status"`
	Progress           int    `json:"progress"`
	Text               string `json:"text"`
	Reason             string `json:"reason"`
	ErrorType          string `json:"error_type"`
	Retryable          *bool  `json:"retryable"`
	UserFriendlyReason string `json:"user_friendly_reason"`
	Seconds            int    `json:"seconds"`
}

// workWithPool is the worker of clients/README.md, with the pool of package worker.
func workWithPool(ctx context.Context) error {
	return workOn(ctx, func(p store.Pool) worker.Queue { return p })
}

// workHeedlessly does not see over which attempts workers have died.
func workHeedlessly(ctx context.Context) error {
	return workOn(ctx, func(p store.Pool) worker.Queue { return heedless{p} })
}

type heedless struct{ store.Pool }

func (h heedless) Take(ctx context.Context, taking store.TakeRequest) (store.Taken, error) {
	taken, err := h.Pool.Take(ctx, taking)
	for i, entry := range taken.Entries {
		taken.Entries[i] = strings.Replace(entry, `"deaths":`, `"unseen":`, 1)
	}
	return taken, err
}

func (h heedless) Answer(ctx context.Context, owner string, answers []store.Answer) ([]bool, error) {
	for i, answer := range answers {
		answers[i].Entry = strings.Replace(answer.Entry, `"unseen":`, `"deaths":`, 1)
	}
	return h.Pool.Answer(ctx, owner, answers)
}

func workOn(ctx context.Context, part func(store.Pool) worker.Queue) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	clients, err := redis.Connect(os.Getenv("REDIS_URL"), redis.ConnectOptions{})
	if err != nil {
		return err
	}
	queue, err := store.Open(ctx, clients, store.Config{Queue: os.Getenv("REFRESHD_QUEUE")})
	if err != nil {
		return err
	}
	concurrency, _ := strconv.Atoi(os.Getenv("REFRESHD_CONCURRENCY"))
	pool, err := worker.NewForParts(redis.Map(queue.Pools(), part), refresh, worker.Config{
		Concurrency: concurrency, FenceEvery: 100 * time.Millisecond, Grace: 300 * time.Millisecond, SignsEvery: time.Second,
	})
	if err != nil {
		return err
	}
	return pool.Run(ctx)
}

func refresh(ctx context.Context, attempt *worker.Attempt) error {
	var wanted todo
	if err := json.Unmarshal(attempt.Payload, &wanted); err != nil {
		return err
	}
	if wanted.Status != "" {
		attempt.Status(wanted.Status, wanted.Progress)
	}
	done, working := time.After(time.Duration(wanted.AfterMS)*time.Millisecond), time.NewTicker(time.Second/10)
	defer working.Stop()
	for done != nil {
		select {
		case <-done:
			done = nil
		case <-working.C:
			attempt.Alive()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch wanted.Do {
	case "fail":
		err := worker.UserFriendly(worker.ErrorType(errors.New(wanted.Reason), wanted.ErrorType), wanted.UserFriendlyReason)
		if wanted.Retryable != nil && !*wanted.Retryable {
			err = worker.NotRetryable(err)
		}
		return err
	case "postpone":
		return worker.Postpone(time.Duration(wanted.Seconds) * time.Second)
	case "hang":
		time.Sleep(time.Hour)
	case "digest":
		sum := sha256.Sum256([]byte(wanted.Text))
		attempt.Status(hex.EncodeToString(sum[:]), -1)
	}
	return nil
}

// workNaively is how a first worker looks: it takes as many attempts as it gets, does one after the other, listens to nobody, and tries nothing again.
func workNaively(ctx context.Context) error {
	options, err := goredis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.MaxRetries = -1
	client, queue := goredis.NewClient(options), os.Getenv("REFRESHD_QUEUE")
	for {
		_, taken, err := client.BLMPop(ctx, time.Second, "left", 10, queue+"-input").Result()
		if err != nil { // nothing came, or there is no Redis
			backoff.Rest(ctx, 10*time.Millisecond, nil)
			continue
		}
		for _, raw := range taken {
			var attempt struct {
				todo
				UID   string `json:"big_table_uid"`
				Fence string `json:"refresh_attempt_uid"`
			}
			if err := json.Unmarshal([]byte(raw), &attempt); err != nil {
				return err
			}
			time.Sleep(time.Duration(attempt.AfterMS) * time.Millisecond)
			client.RPush(ctx, queue+"-output", fmt.Sprintf(`{"type":"success","uid":%q,"refresh_attempt_uid":%q}`, attempt.UID, attempt.Fence))
		}
	}
}
