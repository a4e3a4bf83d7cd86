package store

import (
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
)

// encoder turns the items of a batch into lines of txn.lua.
type encoder struct {
	txn         *txn.Batch
	batch       *Batch
	config      *Config
	keys        *Keys
	instant, ms string // of the batch
	tellsCreate bool   // the journal is told of creates
	steps       steps  // of the transition in hand
}

func newEncoder(s *Store, batch *Batch) *encoder {
	creates := 0
	for i := range batch.Items {
		if t := batch.Items[i].Transition; t != nil && t.creates() {
			creates++
		}
	}
	e := &encoder{
		txn: txn.NewBatch(len(batch.Items)), batch: batch, config: &s.Config, keys: &s.Keys,
		instant: model.FormatTime(batch.Now), ms: strconv.FormatInt(batch.Now.UnixMilli(), 10), tellsCreate: creates <= maxToldCreates,
	}
	if len(batch.Items) == 0 {
		e.probe()
	}
	return e
}

// probe gives an empty batch all keys that any could have, so that Redis refuses a user who may not use them.
func (e *encoder) probe() {
	k, types := e.keys, e.keys.Types()
	for _, name := range append(k.ScoreSets(), k.Input, k.ClaimedCommands, k.Leader, k.Rejected, k.Journal, k.Outbox, k.Stats, k.Wake, k.Policies,
		k.PolicyUses, k.Commands, k.Gates, k.Holds, k.Errors, k.PastErrors) {
		e.txn.Key(name, types[name])
	}
}

// opensInput lets verbs use the input list.
func (e *encoder) opensInput(i *txn.Item) txn.Key {
	input := e.txn.Key(e.keys.Input, txn.List)
	i.First("input").Key(input).Text(strconv.Itoa(e.batch.MaxQueued))
	return input
}

// opensStreams lets verbs tell of what is about no model.
func (e *encoder) opensStreams(i *txn.Item) txn.Key {
	outbox := e.txn.Key(e.keys.Outbox, txn.Stream)
	i.First("streams").Key(e.txn.Key(e.keys.Journal, txn.Stream), outbox, e.txn.Key(e.keys.Stats, txn.Hash)).Text(strconv.Itoa(max(0, e.config.JournalCap)))
	return outbox
}

// opensWake lets verbs call a dispatcher.
func (e *encoder) opensWake(i *txn.Item) { i.First("wake").Key(e.txn.Key(e.keys.Wake, txn.List)) }

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
		i.Add("RPUSH", rejected, i.Put(reason))
		i.Last("LTRIM").Key(rejected).Text(strconv.Itoa(-e.config.RejectedCap), "-1")
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
		claimed := e.txn.Key(e.keys.Claimed(e.batch.Owner), txn.List)
		commands, leader := e.txn.Key(e.keys.ClaimedCommands, txn.List), e.txn.Key(e.keys.Leader, txn.String)
		m.entry = i.Put(item.Message.Entry)
		i.First("claim").Key(claimed, commands, leader).Text(e.batch.Owner)
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
		i.Last("forget").Key(commands)
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
			i.Last("HINCRBY").Key(e.txn.Key(e.keys.Stats, txn.Hash)).Text(name).Count()
		}
	}
}

// standing is what a model is a member of: of each of the ScoreIndexes its score in Unix ms, 0 for none, and what it waits for and holds.
type standing struct {
	scores   [len(ScoreIndexes)]int64
	deadline int64

	gate    model.Blocker
	counted string
	errorID string
}

func standingOf(s *model.State) (is standing) {
	for n := range ScoreIndexes {
		is.scores[n] = score(ScoreIndexes[n].Score(s))
	}
	is.deadline, is.gate, is.counted, is.errorID = score(s.DeadlineAt), s.ParkedBy, s.Counted, s.FingerprintID
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
