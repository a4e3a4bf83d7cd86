package worker

import (
	"context"
	"fmt"
	"math"

	"github.com/refreshd/refreshd/model"
)

// Try runs a handler for one attempt without a pool and without Redis, and returns what a pool would tell about it, as the poller
// reads it: the first and the last status, and how it ended. It is for tests of handlers. The error says that the poller would
// reject a message.
func Try(ctx context.Context, handler Handler, attempt *Attempt) ([]model.Message, error) {
	var told []message
	attempt.status = &status{every: math.MaxInt64, send: func(m message) { told = append(told, m) }}
	config := Config{}.WithDefaults()
	f := &flight{Attempt: attempt, ctx: ctx}
	m, wanted := f.ending(f.call(handler, &config))
	attempt.status.end(wanted)
	if wanted {
		told = append(told, m)
	}
	read := make([]model.Message, len(told))
	for i, m := range told {
		var err error
		if read[i], err = (model.Wire{}).DecodeMessage([]byte(m.encode(model.Wire{}))); err != nil {
			return read, fmt.Errorf("read what was told: %w", err)
		}
	}
	return read, nil
}
