package simulation

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/refreshd/refreshd/scripts"
)

// queueName is the queue of every simulation.
const queueName = "q"

// rig is a miniredis with the clients of one program. It is used by one world after another.
type rig struct {
	mini  *miniredis.Miniredis
	read  *redis.Client // repeats a command after a lost reply, as the client of scripts.Connect for reads does
	write *redis.Client // never does
	store *scripts.Store

	sources map[string]string // script text by file name
	told    map[string]string // text or sha of a script -> text or sha of the lie that is told instead
}

// newRig starts a server in memory; the lie, if any, changes one of its scripts.
func newRig(t testing.TB, told lie) *rig {
	t.Helper()
	r := &rig{mini: miniredis.NewMiniRedis(), sources: map[string]string{}, told: map[string]string{}}
	r.read, r.write = r.client(true), r.client(false)
	t.Cleanup(func() {
		_, _ = r.read.Close(), r.write.Close()
		r.mini.Close()
	})
	store, err := scripts.New(&scripts.Clients{Read: r.read, Write: r.write, Block: r.write}, scripts.Config{Queue: queueName})
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	r.readScripts(t)
	r.tell(t, told)
	return r
}

// client connects without a network: everything happens in this process and nothing waits for a timer.
func (r *rig) client(repeats bool) *redis.Client {
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

func (r *rig) readScripts(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob("../../scripts/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the scripts: %v, %d files", err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r.sources[filepath.Base(file)] = string(text)
	}
}

// tell replaces parts of one script on the wire: the store sends the honest one, Redis runs the lie.
func (r *rig) tell(t testing.TB, told lie) {
	t.Helper()
	if told.file == "" {
		return
	}
	honest := r.sources[told.file]
	changed := honest
	for old, new := range told.replace {
		if strings.Count(changed, old) != 1 {
			t.Fatalf("%s: %q stands there %d times, want once", told.file, old, strings.Count(changed, old))
		}
		changed = strings.Replace(changed, old, new, 1)
	}
	r.told[honest], r.told[digest(honest)] = changed, digest(changed)
}

func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// honest returns the script that Redis is to run for the one that was sent.
func (r *rig) run(script string) string {
	if lie, told := r.told[script]; told {
		return lie
	}
	return script
}

// loadScripts connects and loads, which is no step of any actor.
func (r *rig) loadScripts() error {
	ctx := context.Background()
	if err := r.read.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := r.write.ScriptFlush(ctx).Err(); err != nil {
		return err
	}
	for _, source := range r.sources {
		if err := r.write.ScriptLoad(ctx, r.run(source)).Err(); err != nil {
			return err
		}
	}
	return nil
}
