package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
)

var applyItems = redis.LoadScript("txn.lua")

// Code is what a script answers for one item of a batch. A refusal is a result, not an error.
type Code int

// The codes of all scripts.
const (
	CodeApplied  Code = 1 // done
	CodeConflict Code = 2 // the model has changed since it was read: read again and decide again
	CodeGone     Code = 3 // the message is not claimed any more: somebody else has handled it, or will
	CodeTaken    Code = 4 // the attempt that must be queued is not, a worker has it: decide again
	CodeFull     Code = 5 // the input list has reached the high-water mark
	CodeBroken   Code = 6 // the key of the model holds something else

	CodeDuplicate Code = 7 // a command with the same id was handled within a day
	CodeLimited   Code = 8 // a key has no room for the start, or its slot is taken: decide again
	CodeBlocked   Code = 9 // another key that it needs is of another type: decide again when somebody has set that right
)

func (c Code) String() string {
	names := map[Code]string{
		CodeApplied: "applied", CodeConflict: "conflict", CodeGone: "gone", CodeTaken: "taken", CodeFull: "full", CodeBroken: "broken",
		CodeDuplicate: "duplicate", CodeLimited: "limited", CodeBlocked: "blocked",
	}
	return cmp.Or(names[c], "code "+strconv.Itoa(int(c)))
}

// Retry reports whether the item was decided on what is no longer so: it is to be read and decided again.
func (c Code) Retry() bool { return c == CodeConflict || c == CodeTaken }

// Batch is what one loop has decided at one instant.
type Batch struct {
	Now   time.Time
	Items []Item // in order
	// Owner is the poller that has claimed the messages. Needed where an item has one.
	Owner string
	// MaxQueued is the high-water mark of the input list, in entries. Needed where an attempt is started.
	MaxQueued int
	// HoldChanges is how often holds had changed when the batch was decided, as ReadDue tells. Needed where an attempt is started.
	HoldChanges string
}

// Item is one decision. It changes a model, or it settles a message that changes none.
type Item struct {
	// Transition is the change of a model; nil: the item settles a message.
	Transition *Transition
	// Message is the claimed message that the item answers: both change together or not at all. Zero: none.
	Message Claimed
	// UID is the model of a message that changes none; empty: it cannot be read.
	UID string
	// Counter is where a message that changes no model is counted.
	Counter string
	// Reason says why it cannot be handled: it is kept in <queue>:rejected. Empty: it is only counted.
	Reason string
	// CommandID is the id of the command that the message is: it is noted with the item, and refuses later ones for a day. Empty: none.
	CommandID string
	// Reply is what the sender of the command is told. Zero: nothing.
	Reply Reply
	// WrongType is set by Commit: which key is of another type than it should be, and keeps the item from being applied; of the last item of
	// a batch that is applied, also which keys were left out.
	WrongType string
}

// Reply is one entry of a reply list.
type Reply struct {
	Name string // of the list, see Keys.Reply
	Text string
}

// Commit applies the items of a batch in order, in one script: one code for each. What was decided on top of a refused item is refused
// with it. An inline policy is stored with the first model that uses it, and goes with the last. An error means that it is unknown
// whether the batch was applied: read again and decide again, which is safe.
func (s *Store) Commit(ctx context.Context, batch Batch) ([]Code, error) {
	if len(batch.Items) == 0 {
		return nil, nil
	}
	reply, err := s.commit(ctx, batch)
	if err == nil && len(reply) != len(batch.Items)+1 {
		err = fmt.Errorf("expected %d codes, found %d", len(batch.Items), len(reply)-1)
	}
	if err != nil {
		return nil, fmt.Errorf("commit a batch: %w", err)
	}
	codes := make([]Code, len(batch.Items))
	for i := range codes {
		number, is := reply[i].(int64)
		if !is { // what is wrong follows it
			code, misfit, _ := strings.Cut(redis.Text(reply[i]), " ")
			number, batch.Items[i].WrongType = redis.ParseInt(code), misfit
		}
		codes[i] = Code(number)
	}
	last := &batch.Items[len(codes)-1]
	last.WrongType = cmp.Or(last.WrongType, strings.Join(redis.Texts(reply[len(codes)]), "; "))
	return codes, nil
}

func (s *Store) commit(ctx context.Context, batch Batch) ([]any, error) {
	e := newEncoder(s, &batch)
	for i := range batch.Items {
		e.add(&batch.Items[i])
	}
	return redis.RunScript(ctx, s.Clients.Write, applyItems, e.txn.Keys(), e.txn.Args(e.instant, batch.Now.UnixMilli())...).Slice()
}

// maxToldCreates is how many creates of one batch the journal tells. Of more, such as those of an import, it tells none: they would displace
// everything else.
const maxToldCreates = 100

// ProbeScripts runs the script that commits with nothing to commit: it checks its keys and changes nothing.
func (s Fleet) ProbeScripts(ctx context.Context) error {
	_, err := s.store.commit(ctx, Batch{})
	return redis.Wrap(err, "commit an empty batch")
}
