package scripts

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

var moveGates = load("move-gates.lua")

// ParkedBy reads the uids of models that wait for gates, of each the first so many, longest due first.
func (s *Store) ParkedBy(ctx context.Context, gates []model.Gate, limit int) ([][]string, error) {
	pipe := s.clients.Read.Pipeline()
	replies := sendEach(gates, func(gate model.Gate) *redis.StringSliceCmd {
		return pipe.ZRange(ctx, s.Keys.ParkedBy(string(gate)), 0, int64(limit)-1)
	})
	if err := execReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read what waits for gates: %w", err)
	}
	uids := make([][]string, len(gates))
	for i, reply := range replies {
		uids[i] = reply.Val()
	}
	return uids, nil
}

// GateLook is what a dispatcher has found out about a gate.
type GateLook struct {
	Gate model.Gate
	// Again is when it is to be looked at again.
	Again time.Time
	// Closed says that it lets nobody through. One that is open is forgotten when no model waits for it.
	Closed bool
}

// MoveGates notes when gates are to be looked at again that this dispatcher alone looked at until an instant.
func (s *Store) MoveGates(ctx context.Context, looks []GateLook, alone time.Time) error {
	if len(looks) == 0 {
		return nil
	}
	keys, args := []string{s.Keys.Gates(), s.Keys.Holds()}, []any{millis(alone)}
	for _, look := range looks {
		keys = append(keys, s.Keys.ParkedBy(string(look.Gate)))
		stays, hold := "", ""
		if look.Closed {
			stays = "stays"
		}
		if kind, name := look.Gate.Split(); kind == model.GateHold {
			hold = name
		}
		args = append(args, string(look.Gate), millis(look.Again), stays, hold)
	}
	_, err := run(ctx, s.clients.Write, moveGates, keys, args...).Int()
	return wrap(err, "note when gates are looked at again")
}
