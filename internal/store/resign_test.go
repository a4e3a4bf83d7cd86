package store

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// afterFirst is a hook that does something when the first command has been answered.
type afterFirst struct{ do func() }

func (afterFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if do := h.do; do != nil {
			h.do = nil
			do()
		}
		return err
	}
}

func (afterFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAPollerThatResignsIsMissedWhileAClaimOfItIsStillUnderWay(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.claim("p1", 10)
		b.seed(keys{"-output": list{"late"}})
		b.redis.AddHook(&afterFirst{func() { b.claim("p1", 10) }})
		must(t, b.Resign(t.Context(), "p1"))
		expired, err := b.ExpiredPollers(t.Context(), b.now, 0)
		if err != nil || len(expired) != 1 || expired[0] != "p1" {
			t.Errorf("want p1 to be found with its message, got %v, %v", expired, err)
		}
	})
}
