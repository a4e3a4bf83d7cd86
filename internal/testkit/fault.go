package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ErrFault is the error of a call that a Fault has stopped.
var ErrFault = errors.New("the connection is gone")

// Fault is a hook of a client that stops one call, single or pipelined, before Redis sees it.
type Fault struct {
	left   atomic.Int64 // calls until then; negative: it was, or there is none
	struck atomic.Bool
	call   atomic.Value // the text of the call
}

// Arm stops the n-th call from now on, counted from 1; 0: none.
func (f *Fault) Arm(n int) {
	f.left.Store(int64(n))
	f.struck.Store(false)
}

// Call is the text of the call that was stopped.
func (f *Fault) Call() string {
	text, _ := f.call.Load().(string)
	return text
}

// Struck reports whether the call was made, and so was stopped.
func (f *Fault) Struck() bool { return f.struck.Load() }

func (f *Fault) strikes(commands ...redis.Cmder) bool {
	strikes := f.left.Add(-1) == 0
	if strikes {
		f.call.Store(fmt.Sprint(commands))
		f.struck.Store(true)
	}
	return strikes
}

// greets reports whether a command belongs to the beginning of a connection: when one begins depends on how busy the others are.
func greets(command redis.Cmder) bool { return command.Name() == "hello" || command.Name() == "client" }

// DialHook implements redis.Hook.
func (f *Fault) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

// ProcessHook implements redis.Hook.
func (f *Fault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if !greets(command) && f.strikes(command) {
			command.SetErr(ErrFault)
			return ErrFault
		}
		return next(ctx, command)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f *Fault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if !greets(commands[0]) && f.strikes(commands...) {
			for _, command := range commands {
				command.SetErr(ErrFault)
			}
			return ErrFault
		}
		return next(ctx, commands)
	}
}
