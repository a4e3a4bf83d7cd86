package simulation

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/scripts"
)

// queueName is the queue of every simulation.
const queueName = "q"

// server is a miniredis with the clients of one program. It is used by one world after another.
type server struct {
	mini  *miniredis.Miniredis
	read  *redis.Client // repeats a command after a lost reply, as the client of store.Connect for reads does
	write *redis.Client // never does
	store *store.Store

	steers bool // operators of its world steer
	few    bool // few signatures of failures are kept apart in its world

	sources map[string]string // script text by file name
	planted map[string]string // text or sha of a script -> that of the one that is run instead
	fewer   map[string]string // likewise, where few signatures are kept apart

	scripts cache
}

// newServer starts a server in memory; a planted bug, if any, changes one of its scripts.
func newServer(t testing.TB, planted bug) *server {
	t.Helper()
	r := &server{mini: miniredis.NewMiniRedis(), sources: scripts.Sources(), planted: map[string]string{}, fewer: map[string]string{}, scripts: newCache()}
	r.read, r.write = r.client(true), r.client(false)
	t.Cleanup(func() {
		_, _ = r.read.Close(), r.write.Close()
		r.mini.Close()
	})
	store, err := store.New(&store.Clients{Read: r.read, Write: r.write, Block: r.write}, store.Config{Queue: queueName, HistoryCap: historyCap})
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	r.plant(t, planted)
	return r
}

// client connects without a network: everything happens in this process and nothing waits for a timer.
func (r *server) client(repeats bool) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return r.mini.Dial() },
		PoolSize:                 1,
		PipelinePoolSize:         -1,
		MaxRetries:               -1, // the wire repeats, so that each repetition is a step
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	client.AddHook(wire{r, repeats})
	return client
}

// plant replaces one line of one script on the wire: the store sends the honest script, Redis runs the one with the bug. Where few signatures
// are kept apart, it runs another one yet.
func (r *server) plant(t testing.TB, planted bug) {
	t.Helper()
	file := ""
	if planted.mark != "" {
		file = planted.script(t, r.sources)
	}
	for name, honest := range r.sources {
		text := honest
		if name == file {
			text = replaceLine(t, text, planted.mark, planted.line)
			r.planted[honest], r.planted[digest(honest)] = text, digest(text)
		}
		if name == "commit.lua" {
			text = replaceLine(t, text, mostErrors, fmt.Sprintf("local most_errors = %d", fewErrors))
			r.fewer[honest], r.fewer[digest(honest)] = text, digest(text)
		}
	}
}

// script finds the script with the bug, whichever include its mark stands in. Where several scripts have such a mark, commit.lua is meant.
func (b bug) script(t testing.TB, sources map[string]string) string {
	t.Helper()
	if b.file != "" {
		return b.file
	}
	var found []string
	for name, text := range sources {
		if strings.Contains(text, " --@ "+b.mark+"\n") {
			found = append(found, name)
		}
	}
	if slices.Contains(found, "commit.lua") {
		return "commit.lua"
	}
	if len(found) != 1 {
		t.Fatalf("expected the mark %q in one script, found it in %d: %s", b.mark, len(found), found)
	}
	return found[0]
}

// replaceLine puts another line in the place of the one that ends with a mark.
func replaceLine(t testing.TB, text, mark, by string) string {
	t.Helper()
	var lines []string
	found := 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasSuffix(line, " --@ "+mark) {
			found++
			line = by
		}
		lines = append(lines, line)
	}
	if found != 1 {
		t.Fatalf("the mark %q stands there %d times, want once", mark, found)
	}
	return strings.Join(lines, "\n")
}

func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// run returns the script that Redis is to run for the one that was sent.
func (r *server) run(script string) string {
	if changed, found := r.fewer[script]; found && r.few {
		return changed
	}
	if changed, found := r.planted[script]; found {
		return changed
	}
	return script
}

// loadScripts connects and loads, which is no step of any actor.
func (r *server) loadScripts() error {
	ctx := context.Background()
	if err := r.read.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := r.write.ScriptFlush(ctx).Err(); err != nil {
		return err
	}
	for _, source := range r.sources {
		if err := r.write.ScriptLoad(ctx, source).Err(); err != nil {
			return err
		}
	}
	return nil
}

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
