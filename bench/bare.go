package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// batch is how many models a pipeline serves.
const batch = 200

// barePipelines is the floor: the same lists and sets in pipelines, one after the other, without a check, a retry or a record.
func barePipelines(ctx context.Context, s *server, n int) (result, error) {
	if err := saveBare(ctx, s, n); err != nil {
		return result{}, err
	}
	return around(ctx, n, func() error {
		return eachBatch(ctx, s.client, n, func(pipe redis.Pipeliner, i int) { cycleBare(ctx, pipe, i) })
	}, s)
}

// barePipeline is the floor of single attempts: a pipeline for each, at its time.
func barePipeline(ctx context.Context, s *server, book *ledger) (result, error) {
	if err := saveBare(ctx, s, book.n); err != nil {
		return result{}, err
	}
	return around(ctx, book.n, func() error {
		return book.ask(func(i int) error {
			book.do(uid(i))
			pipe := s.client.Pipeline()
			cycleBare(ctx, pipe, i)
			_, err := pipe.Exec(ctx)
			return err
		})
	}, s)
}

func saveBare(ctx context.Context, s *server, n int) error {
	return eachBatch(ctx, s.client, n, func(pipe redis.Pipeliner, i int) {
		pipe.HSet(ctx, "model:"+uid(i), "refresh_at", "now", "payload", payload(i, feeds))
		pipe.ZAdd(ctx, "due", redis.Z{Score: 1, Member: uid(i)})
	})
}

func cycleBare(ctx context.Context, pipe redis.Pipeliner, i int) {
	pipe.HGetAll(ctx, "model:"+uid(i))
	pipe.HSet(ctx, "model:"+uid(i), "attempt_uid", fmt.Sprint("a", i), "started_at", "now", "deadline_at", "later")
	pipe.ZRem(ctx, "due", uid(i))
	pipe.RPush(ctx, "input", payload(i, feeds))
	pipe.LPop(ctx, "input")
	pipe.RPush(ctx, "output", uid(i))
	pipe.LPop(ctx, "output")
	pipe.HSet(ctx, "model:"+uid(i), "refresh_at", "in an hour")
	pipe.HDel(ctx, "model:"+uid(i), "attempt_uid", "started_at", "deadline_at")
	pipe.ZAdd(ctx, "due", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: uid(i)})
}

func eachBatch(ctx context.Context, client *redis.Client, n int, add func(redis.Pipeliner, int)) error {
	for first := 0; first < n; first += batch {
		pipe := client.Pipeline()
		for i := first; i < min(n, first+batch); i++ {
			add(pipe, i)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
