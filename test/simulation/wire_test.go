package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// fate is the fate of one call to Redis.
type fate int

const (
	answered fate = iota // executed, and the reply arrives
	lost                 // the request is lost: not executed
	unheard              // executed, and the reply is lost; a pipeline may have had a part of its replies
	late                 // the caller gives up, and the request is executed afterwards
	loading              // refused: LOADING
	readonly             // refused: READONLY
	oom                  // refused: OOM
	killed               // the process dies before the request is sent
	orphaned             // executed, and the process dies before the reply arrives
	resigned             // between two rounds: the process stops in order
	fates
)

func (f fate) String() string {
	return [...]string{"answered", "lost", "unheard", "late", "LOADING", "READONLY", "OOM", "killed", "orphaned", "resigned"}[f]
}

// refusal is an error that Redis itself answers with.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError marks it for go-redis.
func (refusal) RedisError() {}

var refusals = map[fate]error{
	lost: errTimeout, loading: refusal("LOADING Redis is loading the dataset in memory"), late: errTimeout,
	readonly: refusal("READONLY You can't write against a read only replica."),
	oom:      refusal("OOM command not allowed when used memory > 'maxmemory'."),
}

var errTimeout error = &net.OpError{Op: "read", Net: "pipe", Err: errors.New("i/o timeout")}

// wire is between a client and Redis: there each actor hands over the baton.
type wire struct {
	server  *server
	repeats bool
}

// DialHook changes nothing.
func (wire) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook passes one command.
func (w wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		return w.pass(ctx, []redis.Cmder{command}, func() error { return w.server.scripts.execute(ctx, command, next) })
	}
}

// ProcessPipelineHook passes the commands of a pipeline together.
func (w wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		return w.pass(ctx, commands, func() error { return next(ctx, commands) })
	}
}

func (w wire) pass(ctx context.Context, commands []redis.Cmder, next func() error) error {
	for _, command := range commands {
		w.plant(command.Args())
	}
	c := &call{commands: commands, repeats: w.repeats, execute: next}
	if p, playing := ctx.Value(actorKey{}).(*player); playing {
		return p.meet(c)
	}
	a, acting := ctx.Value(actorKey{}).(*actor)
	if !acting || a.inside || a.dying {
		return next() // a connection that greets Redis is a part of the call that needs it
	}
	loading := commands[0].Name() == "script"
	if loading && a.loading {
		return next() // all scripts are loaded in one step: a dozen would be most of what a run does
	}
	a.loading = loading
	c.execute = func() error {
		a.inside = true
		defer func() { a.inside = false }()
		return next()
	}
	return a.call(c)
}

// plant replaces a script by the one that Redis is to run, and arguments that are pointed at by their texts, as go-redis prints their addresses.
func (w wire) plant(args []any) {
	for i, arg := range args {
		if text, is := arg.(*string); is {
			args[i] = *text
		}
	}
	switch name, _ := args[0].(string); {
	case name == "evalsha":
		args[1] = w.server.run(fmt.Sprint(args[1]))
	case name == "script" && len(args) == 3: // LOAD
		args[2] = w.server.run(fmt.Sprint(args[2]))
	}
}

// call is one call to Redis on its way.
type call struct {
	commands []redis.Cmder
	execute  func() error
	repeats  bool   // the client sends it again when no reply comes
	began    moment // of a delayed one: of the round that it was a part of
}

func (c *call) String() string {
	if c == nil {
		return "rest"
	}
	texts := make([]string, len(c.commands))
	for i, command := range c.commands {
		args := command.Args()
		if len(args) == 3 && args[0] == "script" {
			args = append(slices.Clone(args[:2]), digest(fmt.Sprint(args[2])))
		}
		texts[i] = strings.TrimSuffix(fmt.Sprintln(args...), "\n")
	}
	return strings.Join(texts, " | ")
}

// answers reports whether a worker pool reports how attempts have ended.
func (c *call) answers() bool { return strings.Contains(c.String(), " 2 "+queueName+"-output ") }

func (c *call) writes() bool {
	return slices.ContainsFunc(c.commands, func(command redis.Cmder) bool { return !slices.Contains(reads, command.Name()) })
}

var reads = []string{"hgetall", "get", "hmget", "hget", "lrange", "llen", "zrangebyscore", "zrange", "zcount", "zcard", "scard", "zscore", "sscan", "zscan", "time", "ping", "script", "scan", "info"}

// fail gives every command from the nth on the error of a reply that never came.
func (c *call) fail(err error, from int) error {
	for _, command := range c.commands[from:] {
		command.SetErr(err)
	}
	return err
}

// suffer carries out a fate. It does not return when the process dies.
func (a *actor) suffer(c *call, f fate) error {
	switch f {
	case answered:
		return a.world.execute(a, c)
	case unheard:
		looks := a.began.looks
		defer func() { a.began.looks = append(looks, a.began.looks[min(len(looks)+1, len(a.began.looks)):]...) }() // but for the lost one
		if c.repeats {
			_ = a.world.execute(a, c) // nobody hears of it
			return a.world.execute(a, c)
		}
		_ = a.world.execute(a, c)
		return c.fail(errTimeout, a.world.rng.IntN(len(c.commands)))
	case killed, resigned:
		a.die()
	case orphaned:
		_ = a.world.execute(a, c)
		a.die()
	case late:
		a.world.delay(a, c)
	}
	return c.fail(refusals[f], 0)
}

// tape is an actor's past in its round of the small scope: played back, it brings the actor to the same place
// without Redis.
type tape struct {
	calls [][]redis.Cmder // as answered
	uids  []string        // that it has drawn for attempts
	sum   uint64          // of all that was answered and drawn
}

// player runs one round of one actor from a tape, and one step beyond it.
type player struct {
	tape  tape
	call  int // calls passed so far
	drawn int
	step  func(*call) error // the call to execute; after it the round is stopped at the next one
	done  bool              // the step was made
	ended bool              // so was the round
}

// play returns the tape after the step. The round runs in a goroutine of its own, because stopping ends it.
func play(old tape, round func(context.Context, *player), step func(*call) error) (after tape) {
	p := &player{tape: tape{old.calls[:len(old.calls):len(old.calls)], old.uids[:len(old.uids):len(old.uids)], old.sum}, step: step}
	over := make(chan struct{})
	go func() {
		defer close(over)
		round(context.WithValue(context.Background(), actorKey{}, p), p)
		p.ended = true
	}()
	<-over
	if p.ended {
		return tape{}
	}
	return p.tape
}

func (p *player) draw(next func() string) string {
	if p.drawn == len(p.tape.uids) {
		p.tape.uids = append(p.tape.uids, next())
		p.tape.add(p.tape.uids[p.drawn])
	}
	p.drawn++
	return p.tape.uids[p.drawn-1]
}

// meet is where the player meets the wire.
func (p *player) meet(c *call) error {
	p.call++
	switch {
	case p.call <= len(p.tape.calls):
		return playBack(p.tape.calls[p.call-1], c.commands)
	case p.done && !c.idle():
		runtime.Goexit()
	}
	err := p.step(c)
	p.done = p.done || !c.idle()
	p.tape.calls = append(p.tape.calls, c.commands)
	for _, command := range c.commands {
		p.tape.add(command.String())
	}
	return err
}

func (t *tape) add(text string) {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, t.sum, text)
	t.sum = h.Sum64()
}

// idle calls read or write nothing that changes in the small scope: they are no step.
func (c *call) idle() bool {
	text := c.String()
	return strings.HasPrefix(text, "hmget "+queueName+":policies") || strings.HasPrefix(text, "lrange "+queueName+":front") || text == "time" || strings.Contains(text, " "+queueName+":circuit:queue "+queueName+":stats ")
}

// playBack gives commands the replies of others, and returns the first error.
func playBack(from, to []redis.Cmder) (first error) {
	for i, command := range to {
		reflect.ValueOf(command).Elem().Set(reflect.ValueOf(from[i]).Elem())
		first = cmp.Or(first, command.Err())
	}
	return first
}
