package worker

import "context"

// slots are what all sessions of a call of Pool.Run share: room for so many attempts, and the turn to fill it.
type slots struct {
	tokens chan struct{} // holds one for each attempt in flight
	turn   chan struct{} // holds one while a session takes: whoever waits for longest is the next
}

func newSlots(c *Config) *slots {
	return &slots{make(chan struct{}, c.Concurrency), make(chan struct{}, 1)}
}

// begin waits for the turn, and then for a free slot. It returns how many are free, which nobody else fills until end is called; 0: ctx
// has ended.
func (s *slots) begin(ctx context.Context) (free int, end func()) {
	select {
	case <-ctx.Done():
		return 0, func() {}
	case s.turn <- struct{}{}:
	}
	select {
	case <-ctx.Done():
		return 0, func() { <-s.turn }
	case s.tokens <- struct{}{}:
		<-s.tokens
	}
	return cap(s.tokens) - len(s.tokens), func() { <-s.turn }
}
