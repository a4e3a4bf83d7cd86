package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// send sends a command, and waits for its reply.
func (c *Client) send(ctx context.Context, wanted command) (Reply, error) {
	wanted.ID = c.config.NewID()
	replies, err := c.exchange(ctx, []command{wanted})
	if err == nil && replies[0].Outcome == Refused {
		err = &RefusedError{replies[0]}
	}
	if about := wanted.UID + wanted.Hold; err != nil {
		err = fmt.Errorf("%s %s: %w", wanted.Type, about, err)
	}
	return replies[0], err
}

const (
	batchSize  = 250     // commands wait for their replies together: a list of replies keeps 1,000
	batchBytes = 1 << 20 // are pushed at once, or one command
)

// PutMany saves models, some hundreds in a step. It returns their replies in order, those of refused ones too, whose Outcome is Refused. With an error,
// such as ErrNoReply, it returns the replies so far; those that are missing are empty. Repeat it then: a model that was saved is Unchanged. If one
// cannot be written as JSON, none is sent.
func (c *Client) PutMany(ctx context.Context, definitions []Definition) (replies []Reply, err error) {
	batches, err := batchesOf(definitions)
	for _, batch := range batches {
		name, commands := c.config.NewID(), make([]command, len(batch))
		for i := range batch {
			commands[i] = command{Type: model.CommandPut, UID: batch[i].UID, Definition: &batch[i], ID: fmt.Sprint(name, ".", i)}
		}
		var found []Reply
		found, err = c.exchange(ctx, commands)
		if replies = append(replies, found...); err != nil {
			break
		}
	}
	return replies, redis.Wrap(err, "put many")
}

// batchesOf divides definitions into those that go together.
func batchesOf(definitions []Definition) (batches [][]Definition, err error) {
	first, size := 0, 0
	for i := range definitions {
		text, err := textOf(&definitions[i], &definitions[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", definitions[i].UID, err)
		}
		if i-first == batchSize || i > first && size+len(text) > batchBytes {
			batches, first, size = append(batches, definitions[first:i]), i, 0
		}
		size += len(text)
	}
	return append(batches, definitions[first:]), nil
}

// textOf writes a definition, or a command that may have one.
func textOf(one any, definition *Definition) (string, error) {
	text, err := json.Marshal(one)
	if err == nil || definition == nil {
		return string(text), err
	}
	field := "policy"
	if _, unfit := json.Marshal(definition.Payload); unfit != nil {
		field = "payload"
	}
	return "", document.Refuse(field, "what encoding/json can write", strings.TrimPrefix(err.Error(), "json: "))
}

// exchange pushes commands to the parts of their models, and waits for their replies under a name that nobody else uses. They are in order.
func (c *Client) exchange(ctx context.Context, commands []command) (replies []Reply, err error) {
	name, found := strings.ToLower(rand.Text()), map[string]Reply{}
	queue := c.queue.Load()
	parts := store.ByPart(queue, commands, func(one command) string { return one.UID })
	for part, some := range parts {
		if err == nil {
			err = c.push(ctx, part, name, some)
		}
	}
	for part, some := range parts {
		if err == nil && c.config.Timeout > 0 {
			err = c.await(ctx, part, name, some, found)
		}
	}
	if errors.Is(err, ErrNoReply) { // the queue may have been divided since
		if divided, unread := store.Open(ctx, queue.Parts[0].Clients, store.Config{Queue: queue.Name}); unread == nil {
			c.queue.Store(divided)
		}
	}
	return redis.Map(commands, func(one command) Reply { return found[one.ID] }), err
}

func (c *Client) push(ctx context.Context, part *store.Store, name string, commands []command) error {
	texts := make([]string, len(commands))
	for i, one := range commands {
		if one.By = c.config.By; c.config.Timeout > 0 {
			one.ReplyTo = part.Keys.Reply(name)
		}
		text, err := textOf(one, one.Definition)
		if err != nil {
			return err
		}
		texts[i] = text
	}
	err := store.PushCommands(ctx, part, texts...)
	if err != nil && !redis.Answered(err) { // once more: with the same ids they are carried out once
		err = store.PushCommands(ctx, part, texts...)
	}
	return err
}

// await adds the replies to commands, the first one to each.
func (c *Client) await(ctx context.Context, part *store.Store, name string, commands []command, found map[string]Reply) error {
	for i := 0; i < len(commands); {
		if _, has := found[commands[i].ID]; has {
			i++
			continue
		}
		answer, err := c.take(ctx, part, name, func() error { return c.push(ctx, part, name, commands[i:]) })
		if errors.Is(err, ErrNoReply) {
			err = fmt.Errorf("%w %s%s in the queue %s within %g s%s", err, commands[i].ID, missing(commands[i:], found), part.Keys.Queue,
				c.config.Timeout.Seconds(), pollers(ctx, part))
		}
		if err != nil {
			return err
		}
		var reply Reply
		if err := json.Unmarshal([]byte(answer), &reply); err != nil {
			return fmt.Errorf("read the reply: %w", err)
		}
		id := reply.ID
		if len(commands) == 1 { // a wrong id is not in its reply
			id = commands[0].ID
		}
		if _, has := found[id]; !has {
			found[id] = reply
		}
	}
	return nil
}

// take takes the next reply. After a lost connection it pushes again first, as a command or a reply may be lost: with the same ids each is carried out
// once.
func (c *Client) take(ctx context.Context, part *store.Store, name string, again func() error) (answer string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, ErrNoReply)
	defer cancel()
	for answer == "" && err == nil {
		answer, err = store.TakeReply(ctx, part, name)
		for err != nil && !redis.Answered(err) && ctx.Err() == nil {
			backoff.Rest(ctx, 100*time.Millisecond, nil)
			err = again()
		}
		if ctx.Err() != nil && answer == "" {
			err = context.Cause(ctx)
		}
	}
	return answer, err
}

// missing names the models of commands without a reply.
func missing(commands []command, found map[string]Reply) string {
	var uids []string
	for _, one := range commands {
		if _, has := found[one.ID]; !has && one.UID != "" {
			uids = append(uids, one.UID)
		}
	}
	if len(uids) == 0 {
		return ""
	}
	about := " about " + strings.Join(uids[:min(3, len(uids))], ", ")
	if len(uids) > 3 {
		about += fmt.Sprintf(" and %d others", len(uids)-3)
	}
	return about
}

// pollers says in an error whether a poller lives, if the user of Redis may ask.
func pollers(ctx context.Context, part *store.Store) string {
	last, err := part.Clients.Read.ZRangeWithScores(ctx, part.Keys.Pollers, -1, -1).Result()
	now, unknown := part.Now(ctx)
	switch {
	case err != nil || unknown != nil:
		return ""
	case len(last) == 0:
		return ": no poller is running"
	}
	if silence := now.Sub(time.UnixMilli(int64(last[0].Score))) / time.Second; silence > 5 {
		return fmt.Sprintf(": no poller has given a heartbeat for %d s", silence)
	}
	return ": a poller lives; to a command that is larger than its message-cap, or no JSON, it does not reply: see the rejected messages"
}
