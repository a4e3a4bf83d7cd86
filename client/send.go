package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// send sends a command, and waits for its reply under a name that nobody else uses.
func (c *Client) send(ctx context.Context, wanted command) (Reply, error) {
	wanted.ID = c.config.NewID()
	replies, err := c.exchange(ctx, wanted.ID, []command{wanted})
	if err == nil && replies[0].Outcome == Refused {
		err = &RefusedError{replies[0]}
	}
	if about := wanted.UID + wanted.Hold; err != nil {
		err = fmt.Errorf("%s %s: %w", wanted.Type, about, err)
	}
	return replies[0], err
}

// batchSize is how many commands wait for their replies together: a list of replies keeps 1,000.
const batchSize = 250

// PutMany saves models, some hundreds in a step. It returns their replies in order, those of refused ones too, whose Outcome is Refused. Repeat it
// after an error, such as ErrNoReply: a model that was saved is Unchanged then.
func (c *Client) PutMany(ctx context.Context, definitions []Definition) (replies []Reply, err error) {
	for batch := range slices.Chunk(definitions, batchSize) {
		name, commands := c.config.NewID(), make([]command, len(batch))
		for i := range batch {
			commands[i] = command{Type: model.CommandPut, UID: batch[i].UID, Definition: &batch[i], ID: fmt.Sprint(name, ".", i)}
		}
		found, err := c.exchange(ctx, name, commands)
		if err != nil {
			return nil, fmt.Errorf("put many: %w", err)
		}
		replies = append(replies, found...)
	}
	return replies, nil
}

// exchange pushes commands to the parts of their models, and waits for their replies under one name. They are in order.
func (c *Client) exchange(ctx context.Context, name string, commands []command) (replies []Reply, err error) {
	parts, found := store.ByPart(c.queue, commands, func(one command) string { return one.UID }), map[string]Reply{}
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
	return redis.Map(commands, func(one command) Reply { return found[one.ID] }), err
}

func (c *Client) push(ctx context.Context, part *store.Store, name string, commands []command) error {
	texts := make([]string, len(commands))
	for i, one := range commands {
		if one.By = c.config.By; c.config.Timeout > 0 {
			one.ReplyTo = part.Keys.Reply(name)
		}
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		texts[i] = string(text)
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
		answer, err := c.take(ctx, part, name)
		if errors.Is(err, ErrNoReply) {
			err = fmt.Errorf("%w %s in the queue %s within %g s%s", err, commands[i].ID, part.Keys.Queue, c.config.Timeout.Seconds(), pollers(ctx, part))
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

func (c *Client) take(ctx context.Context, part *store.Store, name string) (answer string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, ErrNoReply)
	defer cancel()
	for answer == "" && err == nil {
		if answer, err = store.TakeReply(ctx, part, name); ctx.Err() != nil && answer == "" {
			err = context.Cause(ctx)
		}
	}
	return answer, err
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
	return ": a poller lives"
}
