package store

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
)

// steps encodes one transition: its conditions and its writes.
type steps struct {
	*encoder
	*txn.Item
	t         *Transition
	was, is   standing
	all       bool   // what does not change is written too: whatever is believed of the indexes
	behind    string // see Item.Behind
	model     txn.Key
	set, del  txn.Words // of its hash: fields and values, fields that go
	drawn     txn.Words // what hash and journal get from a verb
	entry     txn.Words // of the journal
	fields    txn.Words // that both have, with values of the item from one on
	first     int
	now, gone []string // fields that the journal lists as set to the instant of the batch, or as removed
}

// change encodes an item that changes a model.
func (e *encoder) change(item *Item) {
	t := item.Transition
	s := &e.steps
	*s = steps{
		encoder: e, Item: e.txn.Item(t.uid, true), t: t, was: t.was, all: t.removes() || t.decision.Event == model.EventMend,
		behind: item.Behind,
		set:    s.set[:0], del: s.del[:0], drawn: s.drawn[:0], entry: s.entry[:0], fields: s.fields[:0], now: s.now[:0], gone: s.gone[:0],
	}
	if !t.removes() {
		s.is = standingOf(&t.decision.Next)
	}
	s.model = s.Own(e.keys.Model(t.uid), txn.Hash)
	message := e.checkMessage(s.Item, item)
	s.compare()
	s.checkInput()
	s.draw()
	s.writeHash()
	s.writeIndexes()
	s.writeHistory()
	s.writeKeys()
	s.writeLabels()
	s.writeBlockers()
	s.writeReleases()
	s.writePolicy()
	s.notify()
	s.writeLog()
	e.writeMessage(s.Item, item, message)
	s.writeInput()
	s.writeJournal()
	s.writeDeed()
	if t.decision.NotifiesDispatcher(e.batch.Now) {
		e.opensWake()
		s.Last("call", "")
	}
	e.count(s.Item, t.decision.Counters(t.queueCircuit, e.batch.Now)...)
	s.End()
}

func (s *steps) sorts() (fails, recovers bool) {
	fails = s.is.errorID != "" && (s.is.errorID != s.was.errorID || s.t.decision.Fingerprint != "")
	return fails, s.is.errorID == "" && s.was.errorID != ""
}

// compare refuses the transition if the model has changed since it was read, or a hold where it starts or parks.
func (s *steps) compare() {
	rev, attempt := s.Put(s.t.rev), 0
	if s.t.attemptUID != "" {
		attempt = s.Put(s.t.attemptUID)
	}
	s.Unrefused(int(CodeConflict))
	w := s.Equal(int(CodeConflict), int(CodeBroken), "HMGET", rev, attempt).Key(s.model).Text(fieldRev, fieldAttemptUID)
	if fails, recovers := s.sorts(); fails || recovers {
		w.Text(FieldError)
	}
	if event := s.t.decision.Event; event == model.EventStart || event == model.EventParked {
		holds := s.txn.Asked(s.keys.Holds, txn.Hash)
		s.txn.First("holds", []txn.Key{holds}, HoldChanges)
		moved := s.Unless(int(CodeConflict), int(CodeBlocked), "moved")
		if count := s.batch.HoldChanges; strings.Trim(count, "0123456789") == "" {
			moved.Text(count)
		} else { // somebody has set another text
			moved.Value(s.Put(count))
		}
		moved.Key(holds)
	}
}

// checkInput refuses the transition if the entry that must be queued is not, or if there is no room for one.
func (s *steps) checkInput() {
	push, back := s.t.decision.Message != "", s.t.TakeBack != ""
	if back && (s.t.decision.Event == model.EventWithdrawn || s.t.decision.MustBeQueued) {
		s.Unless(int(CodeTaken), int(CodeBlocked), "taken").Value(s.Put(s.t.TakeBack))
	}
	if push && !back {
		s.Unless(int(CodeFull), int(CodeBlocked), "full")
	}
}

// writeInput pushes an entry, takes one back, or lets it take the place of another.
func (s *steps) writeInput() {
	push, back := s.t.decision.Message, s.t.TakeBack
	if push == "" && back == "" {
		return
	}
	input := s.opensInput()
	switch {
	case back == "":
		s.Do("push").Value(s.Put(push)).Key(input)
	case push == "":
		s.Do("take_back").Value(s.Put(back)).Key(input)
	default:
		s.Do("replace").Value(s.Put(back), s.Put(push)).Key(input)
	}
}

// draw draws the ticket of a start, or the fingerprint of a failure, which it counts.
func (s *steps) draw() {
	if s.t.decision.Event == model.EventStart {
		s.txn.First("tickets", []txn.Key{s.txn.Asked(s.keys.Stats, txn.Hash)})
		s.Do("ticket")
		s.drawn.Text(fieldTicket).Drawn()
		return
	}
	fails, recovers := s.sorts()
	if !fails && !recovers {
		return
	}
	s.txn.First("errors", []txn.Key{s.txn.Key(s.keys.Errors, txn.ZSet), s.txn.Key(s.keys.PastErrors, txn.ZSet)})
	was := s.Own(s.keys.Error(s.was.errorID), txn.Hash)
	if recovers {
		s.Do("recover").Key(was)
		return
	}
	outbox := s.opensStreams()
	reason, errorType := "", ""
	if ended := s.t.decision.Ended; ended != nil {
		reason, errorType = ended.Reason, ended.ErrorType
	}
	is, other := s.Own(s.keys.Error(s.is.errorID), txn.Hash), s.Own(s.keys.Error(fingerprint.Other), txn.Hash)
	s.Do("fail").Key(was, is, other).Value(s.Put(s.is.errorID)).Text(strconv.Itoa(s.config.NewErrorAbove)).
		Value(s.Put(string(s.t.decision.Fingerprint)), s.Put(reason), s.Put(errorType)).Key(outbox)
	s.drawn.Text(FieldError).Drawn()
}

// compareFields collects the changes of the hash, and their journal entry.
func (s *steps) compareFields() {
	if s.t.newRev != "" {
		s.set.Text(fieldRev).Value(s.Put(s.t.newRev))
	}
	if !s.t.removes() {
		s.labelFields()
	}
	for i, value := range s.t.after {
		switch name := fieldNames[i]; {
		case value == s.t.before[i] || value != "" && name == FieldError: // the script decides it
		case value == "":
			s.del.Text(name)
			if s.t.decision.Next.Running() || !isOfAttempt[i] { // else it goes with attempt_uid
				s.gone = append(s.gone, name)
			}
		case value == s.instant:
			s.now = append(s.now, name)
		default:
			s.field(name, value)
		}
	}
	if s.first != 0 {
		s.Fields(s.first, s.fields)
		s.set.Fields()
		s.entry.Fields()
	}
	for _, name := range s.now {
		s.set.Text(name, s.instant)
	}
	if len(s.now) > 0 {
		s.entry.Text("now").Join(s.now)
	}
	if len(s.gone) > 0 {
		s.entry.Text("gone").Join(s.gone)
	}
	s.set.Add(s.drawn)
	s.entry.Add(s.drawn)
}

// writeHash writes the hash and the payload, or removes all keys of the model.
func (s *steps) writeHash() {
	s.compareFields()
	if s.t.removes() {
		own := []txn.Key{s.model, s.Own(s.keys.History(s.t.uid), txn.List), s.Own(s.keys.Payload(s.t.uid), txn.String)}
		s.checkRemains(own)
		s.Do("DEL").Key(own...)
	}
	if len(s.set) > 0 {
		s.Do("HSET").Key(s.model).Add(s.set)
	}
	if len(s.del) > 0 {
		s.Do("HDEL").Key(s.model).Add(s.del)
	}
	for others := range slices.Chunk(s.t.others, 900) {
		w := s.Do("HDEL").Key(s.model)
		for _, name := range others {
			w.Value(s.Put(name))
		}
	}
	if s.t.payload != "" {
		s.Do("SET").Key(s.Own(s.keys.Payload(s.t.uid), txn.String)).Value(s.Put(s.t.payload))
	}
}

// field sets a field, also in the journal entry.
func (s *steps) field(name, value string) {
	number := s.Put(value)
	s.first = cmp.Or(s.first, number)
	s.fields.Text(name)
}

// writeJournal adds the entry of the transition.
func (s *steps) writeJournal() {
	entry, journaled := s.t.decision.Journal(s.t.uid, s.batch.Now)
	if !journaled || s.config.JournalCap <= 0 || !s.journalsCreate && s.t.creates() {
		return
	}
	journal := s.txn.Key(s.keys.Journal, txn.Stream)
	w := s.Help("XADD").Key(journal).Text("*", "event", string(entry.Event), "uid").Value(txn.Subject).Text("at", s.instant)
	note := func(name, value string) {
		if value != "" {
			w.Text(name).Value(s.Put(value))
		}
	}
	c := codec{set: note}
	c.notes(&entry)
	if s.t.newRev != "" && (s.t.before.of(fieldHeardAt) != "" || redis.ParseInt(s.t.newRev) != redis.ParseInt(s.t.rev)+1) { // signs have counted too
		note(fieldRev, s.t.newRev)
	}
	if s.t.after != nil && s.t.after.of(fieldWhy) == s.t.before.of(fieldWhy) {
		note(fieldWhy, s.t.after.of(fieldWhy))
	}
	w.Add(s.entry)
	s.Last("XTRIM", journal, "MAXLEN", "~", s.journalCap)
}

// writeIndexes writes in which sorted sets the model is a member from now on.
func (s *steps) writeIndexes() {
	for n := range ScoreIndexes {
		index, score := &ScoreIndexes[n], s.is.scores[n]
		ended := index.written == atEnd && score != 0 && s.t.decision.Ended != nil
		if index.written < always && !ended && !s.all && score == s.was.scores[n] {
			continue
		}
		group, command := &s.joins[n], "ZADD"
		if score == 0 {
			group, command = &s.leaves[n], "ZREM"
		}
		if *group == 0 {
			*group = s.txn.Group(command, s.indexKey(index))
		}
		switch {
		case score == 0:
			s.Try(*group, txn.Subject)
		case index.written >= always:
			s.Add(*group, s.Put(strconv.FormatInt(score, 10)), txn.Subject)
		default:
			s.Try(*group, s.Put(strconv.FormatInt(score, 10)), txn.Subject)
		}
	}
}

// checkRemains refuses to remove an orphan that has no keys left.
func (s *steps) checkRemains(own []txn.Key) {
	if s.t.rev != "" || s.t.stray != "" {
		return
	}
	w := s.Unless(int(CodeConflict), int(CodeBlocked), "nothing").Key(own...)
	for n := range ScoreIndexes {
		w.Key(s.indexKey(&ScoreIndexes[n]))
	}
	if s.was.blocker != "" {
		w.Key(s.Own(s.keys.ParkedBy(string(s.was.blocker)), txn.ZSet))
	}
	for _, name := range model.CountedBy(s.was.counted, model.BlockerLimit) {
		w.Key(s.Own(s.keys.Limit(name), txn.ZSet))
	}
}

// writeHistory adds the attempt that has ended, or all that an import brings.
func (s *steps) writeHistory() {
	d, most := &s.t.decision, max(0, s.config.HistoryCap)
	if s.t.removes() || most == 0 && d.Past == nil || d.Ended == nil && d.Past == nil {
		return
	}
	history := s.Own(s.keys.History(s.t.uid), txn.List)
	if d.Ended != nil && most > 0 {
		if entry := s.Put(d.Ended.Entry()); d.Replaces || d.Ended.Times > 1 {
			s.Do("keep_instead").Key(history).Value(entry).Text(strconv.Itoa(most))
		} else {
			s.Do("keep").Text("LPUSH").Key(history).Value(entry).Text(strconv.Itoa(most))
		}
	}
	if d.Past == nil {
		return
	}
	s.Do("DEL").Key(history)
	past := slices.Clone(d.Past[:min(len(d.Past), most)])
	slices.Reverse(past)
	for entries := range slices.Chunk(past, 900) {
		w := s.Do("LPUSH").Key(history)
		for _, entry := range entries {
			w.Value(s.Put(entry))
		}
	}
}

// writePolicy stores the policy of a definition, and when a model was saved with it.
func (s *steps) writePolicy() {
	if s.t.policy != nil {
		name := s.Put(s.t.policy[0])
		s.Do("HSETNX").Key(s.txn.Key(s.keys.Policies, txn.Hash)).Value(name, s.Put(s.t.policy[1]))
		s.Help("HSET").Key(s.txn.Key(s.keys.PolicyUses, txn.Hash)).Value(name).Text("? " + s.ms)
	}
}

// notify adds the entries of <queue>:outbox: of each its fields in order.
func (s *steps) notify() {
	for _, n := range s.t.decision.Notifications(s.t.uid, s.batch.Now) {
		w := s.Do("XADD").Key(s.txn.Key(s.keys.Outbox, txn.Stream)).Text("*", "event", string(n.Notice), "uid").Value(txn.Subject)
		w.Text("at").Value(s.Put(model.FormatTime(n.At))).Text("attempt_no").Value(s.Put(strconv.Itoa(n.AttemptNo)))
		switch {
		case n.Notice == policy.NoticeDisabled, n.Notice == policy.NoticeSuspect, n.Notice == policy.NoticeFailing:
			w.Text("reason").Value(s.Put(n.Reason)).Text("refresh_why").Value(s.Put(n.Why))
			if n.Notice == policy.NoticeFailing && n.ErrorType != "" {
				w.Text("error_type").Value(s.Put(n.ErrorType))
			}
		case !n.LastSuccessAt.IsZero():
			w.Text("last_success_at").Value(s.Put(model.FormatTime(n.LastSuccessAt)))
		}
	}
}

// writeLog keeps the log of the attempt that has ended.
func (s *steps) writeLog() {
	if ended := s.t.decision.Ended; s.t.decision.Log != "" && ended != nil {
		entry := model.Log{UID: s.t.uid, AttemptUID: ended.AttemptUID, At: model.FormatTime(ended.EndedAt), Text: s.t.decision.Log}
		s.Do("keep").Text("RPUSH").Key(s.Own(s.keys.Logs, txn.List)).Value(s.Put(entry.Entry())).Text(strconv.Itoa(s.config.LogCap))
	}
}
