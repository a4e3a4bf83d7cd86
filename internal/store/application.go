package store

import "context"

// PushCommand puts a command of an application at the end of the control list. After an error nobody knows whether it stands there; pushed
// again with the command_id that it has it is carried out once.
func (s *Store) PushCommand(ctx context.Context, command string) error {
	return Wrap(s.Clients.Write.RPush(ctx, s.Keys.Control(), command).Err(), "push a command")
}

// TakeReply waits up to a second for a reply under a name, the oldest one, and takes it; empty: none came. After an error it may be lost.
func (s *Store) TakeReply(ctx context.Context, name string) (string, error) {
	reply, err := s.Clients.Block.BLPop(ctx, blockFor, s.Keys.Reply(name)).Result()
	if Missing(err) {
		return "", nil
	}
	if err != nil {
		return "", Wrap(err, "wait for a reply")
	}
	return reply[1], nil
}
