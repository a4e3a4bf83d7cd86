package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
)

var applyItems = redis.LoadScript("txn.lua")

// Code is the answer of a script for one item of a batch. A refusal is a result, not an error.
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

// Retry reports whether the item was decided on an old state: read and decide it again.
func (c Code) Retry() bool { return c == CodeConflict || c == CodeTaken }

// Batch has the decisions of one loop at one instant.
type Batch struct {
	Now   time.Time
	Items []Item // in order
	// Owner is the poller that has claimed the messages. Needed where an item has one.
	Owner string
	// MaxQueued is the high-water mark of the input list, in entries. Needed where an attempt is started.
	MaxQueued int
	// HoldChanges is how often holds had changed when the batch was decided, as ReadDue returns it. A start needs it.
	HoldChanges string

	actor *Actor // whose deeds are kept; nil: nobody's
}

// Item is one decision. It changes a model, or it settles a message that changes none.
type Item struct {
	// Transition is the change of a model; nil: the item settles a message.
	Transition *Transition
	// Behind is the model whose attempt ends earlier in the batch, and gives back the place of a key that this start takes: it is refused with that end.
	// Empty: the start takes another.
	Behind string
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
	// Reply goes to the sender of the command. Zero: none.
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
		if !is { // the fault follows it
			code, wrong, _ := strings.Cut(redis.Text(reply[i]), " ")
			number, batch.Items[i].WrongType = redis.ParseInt(code), wrong
		}
		codes[i] = Code(number)
	}
	last := &batch.Items[len(codes)-1]
	last.WrongType = cmp.Or(last.WrongType, strings.Join(redis.Texts(reply[len(codes)]), "; "))
	return codes, nil
}

func (s *Store) commit(ctx context.Context, batch Batch) ([]any, error) {
	if ActorOf(ctx).wants(batch.Items) {
		var err error
		if batch.actor, err = s.actor(ctx); err != nil {
			return nil, err
		}
	}
	if n := len(batch.Items); n > 0 && n <= s.Config.FewItems && batch.actor == nil { // a deed of several items has a template

		// An empty reply: a key is of another type, and only templates know what may be left out.
		if reply, err := s.apply(ctx, &batch, true); err != nil || len(reply) > 0 {
			return reply, err
		}
	}
	return s.apply(ctx, &batch, false)
}

func (s *Store) apply(ctx context.Context, batch *Batch, alone bool) ([]any, error) {
	e := newEncoder(s, batch, alone)
	for i := range batch.Items {
		e.add(&batch.Items[i])
	}
	return redis.RunScript(ctx, s.Clients.Write, applyItems, e.txn.Keys(), e.txn.Args(e.instant, batch.Now.UnixMilli())...).Slice()
}

// maxToldCreates is how many creates of one batch the journal keeps. If there are more, as in an import, it keeps none: they would displace
// everything else.
const maxToldCreates = 100

// ProbeScripts runs the script that commits with nothing to commit: it checks its keys and changes nothing.
func (s Fleet) ProbeScripts(ctx context.Context) error {
	_, err := s.store.commit(ctx, Batch{})
	return redis.Wrap(err, "commit an empty batch")
}

// encoder turns the items of a batch into lines of txn.lua.
type encoder struct {
	txn            *txn.Batch
	batch          *Batch
	config         *Config
	keys           *Keys
	instant, ms    string // of the batch
	claimed        string // the key of its owner
	journalCap     string
	maxQueued      string
	journalsCreate bool  // the journal has an entry for each create
	steps          steps // of the transition in hand
	deeds          map[deedKey]model.Deed

	rejects       int                    // numbers of groups, 0 until an item needs them
	joins, leaves [len(ScoreIndexes)]int // likewise
}

func newEncoder(s *Store, batch *Batch, alone bool) *encoder {
	creates := 0
	for i := range batch.Items {
		if t := batch.Items[i].Transition; t != nil && t.creates() {
			creates++
		}
	}
	e := &encoder{
		txn: txn.NewBatch(len(batch.Items), alone), batch: batch, config: &s.Config, keys: &s.Keys,
		claimed: s.Keys.Claimed(batch.Owner), journalCap: strconv.Itoa(s.Config.JournalCap), maxQueued: strconv.Itoa(batch.MaxQueued),
		instant: model.FormatTime(batch.Now), ms: strconv.FormatInt(batch.Now.UnixMilli(), 10), journalsCreate: creates <= maxToldCreates,
	}
	e.groupDeeds()
	if len(batch.Items) == 0 {
		e.probe()
	}
	return e
}

// probe gives an empty batch all keys that any could have, so that Redis refuses a user who may not use them.
func (e *encoder) probe() {
	k, types := e.keys, e.keys.Types()
	for _, name := range append(k.ScoreSets(), k.Input, k.ClaimedCommands, k.Leader, k.Rejected, k.Journal, k.Outbox, k.Stats, k.Wake, k.Policies,
		k.PolicyUses, k.Commands, k.Blockers, k.Holds, k.Heard, k.Errors, k.PastErrors) {
		e.txn.Key(name, types[name])
	}
}

// opensInput lets verbs use the input list.
func (e *encoder) opensInput() txn.Key {
	input := e.txn.Asked(e.keys.Input, txn.List)
	e.txn.First("input", []txn.Key{input}, e.maxQueued)
	return input
}

// opensStreams lets verbs write entries about no model, and returns the key of the outbox.
func (e *encoder) opensStreams() txn.Key {
	journal, outbox := e.txn.Key(e.keys.Journal, txn.Stream), e.txn.Key(e.keys.Outbox, txn.Stream)
	e.txn.First("streams", []txn.Key{journal, outbox, e.txn.Key(e.keys.Stats, txn.Hash)}, strconv.Itoa(max(0, e.config.JournalCap)))
	return outbox
}

// opensWake lets verbs call a dispatcher.
func (e *encoder) opensWake() { e.txn.First("wake", []txn.Key{e.txn.Key(e.keys.Wake, txn.List)}) }

func (e *encoder) indexKey(index *ScoreIndex) txn.Key {
	if index.written == required {
		return e.txn.Must(index.Key(e.keys), txn.ZSet)
	}
	return e.txn.Key(index.Key(e.keys), txn.ZSet)
}

// add encodes an item.
func (e *encoder) add(item *Item) {
	if item.Transition != nil {
		e.change(item)
		return
	}
	i := e.txn.Item(item.UID, false)
	message := e.checkMessage(i, item)
	i.Unrefused(int(CodeConflict))
	if reason := item.rejected(e.batch.Now); reason != "" {
		rejected := e.txn.Key(e.keys.Rejected, txn.List)
		if e.rejects == 0 {
			e.rejects = e.txn.Group("RPUSH", rejected)
		}
		i.Add(e.rejects, i.Put(reason))
		i.Last("LTRIM", rejected, strconv.Itoa(-e.config.RejectedCap), "-1")
	}
	e.writeMessage(i, item, message)
	e.count(i, item.Counter)
	i.End()
}

// messageValues are the numbers of the values that are the claimed message of an item and the id of its command.
type messageValues struct{ entry, id int }

// checkMessage refuses the item unless its message is claimed, and is no command that was handled before.
func (e *encoder) checkMessage(i *txn.Item, item *Item) (m messageValues) {
	if item.Message.Entry != "" {
		m.entry = i.Put(item.Message.Entry)
		claimed := e.txn.Asked(e.claimed, txn.List)
		e.txn.First("claim", []txn.Key{claimed, e.txn.Asked(e.keys.Heard, txn.Hash)}, e.batch.Owner)
		if item.Message.FromControl() {
			e.txn.First("commands", []txn.Key{e.txn.Asked(e.keys.ClaimedCommands, txn.List), e.txn.Asked(e.keys.Leader, txn.String)}, e.batch.Owner)
		}
		i.Unless(int(CodeGone), int(CodeBlocked), "gone").Value(m.entry).Key(claimed)
	}
	if item.CommandID != "" {
		m.id = i.Put(item.CommandID)
		forgotten := e.batch.Now.Add(-24*time.Hour).UnixMilli() + 1
		i.Below(int(CodeDuplicate), int(CodeBlocked), "ZSCORE", i.Put(strconv.FormatInt(forgotten, 10))).
			Key(e.txn.Key(e.keys.Commands, txn.ZSet)).Value(m.id)
	}
	return m
}

// writeMessage settles the message, and answers the sender of a command.
func (e *encoder) writeMessage(i *txn.Item, item *Item, m messageValues) {
	if m.id != 0 {
		commands := e.txn.Key(e.keys.Commands, txn.ZSet)
		i.Do("ZADD").Key(commands).Text(e.ms).Value(m.id)
		i.Last("forget", commands)
	}
	if item.Reply.Text != "" {
		reply := i.Own(e.keys.Reply(item.Reply.Name), txn.List)
		i.Do("keep").Text("RPUSH").Key(reply).Value(i.Put(item.Reply.Text)).Text("1000", "86400")
	}
	if m.entry != 0 {
		i.Do("settle").Value(m.entry)
	}
}

// count counts the item.
func (e *encoder) count(i *txn.Item, counters ...string) {
	for _, name := range counters {
		if name != "" {
			i.Count("HINCRBY", e.txn.Key(e.keys.Stats, txn.Hash), name)
		}
	}
}

// standing has the memberships of a model: its score in each of the ScoreIndexes in Unix ms, 0 for none, and its blocker and slots.
type standing struct {
	scores   [len(ScoreIndexes)]int64
	deadline int64

	blocker model.Blocker
	counted string
	errorID string
}

func standingOf(s *model.State) (is standing) {
	for n := range ScoreIndexes {
		is.scores[n] = score(ScoreIndexes[n].Score(s))
	}
	is.deadline, is.blocker, is.counted, is.errorID = score(s.DeadlineAt), s.ParkedBy, s.Counted, s.FingerprintID
	return is
}

// at is the score in one of the ScoreIndexes.
func (s *standing) at(name string) int64 {
	return s.scores[slices.IndexFunc(ScoreIndexes[:], func(index ScoreIndex) bool { return index.Name == name })]
}

func score(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}
