package store

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
)

// Lateness keeps requests that change something, until they are delivered after their sender has given up.
type Lateness struct {
	redis    goredis.UniversalClient
	keeping  bool
	watching []string
	kept     []func(context.Context)
}

func (l *Lateness) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (l *Lateness) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, command goredis.Cmder) error {
		if name := command.Name(); name == "watch" || name == "unwatch" {
			l.watching = nil
			for _, key := range command.Args()[1:] {
				l.watching = append(l.watching, key.(string))
			}
		}
		if !l.keeping || changesNothing(command) {
			return next(ctx, command)
		}
		l.watching = nil
		return l.store(ctx, command)
	}
}

func (l *Lateness) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		if !l.keeping || !slices.ContainsFunc(commands, func(c goredis.Cmder) bool { return !changesNothing(c) }) {
			return next(ctx, commands)
		}
		return l.store(ctx, slices.DeleteFunc(slices.Clone(commands), func(c goredis.Cmder) bool { return c.Name() == "multi" || c.Name() == "exec" })...)
	}
}

// changesNothing is also said of WATCH, without which a transaction would not compare.
func changesNothing(command goredis.Cmder) bool {
	name := strings.ToUpper(command.Name())
	return readOnly.MatchString(name) || slices.Contains([]string{"WATCH", "UNWATCH", "TTL", "HELLO", "CLUSTER", "COMMAND"}, name)
}

func (l *Lateness) store(ctx context.Context, commands ...goredis.Cmder) error {
	send := func(ctx context.Context, to goredis.Cmdable) error {
		_, err := to.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
			for _, command := range commands {
				_ = pipe.Do(ctx, command.Args()...).Err()
			}
			return nil
		})
		return err // that it is refused is fine
	}
	deliver := func(ctx context.Context) { _ = send(ctx, l.redis) }
	if len(l.watching) > 0 { // another connection, which watches from now on as that of the sender does
		watches, sends, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			_ = l.redis.Watch(ctx, func(tx *goredis.Tx) error {
				close(watches)
				<-sends
				return send(ctx, tx)
			}, l.watching...)
		}()
		<-watches
		deliver = func(context.Context) { close(sends); <-gone }
	}
	l.kept = append(l.kept, deliver)
	for _, command := range commands {
		command.SetErr(os.ErrDeadlineExceeded)
	}
	return os.ErrDeadlineExceeded
}

// Keep keeps the one request by which a call would change something.
func (l *Lateness) Keep(t *testing.T, call func() error) {
	t.Helper()
	l.keeping = true
	had := len(l.kept)
	err := call()
	stopIf(t, !errors.Is(err, os.ErrDeadlineExceeded) || len(l.kept) != had+1, "want one request kept, got %v and %d", err, len(l.kept)-had)
	l.keeping = false
}

// Deliver delivers what was kept.
func (l *Lateness) Deliver(t *testing.T) {
	t.Helper()
	for _, deliver := range l.kept {
		deliver(t.Context())
	}
	l.kept = nil
}

// WithLateness lets the store send what changes something through a client of which requests can be kept.
func WithLateness(b *bench) *Lateness {
	l := &Lateness{redis: b.redis}
	write := b.server.Client(b.t)
	write.AddHook(l)
	if cluster, is := write.(*goredis.ClusterClient); is { // a transaction goes to its node
		cluster.OnNewNode(func(node *goredis.Client) { node.AddHook(l) })
	}
	b.Clients = &redis.Clients{Read: b.redis, Write: write, Block: b.redis, Clustered: b.Clients.Clustered}
	return l
}

// TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince lets a dispatcher forget a uid, and free its slot, after somebody has removed what its key
// held, saved the model and started it.
func TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:m1": "a text", ":due": scores{"m1": six}, ":limit:host=h": scores{"m1": six}})
		l := WithLateness(b)
		l.Keep(t, func() error { return b.Forget(t.Context(), "m1", "") })
		l.Keep(t, func() error { return TakeOut(t.Context(), b.Store, "m1", b.Keys.Limit("host=h")) })
		must(t, b.redis.Del(t.Context(), b.Keys.Model("m1")).Err())
		b.mustApply(b.put("m1", "{}"))
		b.unchanged(func() { l.Deliver(t) })
	})
}
