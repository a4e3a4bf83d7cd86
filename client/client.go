package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Config tunes a client. The zero value is usable.
type Config struct {
	// By is who wants what the commands say, for the journal. At most 60 bytes are kept. Defaults to nobody.
	By string
	// Timeout is how long a command waits for its reply, beside its context. At least 1 s, as Redis waits by the second; negative: it does
	// not wait, and its Reply is empty. Defaults to 10 s.
	Timeout time.Duration
	// NewID makes the command_id of a command, of the form of a uid. Defaults to crypto/rand, 26 letters and digits.
	NewID func() string
}

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	if c.NewID == nil {
		c.NewID = func() string { return strings.ToLower(rand.Text()) }
	}
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	if 0 <= c.Timeout && c.Timeout < time.Second {
		return document.Refuse("timeout", "at least 1s, or a negative one", c.Timeout.String())
	}
	return nil
}

// Client sends commands to one queue, and reads its models. It is safe for concurrent use.
type Client struct {
	queue   atomic.Pointer[store.Queue] // read anew when nobody replies
	config  Config
	clients *redis.Clients // opened by Open; nil: the caller owns the clients
}

// Open connects to the Redis at an address, such as redis://127.0.0.1:6379 (docs/cli.md has all forms), and makes a client of a queue. Close ends the
// connections.
func Open(ctx context.Context, address, queue string, config Config) (*Client, error) {
	opened, clients, err := store.Dial(ctx, address, store.Config{Queue: queue})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	client, err := newClient(opened, config)
	if err != nil {
		return nil, errors.Join(err, clients.Close())
	}
	client.clients = clients
	return client, nil
}

// Close ends the connections of a client that Open has returned.
func (c *Client) Close() error {
	if c.clients == nil {
		return nil
	}
	return c.clients.Close()
}

func newClient(queue *store.Queue, config Config) (*Client, error) {
	config = config.WithDefaults()
	if err := errors.Join(config.Validate(), queue.RequireWhole()); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c := &Client{config: config}
	c.queue.Store(queue)
	return c, nil
}

// Definition is a model to save. docs/wire.md explains the fields; empty ones are not sent.
type Definition struct {
	// UID is 1 to 200 letters, digits or _.:@/+=~-
	UID string `json:"uid"`
	// Payload becomes a JSON object, which workers get: at most 64 KiB.
	Payload any `json:"payload,omitempty"`
	// Rule is an RFC 5545 rule, a cron expression or English. Without one, in the policy neither, the model is refreshed when a save changes it.
	Rule string `json:"rrule,omitempty"`
	// Timezone is an IANA name. Defaults to UTC.
	Timezone string `json:"timezone,omitempty"`
	// Dtstart is the wall clock at which the rule is anchored.
	Dtstart string `json:"dtstart,omitempty"`
	// Refresh says when the first attempt after the save starts.
	Refresh model.Refresh `json:"refresh,omitempty"`
	// Policy is the name of a stored policy, or one of its own as a map or a struct with JSON names. Defaults to the policy named default.
	Policy any `json:"policy,omitempty"`
	// Labels are for selectors.
	Labels map[string]string `json:"labels,omitempty"`
}

type command struct {
	*Definition
	Type    model.CommandType `json:"type"`
	UID     string            `json:"uid,omitempty"`
	ID      string            `json:"command_id"`
	ReplyTo string            `json:"reply_to,omitempty"`
	By      string            `json:"by,omitempty"`
	Force   bool              `json:"force,omitempty"`
	Reason  string            `json:"reason,omitempty"`

	Hold     string    `json:"id,omitempty"`
	Selector string    `json:"selector,omitempty"`
	For      float64   `json:"for,omitempty"` // seconds
	Until    time.Time `json:"until,omitzero"`
	Within   float64   `json:"within,omitempty"` // seconds
}

// Put saves a model: it is created or updated. One that is saved as it is stays as it is: Unchanged.
func (c *Client) Put(ctx context.Context, definition Definition) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandPut, UID: definition.UID, Definition: &definition})
}

// Run refreshes a model now, before the backlog. It is refused with ErrBusy while an attempt is queued or running, and with ErrStopped if
// the model was disabled by hand, unless force is true.
func (c *Client) Run(ctx context.Context, uid string, force bool) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandRun, UID: uid, Force: force})
}

// Enable lets a disabled model wait for its schedule again; one without a schedule starts now.
func (c *Client) Enable(ctx context.Context, uid string) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandEnable, UID: uid})
}

// Disable keeps a model from being refreshed until Enable. The reason is for its owner; empty: none.
func (c *Client) Disable(ctx context.Context, uid, reason string) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandDisable, UID: uid, Reason: reason})
}

// Remove forgets a model.
func (c *Client) Remove(ctx context.Context, uid string) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandRemove, UID: uid})
}

// Accept lets the success count that a guard of the policy doubts.
func (c *Client) Accept(ctx context.Context, uid string) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandAccept, UID: uid})
}

// Reject makes the doubted success a failure.
func (c *Client) Reject(ctx context.Context, uid string) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandReject, UID: uid})
}

// Hold keeps models from starting. At its end they start.
type Hold struct {
	// ID names the hold, in the form of a uid. To repeat it changes its reason or its end.
	ID string
	// Reason is required: why, for whoever wonders.
	Reason string
	// Selector picks the models, as in "tenant=t1". Defaults to all models. One that picks none is no error: look first with List.
	Selector string
	// For or Until is when it ends; neither: by Release.
	For   time.Duration
	Until time.Time
	// Within spreads the starts at its end. Defaults to all at once.
	Within time.Duration
}

// Hold begins a hold of all parts of the queue.
func (c *Client) Hold(ctx context.Context, hold Hold) (Reply, error) {
	return c.send(ctx, command{
		Type: model.CommandHold, Hold: hold.ID, Reason: hold.Reason, Selector: hold.Selector, Until: hold.Until,
		For: hold.For.Seconds(), Within: hold.Within.Seconds(),
	})
}

// Release ends a hold: its models start, spread over within; 0: as the hold says.
func (c *Client) Release(ctx context.Context, id string, within time.Duration) (Reply, error) {
	return c.send(ctx, command{Type: model.CommandRelease, Hold: id, Within: within.Seconds()})
}
