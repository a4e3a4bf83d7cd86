package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
)

var (
	claimMessages = redis.LoadScript("claim-messages.lua")
	moveEntries   = redis.LoadScript("move-entries.lua")
)

// Claimed is one message in a claimed list, or among the claimed commands.
type Claimed struct {
	Entry string // as the claimed list has it
}

// The marks that claim-messages.lua puts before a message.
const (
	markControl      = "n" // its number and a space follow
	markLargeControl = "C"
	markLargeOutput  = "O"
)

// maxClaimed is how many bytes of either list a poller claims at once, and up to 8 messages more.
const maxClaimed = 8 << 20

func (c Claimed) marked(marks string) bool {
	return c.Entry != "" && strings.Contains(marks, c.Entry[:1])
}

// FromControl reports whether the message came from the control list, not from the output list.
func (c Claimed) FromControl() bool { return c.marked(markControl + markLargeControl) }

// Raw is the message as its sender wrote it, or the beginning of one that is too large.
func (c Claimed) Raw() string {
	if c.marked(markControl + markLargeControl + markLargeOutput) {
		_, raw, _ := strings.Cut(c.Entry, " ")
		return raw
	}
	return c.Entry[min(1, len(c.Entry)):]
}

// Number is the number that a command got when it was claimed.
func (c Claimed) Number() string {
	number, _, _ := strings.Cut(c.Entry, " ")
	return strings.TrimPrefix(number, markControl)
}

// At is when a command was claimed first, by its number: the same however often it is carried out, and in each part.
func (c Claimed) At(now time.Time) time.Time {
	at := time.UnixMicro(redis.ParseInt(c.Number())).UTC().Truncate(time.Millisecond)
	if at.After(now) {
		return now
	}
	return at
}

// Large returns the size of a message that is too large, and the largest that is accepted, in bytes.
func (c Claimed) Large() (size, most string, large bool) {
	if !c.marked(markLargeControl + markLargeOutput) {
		return "", "", false
	}
	sizes, _, _ := strings.Cut(c.Entry[1:], " ")
	size, most, _ = strings.Cut(sizes, "/")
	return size, most, true
}

// Claim has the messages that a poller has claimed.
type Claim struct {
	// Now is the clock.
	Now time.Time
	// Messages are its results, oldest first, and behind them the commands if it leads, in the order in which they were
	// pushed.
	Messages []Claimed
	// Leads says that commands are this poller's to apply.
	Leads bool
	// Bulks says that there are bulks, and that it is this poller's to carry them out.
	Bulks bool
	// WrongTypes are which keys are of another type than they should be: nothing is claimed from there.
	WrongTypes []string
}

// Holding is the state of a poller's claimed results.
type Holding struct {
	InHand  int // the oldest of them, which it decides now
	Waiting int // of the others those that it has decided, and that wait for a key of another type
}

// Claim moves results into the claimed list of owner, and commands into theirs if owner leads or may lead, until limit messages are claimed. It does
// not count or return the results that owner has in hand. It is also a heartbeat, and safe to repeat. A leader without a heartbeat within the lease
// leads no longer.
func (s *Store) Claim(ctx context.Context, owner string, holds Holding, limit int, lease time.Duration) (Claim, error) {
	k := &s.Keys
	keys := []string{k.Control, k.Output, k.Claimed(owner), k.ClaimedCommands, k.Leader, k.Pollers, k.Forwarded, k.Bulks, k.Heard}
	now, reply, err := redis.RunTimed(ctx, s.Clients.Write, claimMessages, 4, keys,
		s.clockArg(), owner, limit, s.Config.MessageCap, maxClaimed, lease.Milliseconds(), redis.Flag(s.replyTo() != ""), holds.InHand, holds.Waiting)
	if err != nil {
		return Claim{}, fmt.Errorf("claim messages: %w", err)
	}
	messages := redis.Map(redis.Texts(reply[1]), func(entry string) Claimed { return Claimed{entry} })
	return Claim{Now: now, Messages: messages, Leads: reply[0] == int64(1), Bulks: reply[2] == int64(1), WrongTypes: redis.Texts(reply[3])}, nil
}

// ExpiredPollers lists owners of claimed lists without a heartbeat within a lease before now. A heartbeat after now does not count, as the clock may
// have been set back. Adopt reads the clock again.
func (s *Store) ExpiredPollers(ctx context.Context, now time.Time, lease time.Duration) ([]string, error) {
	expired, err := s.expired(ctx, s.Keys.Pollers, now, lease, 0)
	return redis.Map(expired, func(last Heartbeat) string { return last.Owner }), redis.Wrap(err, "read pollers")
}

// Adopt moves up to limit claimed messages of an expired poller to owner and returns how many. A poller with a heartbeat within the lease keeps its
// messages. To adopt a living poller's is harmless: nothing is applied twice.
func (s *Store) Adopt(ctx context.Context, expired, owner string, lease time.Duration, limit int) (int, error) {
	keys := []string{s.Keys.Pollers, s.Keys.Claimed(expired), s.Keys.Claimed(owner), s.Keys.Heard}
	moved, err := redis.RunScript(ctx, s.Clients.Write, moveEntries, keys, s.clockArg(), expired, lease.Milliseconds(), "", owner, limit).Int()
	return max(0, moved), redis.Wrap(err, "adopt messages")
}

// Resign forgets a poller that has nothing claimed any more. Whatever it still holds stays to be adopted.
//
// It moves nothing, but both must happen in one step: a claim that the poller has given up waiting for may still be executed, and nobody would miss
// what it brings.
func (s *Store) Resign(ctx context.Context, owner string) error {
	keys := []string{s.Keys.Pollers, s.Keys.Claimed(owner), s.Keys.Claimed(owner), s.Keys.Heard}
	return redis.Wrap(redis.RunScript(ctx, s.Clients.Write, moveEntries, keys, s.clockArg(), owner, "", "", "", 0).Err(), "resign poller")
}

// expired lists the heartbeats of a set that are at least a lease old at now, or too far ahead, as after the clock was set back.
func (s *Store) expired(ctx context.Context, key string, now time.Time, lease, ahead time.Duration) ([]Heartbeat, error) {
	pipe := s.Clients.Read.Pipeline()
	old := pipe.ZRangeByScoreWithScores(ctx, key, &goredis.ZRangeBy{Min: "-inf", Max: redis.Millis(now.Add(-lease))})
	future := pipe.ZRangeByScoreWithScores(ctx, key, &goredis.ZRangeBy{Min: "(" + redis.Millis(now.Add(ahead)), Max: "+inf"})
	_, err := pipe.Exec(ctx)
	return redis.Map(slices.Concat(old.Val(), future.Val()), func(z goredis.Z) Heartbeat {
		return Heartbeat{Key: key, Owner: redis.Text(z.Member), At: time.UnixMilli(int64(z.Score)).UTC()}
	}), err
}

var receiveCommands = redis.LoadScript("receive-commands.lua")

// Forwarded is a command on its way to the part of its model.
type Forwarded struct {
	UID     string
	Claimed Claimed
}

// Forward pushes commands about models of other parts to the control lists of these parts, each once and in their order: give it all that
// are claimed. It returns the parts that have theirs, by Keys. After an error it is repeated with all of them.
func (s *Store) Forward(ctx context.Context, commands []Forwarded) (done map[*Keys]bool, err error) {
	byPart := map[*Store][]any{}
	for _, c := range commands {
		part := s.queue.Of(c.UID)
		byPart[part] = append(byPart[part], c.Claimed.Number(), c.Claimed.Raw())
	}
	done = map[*Keys]bool{}
	var mu sync.Mutex // guards done and failed
	var failed []error
	var sending sync.WaitGroup
	for part, numbered := range byPart {
		sending.Go(func() { // side by side, so that none waits for one that does not answer
			keys := []string{part.Keys.Control, part.Keys.Forwarded}
			refused := redis.RunScript(ctx, part.Clients.Write, receiveCommands, keys, append([]any{s.Place}, numbered...)...).Err()
			mu.Lock()
			defer mu.Unlock()
			if refused != nil {
				failed = append(failed, fmt.Errorf("forward commands to %s: %w", part.Keys.Queue, refused))
				return
			}
			done[&part.Keys] = true
		})
	}
	sending.Wait()
	return done, errors.Join(failed...)
}

// WaitOutput waits up to a second for a message from a worker; false: none came.
func (s *Store) WaitOutput(ctx context.Context) (bool, error) {
	return s.waitList(ctx, s.Keys.Output)
}

// WaitControl waits up to a second for a message from an application; false: none came.
func (s *Store) WaitControl(ctx context.Context) (bool, error) {
	return s.waitList(ctx, s.Keys.Control)
}

// waitList waits until the list is not empty. It moves the head onto itself, so that a lost reply loses nothing, as a pop would. Redis answers with
// the head; the client Block receives at most 64 KiB of it.
func (s *Store) waitList(ctx context.Context, key string) (bool, error) {
	return redis.Arrived(s.Clients.Block.BLMove(ctx, key, key, "LEFT", "LEFT", redis.BlockFor).Err(), "wait for messages")
}

// WaitWake waits up to a second for a call to the dispatcher and takes it; false: none came. A call that is lost with its
// taker delays nobody by more than a second: then every dispatcher reads by itself.
func (s *Store) WaitWake(ctx context.Context) (bool, error) {
	return redis.Arrived(s.Clients.Block.BLPop(ctx, redis.BlockFor, s.Keys.Wake).Err(), "wait for a wake call")
}

// PushCommands appends commands to the control list. After an error they may be pushed again with their command_id: each is carried out once.
func PushCommands(ctx context.Context, part *Store, commands ...string) error {
	return redis.Wrap(part.Clients.Write.RPush(ctx, part.Keys.Control, redis.Anys(commands)...).Err(), "push a command")
}

// TakeReply waits up to a second for a reply under a name, the oldest one, and takes it; empty: none came. After an error it may be lost.
func TakeReply(ctx context.Context, part *Store, name string) (string, error) {
	reply, err := part.Clients.Block.BLPop(ctx, redis.BlockFor, part.Keys.Reply(name)).Result()
	if err != nil {
		return "", redis.Wrap(redis.IgnoreMissing(err), "wait for a reply")
	}
	return reply[1], nil
}
