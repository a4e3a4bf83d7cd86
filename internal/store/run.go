package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/scripts"
)

// ErrNotLoaded says that Redis does not know the scripts, and that this user may not load them.
var ErrNotLoaded = errors.New("scripts are not loaded: is a dispatcher or a poller running?")

// Load returns the script of a file.
func Load(file string) *redis.Script { return redis.NewScript(scripts.Source(file)) }

// Run runs a script by its digest. When Redis does not know it, as after a restart, run loads all scripts and tries once more. The text
// never goes with a call (EVAL): a user who may run our scripts need not be one who may run any.
func Run(ctx context.Context, client redis.UniversalClient, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	reply := client.EvalSha(ctx, script.Hash(), keys, args...)
	if !redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		return reply
	}
	if err := loadAll(ctx, client, keys[0]); err != nil {
		reply.SetErr(err)
		return reply
	}
	return client.EvalSha(ctx, script.Hash(), keys, args...)
}

// LoadScripts makes Redis know all scripts, also those that only others run. ErrNotLoaded: this user may not load any.
func (s *Store) LoadScripts(ctx context.Context) error {
	return loadAll(ctx, s.Clients.Write, s.Keys.Due())
}

// loadAll loads all scripts where a key lives, also for users who may not do so themselves.
func loadAll(ctx context.Context, client redis.UniversalClient, key string) error {
	node, err := masterFor(ctx, client, key)
	if err != nil {
		return fmt.Errorf("find the node of the queue: %w", err)
	}
	all := scripts.Sources()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		switch err := node.ScriptLoad(ctx, all[file]).Err(); {
		case Refused(err):
			return ErrNotLoaded
		case err != nil:
			return fmt.Errorf("load script %s: %w", file, err)
		}
	}
	return nil
}
