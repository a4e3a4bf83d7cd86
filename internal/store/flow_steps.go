package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// writeKeys writes the slots that a start takes, or a model reserves.
func (s *steps) writeKeys() {
	d := &s.t.decision
	expires := redis.Millis(d.Next.ExpiresAt())
	if s.behind != "" {
		s.Unless(int(CodeConflict), 0, "refused").Value(s.Put(s.behind))
		s.Help("take").Value(s.Put(string(s.was.blocker)))
	}
	for _, take := range d.Acquires {
		limit := s.Own(s.keys.Limit(take.Name), txn.ZSet)
		if take.Limit != 0 {
			s.Below(int(CodeLimited), int(CodeBlocked), "ZCARD", s.Put(strconv.Itoa(take.Limit))).Key(limit)
		} else {
			s.Unless(int(CodeBlocked), int(CodeBlocked), "wrong_type").Key(limit)
		}
		if expires != "" {
			s.Do("ZADD").Key(limit).Value(s.Put(expires), txn.Subject)
		}
		if take.After != (model.Slots{}) {
			rate, lasts := s.Own(s.keys.Rate(take.Name), txn.String), max(1, take.After.Last().Sub(s.batch.Now).Milliseconds()+1)
			s.Equal(int(CodeLimited), int(CodeBlocked), "GET", s.Put(take.Before.String())).Key(rate)
			s.Do("SET").Key(rate).Value(s.Put(take.After.String())).Text("PX").Value(s.Put(strconv.FormatInt(lasts, 10)))
		}
	}
	if d.Event != model.EventStart {
		return
	}
	for _, name := range model.CountedBy(d.Next.Counted, model.BlockerCircuit) {
		circuit := s.Own(s.keys.Circuit(name), txn.Hash)
		if !d.Probe { // an attempt that has ended meanwhile, perhaps in this batch, may have opened it
			s.Equal(int(CodeConflict), int(CodeBlocked), "HGET", s.Put("")).Key(circuit).Text("opened_at")
			continue
		}
		s.Unless(int(CodeLimited), int(CodeBlocked), "probed").Key(circuit, s.txn.Must(s.keys.Running, txn.ZSet))
		s.Do("HSET").Key(circuit).Text("probe").Value(txn.Subject)
	}
}

// writeReleases writes what an attempt gives back of keys: when it ends all of them, and while it goes on it holds them for as long as it may take.
func (s *steps) writeReleases() {
	if s.was.counted == "" || s.is.counted != "" && !s.all && s.is.deadline == s.was.deadline {
		return
	}
	goesOn, rates := model.CountedBy(s.is.counted, model.BlockerLimit), []string{}
	for _, name := range model.CountedBy(s.was.counted, model.BlockerLimit) {
		limit := s.Own(s.keys.Limit(name), txn.ZSet)
		if slices.Contains(goesOn, name) {
			s.Help("ZADD").Key(limit).Value(s.Put(strconv.FormatInt(s.is.deadline, 10)), txn.Subject)
			continue
		}
		s.opensWake()
		s.Help("free").Key(s.txn.Key(s.keys.Blockers, txn.ZSet)).Value(s.Put(string(model.NewBlocker(model.BlockerLimit, name))))
		s.Help("ZREM").Key(limit).Value(txn.Subject)
		rates = append(rates, name)
	}
	if s.is.counted != "" {
		return
	}
	if until := s.t.decision.ClosedUntil; len(rates) > 0 && until.After(s.batch.Now) {
		by := s.t.uid
		if kind := s.t.decision.Ended.ErrorType; kind != "" {
			by += " (" + document.Shorten(kind, document.MaxFound) + ")"
		}
		number := s.Put(strconv.FormatInt(until.UnixMicro(), 10) + " " + by)
		for _, name := range rates {
			s.Do("close").Key(s.Own(s.keys.Rate(name), txn.String)).Value(number)
		}
	}
	for _, name := range model.CountedBy(s.was.counted, model.BlockerCircuit) {
		s.countForCircuit(name)
	}
}

// countForCircuit writes what the end of an attempt means to the circuit of its key.
func (s *steps) countForCircuit(name string) {
	circuit := policy.Circuit{Failures: 1, Of: 1, Probe: time.Minute} // of a policy that has none any more; its outcome counts for nothing
	if s.t.circuit != nil {
		circuit = *s.t.circuit
	}
	d, probe := &s.t.decision, circuit.Probe
	if d.CircuitOutcome == model.CircuitUnsettled { // until its worker wants to go on, nobody else tries
		probe = min(probe, max(0, d.Next.NotBefore.Sub(s.batch.Now)))
	}
	at := s.batch.Now.Add(probe)
	outbox := s.opensStreams()
	s.opensWake()
	s.Do("count").Key(s.Own(s.keys.Circuit(name), txn.Hash), s.txn.Key(s.keys.Blockers, txn.ZSet)).
		Value(s.Put(string(model.NewBlocker(model.BlockerCircuit, name))), s.Put(name)).
		Text(string(d.CircuitOutcome), strconv.Itoa(circuit.Failures), strconv.Itoa(circuit.Of)).
		Value(s.Put(model.FormatTime(at)), s.Put(redis.Millis(at))).Key(outbox)
}

// writeBlockers writes which blocker parks the model, and when a dispatcher is to check it, now if nobody knows; and which one does no more.
func (s *steps) writeBlockers() {
	if s.was.blocker != "" && s.was.blocker != s.is.blocker {
		s.Help("ZREM").Key(s.Own(s.keys.ParkedBy(string(s.was.blocker)), txn.ZSet)).Value(txn.Subject)
	}
	parked := s.is.at("parked")
	if parked == 0 || s.was.blocker == s.is.blocker && !s.all {
		return
	}
	waiting := s.Own(s.keys.ParkedBy(string(s.is.blocker)), txn.ZSet) // of the item: there are as many as keys of limits
	s.Unless(int(CodeBlocked), int(CodeBlocked), "wrong_type").Key(waiting)
	recheck := cmp.Or(redis.Millis(s.t.decision.Recheck), redis.Millis(s.batch.Now), "0")
	s.Do("wait").Key(waiting).Value(s.Put(strconv.FormatInt(parked, 10)), s.Put(recheck), s.Put(string(s.is.blocker))).
		Key(s.txn.Key(s.keys.Blockers, txn.ZSet))
}

// labelFields sets which fields of the hash hold other labels than before.
func (s *steps) labelFields() {
	before, after := s.t.wasLabels, s.t.isLabels
	if maps.Equal(before, after) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			s.field(labelPrefix+name, after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			s.del.Text(labelPrefix + name)
			s.gone = append(s.gone, labelPrefix+name)
		}
	}
}

// writeLabels writes which sets of labels the model joins and leaves.
func (s *steps) writeLabels() {
	if !s.all && maps.Equal(s.t.wasLabels, s.t.isLabels) {
		return
	}
	were, are := model.LabelTerms(s.t.wasLabels), model.LabelTerms(s.t.isLabels)
	for _, term := range are {
		if s.all || !slices.Contains(were, term) {
			s.Help("SADD").Key(s.Own(s.keys.Label(term), txn.Set)).Value(txn.Subject)
		}
	}
	if s.t.stray != "" {
		were = append(were, s.t.stray)
	}
	for _, term := range were {
		if !slices.Contains(are, term) {
			s.Help("SREM").Key(s.Own(s.keys.Label(term), txn.Set)).Value(txn.Subject)
		}
	}
}
