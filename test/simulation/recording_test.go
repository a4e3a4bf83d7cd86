package simulation

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"
)

// tape is what an actor of the small scope has lived through in its round: played back, it brings the actor to the same place
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

// draw returns the next uid of an attempt.
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
