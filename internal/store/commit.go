package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

var commit = Load("commit.lua")

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
	// Misfit is set by Commit: which key is of another type than it should be, and keeps the item from being applied; of the last item of
	// a batch that is applied, also which keys were left out.
	Misfit string
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
			code, misfit, _ := strings.Cut(Text(reply[i]), " ")
			number, batch.Items[i].Misfit = parseInt(code), misfit
		}
		codes[i] = Code(number)
	}
	last := &batch.Items[len(codes)-1]
	last.Misfit = cmp.Or(last.Misfit, strings.Join(texts(reply[len(codes)]), "; "))
	return codes, nil
}

func (s *Store) commit(ctx context.Context, batch Batch) ([]any, error) {
	k := &s.Keys
	keys := []string{
		k.Due, k.Running, k.Input, k.Claimed(batch.Owner), k.ClaimedCommands, k.Leader,
		k.Rejected, k.Journal, k.Outbox, k.Stats, k.Wake, k.Policies, k.Urgent, k.PolicyUses, k.Commands,
		k.Failing, k.Disabled, k.Parked, k.Gates, k.Holds, k.StaleAt, k.Late, k.Stale, k.Errors, k.PastErrors,
	}
	creates := 0
	for i := range batch.Items {
		if t := batch.Items[i].Transition; t != nil && t.creates() {
			creates++
		}
	}
	all := batchEncoder{numbers: map[string]int{}, encoder: encoder{values: make([]any, 0, 20*len(batch.Items))}}
	for i := range batch.Items {
		item, uid := &batch.Items[i], batch.Items[i].UID
		if t := item.Transition; t != nil {
			uid = t.uid
			all.item(func(e *encoder) { t.encode(e, item, batch.Now, &s.config, k, creates <= maxToldCreates) })
		} else {
			all.item(func(e *encoder) { item.settle(e, batch.Now) })
		}
		n := item.keys(&s.config)
		if n > 0 {
			own := []string{k.Model(uid), k.History(uid), k.Payload(uid)}
			keys = append(keys, own[:min(n, len(own))]...)
		}
		if n == keysWithReply {
			keys = append(keys, k.Reply(item.Reply.Name))
		}
		keys = append(keys, all.keys...)
	}
	args := []any{model.FormatTime(batch.Now), batch.Now.UnixMilli(), batch.MaxQueued, s.config.JournalCap, s.config.HistoryCap, s.config.RejectedCap, batch.Owner, batch.HoldChanges, len(all.numbers)}
	return Run(ctx, s.Clients.Write, commit, keys, slices.Concat(args, all.kinds, all.values)...).Slice()
}

// maxToldCreates is how many creates of one batch the journal tells. Of more, such as those of an import, it tells none: they would displace
// everything else.
const maxToldCreates = 100

// keysWithReply is how many keys an item has that pushes a reply: that is the last one.
const keysWithReply = 4

// keys is how many of its keys an item needs.
func (i *Item) keys(config *Config) int {
	switch {
	case i.Reply.Text != "":
		return keysWithReply
	case i.Transition == nil:
		return 0
	case i.Transition.removes() || i.Transition.payload != "": // hash, history and payload
		return 3
	case i.Transition.decision.Ended != nil && config.HistoryCap > 0, i.Transition.decision.Past != nil:
		return 2
	default:
		return 1
	}
}

// settle encodes a message that changes no model.
func (i *Item) settle(e *encoder, now time.Time) {
	e.values = append(e.values, i.UID)
	i.message(e)
	e.add("reject", i.rejected(now))
	e.flag("settle", true)
	e.word("count=", i.Counter)
	e.count("keys", i.keys(nil))
}

// message encodes the message, and what is known of the command that it is.
func (i *Item) message(e *encoder) {
	e.add("message", i.Message.Entry)
	e.add("id", i.CommandID)
	e.add("reply", i.Reply.Text)
}

// ProbeScripts runs the script that commits with nothing to commit: it checks its keys and changes nothing.
func (s Fleet) ProbeScripts(ctx context.Context) error {
	_, err := s.commit(ctx, Batch{})
	return Wrap(err, "commit an empty batch")
}

// encoder encodes one item of a batch for commit.lua, behind those before it.
type encoder struct {
	words  []byte   // of its kind, each behind a line break
	values []any    // of all items: the number of the kind, uid, and what follows the words, lists last
	lists  []any    // of this item
	keys   []string // further ones of this item
}

// word adds a word, in two parts. A "$" before it says that a value of the item follows it, a "*" that a list does; behind it stands a "=" before a
// name, or a "#" before the number of keys that it brings.
func (e *encoder) word(word, argument string) {
	e.words = append(append(append(e.words, '\n'), word...), argument...)
}

// flag adds a word that nothing follows, if it is so.
func (e *encoder) flag(word string, is bool) {
	if is {
		e.word(word, "")
	}
}

// count adds a word that brings so many keys, unless that is 0.
func (e *encoder) count(word string, n int) {
	if n > 0 {
		e.word(word+"#", strconv.Itoa(n))
	}
}

// add adds a word and the value that follows it; without a value, neither.
func (e *encoder) add(word, value string) {
	if value != "" {
		e.addAny(word, value)
	}
}

// addAny adds a word and the value that follows it, also an empty one.
func (e *encoder) addAny(word, value string) {
	e.word("$", word)
	e.values = append(e.values, value)
}

// addList adds a word and the list that follows it; without one, neither.
func (e *encoder) addList(word string, list ...string) {
	if len(list) > 0 {
		e.addEach(word, list)
	}
}

// addEach adds a word and the list that follows it, also an empty one: behind its length, it stands behind the values of the item.
func (e *encoder) addEach(word string, list []string) {
	e.word("*", word)
	e.lists = append(e.lists, len(list))
	for _, value := range list {
		e.lists = append(e.lists, value)
	}
}

// addKeys adds the further keys that a word brings.
func (e *encoder) addKeys(keys ...string) { e.keys = append(e.keys, keys...) }

// batchEncoder encodes a batch for commit.lua. An item goes where it is sent from: a batch has hundreds.
type batchEncoder struct {
	encoder
	numbers map[string]int // of the kinds, by their words
	kinds   []any          // in their order, each a list behind its length
}

// item has an item encoded, and numbers its kind.
func (b *batchEncoder) item(encode func(*encoder)) {
	at := len(b.values)
	b.words, b.lists, b.keys, b.values = b.words[:0], b.lists[:0], b.keys[:0], append(b.values, nil)
	encode(&b.encoder)
	b.values = append(b.values, b.lists...)
	number, known := b.numbers[string(b.words)]
	if !known {
		number = len(b.numbers) + 1
		b.numbers[string(b.words)] = number
		list := strings.Split(string(b.words[1:]), "\n")
		b.kinds = append(append(b.kinds, len(list)), anys(list)...)
	}
	b.values[at] = number
}
