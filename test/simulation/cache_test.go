package simulation

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// cache is what Redis knows of scripts. Miniredis keeps what it has once read: to read all scripts anew in each world, and after each mishap that
// empties the cache, was a quarter of what a world costs.
type cache struct {
	read  map[string]bool // digests of those that miniredis keeps
	known map[string]bool // of those that Redis knows
}

func newCache() cache { return cache{map[string]bool{}, map[string]bool{}} }

// execute answers for the cache, and passes all else on.
func (c cache) execute(ctx context.Context, command redis.Cmder, next redis.ProcessHook) error {
	args := command.Args()
	switch about := fmt.Sprint(args[min(1, len(args)-1)]); {
	case command.Name() == "script" && about == "flush":
		clear(c.known)
		return nil
	case command.Name() == "script" && about == "load":
		sum := digest(fmt.Sprint(args[2]))
		if c.known[sum] = true; c.read[sum] {
			return nil
		}
		c.read[sum] = true
	case command.Name() == "evalsha" && !c.known[about]:
		command.SetErr(refusal("NOSCRIPT No matching script. Please use EVAL."))
		return command.Err()
	}
	return next(ctx, command)
}
