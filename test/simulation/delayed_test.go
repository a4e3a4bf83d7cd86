package simulation

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// delayed is a request whose caller has given up.
type delayed struct {
	pipeline [][]any
	began    moment // of its caller's round
}

// delay keeps a request whose caller has given up; it is executed later.
func (w *world) delay(a *actor, c *call) {
	late := delayed{began: a.began}
	for _, command := range c.commands {
		late.pipeline = append(late.pipeline, slices.Clone(command.Args()))
	}
	w.delayed = append(w.delayed, late)
}

// deliver executes a delayed request.
func (w *world) deliver() {
	at := w.rng.IntN(len(w.delayed))
	pipeline, began := w.delayed[at].pipeline, w.delayed[at].began
	w.delayed = slices.Delete(w.delayed, at, at+1)
	ctx := context.Background()
	pipe := w.server.write.Pipeline()
	for _, args := range pipeline {
		pipe.Do(ctx, args...)
	}
	c := &call{began: began}
	c.execute = func() error { var err error; c.commands, err = pipe.Exec(ctx); return err }
	for _, args := range pipeline {
		c.commands = append(c.commands, redis.NewCmd(ctx, args...))
	}
	w.note("delivered late: %s", c)
	_ = w.execute(nil, c)
}
