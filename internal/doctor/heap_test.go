package doctor

import (
	"context"
	"runtime"

	"github.com/redis/go-redis/v9"
)

// heapHook notes how much of the heap is in use at most, dead objects included, whenever a pipeline was run.
type heapHook struct {
	pipelines int
	bytes     uint64
}

func (h *heapHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *heapHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *heapHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		h.pipelines++
		h.bytes = max(h.bytes, stats.HeapAlloc)
		return err
	}
}
