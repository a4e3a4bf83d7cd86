package doctor

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

// traffic is a hook that all commands of a busy queue pass.
type traffic struct {
	journal string
	turns   bool // one client has the server at a time, and a pipeline has it in one go
	turn    sync.Mutex
	mu      sync.Mutex
	next    chan struct{} // guarded by mu; closed by the next transition
}

// newTraffic gives turns on miniredis only: there each command of a pipeline waits for a script of somebody else, so that a busy queue would be
// checked for minutes.
func newTraffic(server *testkit.Server, journal string) *traffic {
	return &traffic{journal: journal, turns: server.Mini != nil, next: make(chan struct{})}
}

// coming is closed by the next transition. The journal itself would be a slow signal: miniredis reads all of it again after each command.
func (t *traffic) coming() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}

// until waits until something holds, which it asks for after each transition: nothing else makes it true. Or for the end of ctx.
func (t *traffic) until(ctx context.Context, holds func() bool) {
	for coming := t.coming(); !holds(); coming = t.coming() {
		select {
		case <-ctx.Done():
			return
		case <-coming:
		}
	}
}

// another waits for one transition, or for the end of ctx.
func (t *traffic) another(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-t.coming():
	}
}

func (t *traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if strings.HasPrefix(command.Name(), "b") { // it waits itself, and others must come to their turn
			return next(ctx, command)
		}
		ctx, end := t.begin(ctx)
		defer end()
		err := next(ctx, command)
		if slices.Contains(command.Args(), any(t.journal)) {
			t.mu.Lock()
			close(t.next)
			t.next = make(chan struct{})
			t.mu.Unlock()
		}
		return err
	}
}

func (t *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		ctx, end := t.begin(ctx)
		defer end()
		return next(ctx, commands)
	}
}

// itsTurn marks what a command needs itself, such as a new connection.
type itsTurn struct{}

func (t *traffic) begin(ctx context.Context) (turn context.Context, end func()) {
	if !t.turns || ctx.Value(itsTurn{}) != nil {
		return ctx, func() {}
	}
	t.turn.Lock()
	return context.WithValue(ctx, itsTurn{}, true), t.turn.Unlock
}
