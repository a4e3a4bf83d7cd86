package scripts

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// sendEach puts a command for each item into a pipeline, and returns the replies to come, in order.
func sendEach[C redis.Cmder](items []string, send func(item string) C) []C {
	replies := make([]C, len(items))
	for i, item := range items {
		replies[i] = send(item)
	}
	return replies
}

// execReads runs a pipeline in which a key of the wrong type, or none, harms only its own reply.
func execReads(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx) // its error is the first one only, and may be a harmless one before a lost connection
	if len(commands) == 0 {
		return err
	}
	for _, command := range commands {
		if err := command.Err(); err != nil && !missing(err) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return err
		}
	}
	return nil
}
