package testkit

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Hook is called for each call of a client, with one command or a pipeline. next sends them.
type Hook func(ctx context.Context, commands []redis.Cmder, next func() error) error

// DialHook changes nothing.
func (Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		return h(ctx, []redis.Cmder{command}, func() error { return next(ctx, command) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		return h(ctx, commands, func() error { return next(ctx, commands) })
	}
}
