package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/scripts"
)

// ErrNotLoaded says that Redis does not know the scripts, and that this user may not load them.
var ErrNotLoaded = errors.New("scripts are not loaded: is a dispatcher or a poller running?")

// CheckCall checks each call of a script: its digest, its keys and how many arguments it has. Tests set it.
var CheckCall func(digest string, keys []string, args int)

// LoadScript returns the script of a file.
func LoadScript(file string) *goredis.Script { return goredis.NewScript(scripts.Source(file)) }

// RunScript runs a script by its digest. When Redis does not know it, as after a restart, it loads all scripts and tries once more. The text
// never goes with a call (EVAL): a user who may run our scripts need not be one who may run any.
func RunScript(ctx context.Context, client goredis.UniversalClient, script *goredis.Script, keys []string, args ...any) *goredis.Cmd {
	if CheckCall != nil {
		CheckCall(script.Hash(), keys, len(args))
	}
	reply := client.EvalSha(ctx, script.Hash(), keys, args...)
	if !goredis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		return reply
	}
	if err := loadAll(ctx, client, keys[0]); err != nil {
		reply.SetErr(err)
		return reply
	}
	return client.EvalSha(ctx, script.Hash(), keys, args...)
}

// WriteIf writes in one step what check has asked for, unless one of keys has changed since: then it checks again. check reads by tx alone. false:
// there was nothing to write. It takes four calls, so it is for what happens now and then.
func (c *Clients) WriteIf(ctx context.Context, check func(tx *goredis.Tx) (bool, error), write func(pipe goredis.Pipeliner), keys ...string) (written bool, err error) {
	for range MaxConflicts {
		err = c.Write.Watch(ctx, func(tx *goredis.Tx) (err error) {
			if written, err = check(tx); err != nil || !written {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
				write(pipe)
				return nil
			})
			return err
		}, keys...)
		if !errors.Is(err, goredis.TxFailedErr) {
			return written && err == nil, err
		}
	}
	return false, ErrConflicts
}

// LoadScripts makes Redis know all scripts where a key lives, also those that only others run. ErrNotLoaded: this user may not load any.
func (c *Clients) LoadScripts(ctx context.Context, key string) error {
	return loadAll(ctx, c.Write, key)
}

// loadAll loads all scripts where a key lives, also for users who may not do so themselves.
func loadAll(ctx context.Context, client goredis.UniversalClient, key string) error {
	node, err := MasterFor(ctx, client, key)
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

// Call is one call to Redis, as somebody hears of it who watches the clients.
type Call struct {
	// Script is the name of the script that was run, such as commit; empty: it was another command, or several at once.
	Script string
	Took   time.Duration
	// Err is nil when Redis has answered, also that there is none.
	Err error
}

// scriptNames are the older names of scripts, which metrics keep.
var scriptNames = map[string]string{"txn.lua": "commit"}

// Watch calls observe for every script that these clients run, and for other commands that fail. observe must be quick. Calls that wait in the
// server come without their time.
func (c *Clients) Watch(clock func() time.Time, observe func(Call)) {
	names := map[string]string{}
	for file, text := range scripts.Sources() {
		names[goredis.NewScript(text).Hash()] = cmp.Or(scriptNames[file], strings.TrimSuffix(file, ".lua"))
	}
	watched := map[goredis.UniversalClient]bool{}
	for _, client := range []goredis.UniversalClient{c.Read, c.Write, c.Block} {
		if !watched[client] {
			client.AddHook(&watch{clock: clock, observe: observe, names: names})
			watched[client] = true
		}
	}
}

// watch is a hook of go-redis.
type watch struct {
	clock   func() time.Time
	observe func(Call)
	names   map[string]string // of scripts, by their digests
}

func (w *watch) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (w *watch) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, command goredis.Cmder) error {
		script := ""
		if command.Name() == "evalsha" {
			digest, _ := command.Args()[1].(string)
			script = w.names[digest]
		}
		if script == "" { // none of ours
			err := next(ctx, command)
			w.failed(err)
			return err
		}
		began := w.clock()
		err := next(ctx, command)
		w.observe(Call{Script: script, Took: w.clock().Sub(began), Err: fault(err)})
		return err
	}
}

func (w *watch) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		err := next(ctx, commands)
		w.failed(err)
		return err
	}
}

func (w *watch) failed(err error) {
	if err := fault(err); err != nil {
		w.observe(Call{Err: err})
	}
}

// fault is an error that a monitor should know of: that there is none is an answer, and what Redis does not know yet is loaded.
func fault(err error) error {
	if Missing(err) || goredis.HasErrorPrefix(err, "NOSCRIPT") || goredis.HasErrorPrefix(err, "NOGROUP") || goredis.HasErrorPrefix(err, "no such key") {
		return nil
	}
	return err
}

// MaxConflicts bounds how often a change is decided again because somebody else was quicker.
const MaxConflicts = 100

// ErrConflicts says that a change was given up after MaxConflicts.
var ErrConflicts = errors.New("expected what is changed to stand still for a moment, found it changed again and again")
