package doctor

import (
	"context"
	"runtime"

	"github.com/redis/go-redis/v9"
)

// heapHook notes how much of the heap is in use at most, dead objects included, whenever a pipeline was run; and how much is asked of
// Redis at once at most, which is what others have to wait for.
type heapHook struct {
	pipelines int
	bytes     uint64
	widest    int // commands of a pipeline, which may be a transaction
	longest   int // elements of a reply
}

func (h *heapHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *heapHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		h.measure(command)
		return err
	}
}

// measure notes how long a reply is.
func (h *heapHook) measure(command redis.Cmder) {
	elements := 0
	switch c := command.(type) {
	case *redis.ScanCmd:
		page, _ := c.Val()
		elements = len(page)
	case *redis.StringSliceCmd:
		elements = len(c.Val())
	case *redis.ZSliceCmd:
		elements = len(c.Val())
	case *redis.MapStringStringCmd:
		elements = 2 * len(c.Val())
	case *redis.Cmd:
		whole, _ := c.Val().([]any)
		elements = len(whole)
	}
	h.longest = max(h.longest, elements)
}

func (h *heapHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		h.pipelines++
		h.widest = max(h.widest, len(commands))
		for _, command := range commands {
			h.measure(command)
		}
		h.bytes = max(h.bytes, stats.HeapAlloc)
		return err
	}
}
