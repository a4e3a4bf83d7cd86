package store

import (
	"context"
	"errors"
	"time"
)

// blockFor is how long a blocking call waits in the server; go-redis cannot be interrupted meanwhile, so shutdown takes as
// long.
const blockFor = time.Second

// WaitOutput waits up to a second for a message from a worker; false: none came.
func (s *Store) WaitOutput(ctx context.Context) (bool, error) {
	return s.waitList(ctx, s.Keys.Output())
}

// WaitControl waits up to a second for a message from an application; false: none came.
func (s *Store) WaitControl(ctx context.Context) (bool, error) {
	return s.waitList(ctx, s.Keys.Control())
}

// waitList waits until the list is not empty. It moves the head to where it stands already, so that nothing can be lost
// whatever happens to the call (a pop with a client-side deadline can lose its element). Redis answers with the head, however large; the
// client Block does not receive what is larger than 64 KiB.
func (s *Store) waitList(ctx context.Context, key string) (bool, error) {
	return came(s.Clients.Block.BLMove(ctx, key, key, "LEFT", "LEFT", blockFor).Err(), "wait for messages")
}

// WaitWake waits up to a second for a call to the dispatcher and takes it; false: none came. A call that is lost with its
// taker delays nobody by more than the second after which every dispatcher looks by itself.
func (s *Store) WaitWake(ctx context.Context) (bool, error) {
	return came(s.Clients.Block.BLPop(ctx, blockFor, s.Keys.Wake()).Err(), "wait for a wake call")
}

// came tells by the end of a blocking call whether anything came, be it too large to be received.
func came(err error, doing string) (bool, error) {
	switch {
	case Missing(err):
		return false, nil
	case errors.Is(err, errLarge):
		return true, nil
	}
	return err == nil, Wrap(err, doing)
}
