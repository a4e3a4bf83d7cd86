package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var receiveCommands = Load("receive-commands.lua")

// Forwarded is a command on its way to the part of its model.
type Forwarded struct {
	UID     string
	Claimed Claimed
}

// Forward pushes commands about models of other parts to the control lists of these parts, each once and in their order: give it all that
// stand in the lane. It returns the parts that have theirs, by Keys. After an error it is repeated with all of them.
func (s *Store) Forward(ctx context.Context, commands []Forwarded) (done map[Keys]bool, err error) {
	byPart := map[*Store][]any{}
	for _, c := range commands {
		part := s.queue.Of(c.UID)
		byPart[part] = append(byPart[part], c.Claimed.number(), c.Claimed.Raw())
	}
	done = map[Keys]bool{}
	var mu sync.Mutex // guards done and failed
	var failed []error
	var sending sync.WaitGroup
	for part, numbered := range byPart {
		sending.Go(func() { // side by side, so that none waits for one that does not answer
			refused := part.receive(ctx, s.place, numbered)
			mu.Lock()
			defer mu.Unlock()
			if refused != nil {
				failed = append(failed, fmt.Errorf("forward commands to %s: %w", part.Keys.Queue(), refused))
				return
			}
			done[part.Keys] = true
		})
	}
	sending.Wait()
	return done, errors.Join(failed...)
}

// receive pushes commands to the control list, each behind its number, as another part of the queue has claimed them.
func (s *Store) receive(ctx context.Context, from int, numbered []any) error {
	keys := []string{s.Keys.Control(), s.Keys.Forwarded()}
	return Run(ctx, s.Clients.Write, receiveCommands, keys, append([]any{from}, numbered...)...).Err()
}
