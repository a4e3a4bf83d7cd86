package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
)

// Transition is one decided change of one model, with what must still hold when it is committed.
type Transition struct {
	uid, rev, attemptUID string // as read
	decision             model.Decision
	queueCircuit         model.QueueCircuit
	newRev               string   // empty: it stays
	before, after        values   // of the fields of the hash; nil: they stay
	others               []string // fields of the hash that go
	payload              string   // empty: it stays
	policy               []string // name and text of the policy of the definition; nil: it has none of its own
	was                  indexed
	circuit              *policy.Circuit // in force
	wasLabels, isLabels  map[string]string

	// TakeBack is the entry of the attempt that loses its fence, or is changed. If it stands in the input list it is removed, or gives
	// its place to the changed one. Empty: none.
	TakeBack string
}

// Event is what the transition is called in the journal.
func (t *Transition) Event() model.Event { return t.decision.Event }

// UID is the model that the transition is about.
func (t *Transition) UID() string { return t.uid }

// AttemptUID is the attempt that was running when the transition was decided; empty: none.
func (t *Transition) AttemptUID() string { return t.attemptUID }

// Decision is what was decided. It must not be changed.
func (t *Transition) Decision() *model.Decision { return &t.decision }

// Was is what was so of a model before a transition, as far as it can be read.
type Was struct {
	RefreshAt, ProcessingAt time.Time
	Parked, Traced          bool
}

// Was tells what was so before, for those who measure.
func (t *Transition) Was() (w Was) {
	c := codec{get: t.before.of}
	c.time(fieldRefreshAt, &w.RefreshAt)
	c.time("processing_at", &w.ProcessingAt)
	c.flag("traced", &w.Traced)
	w.Parked = t.was.parked != 0
	return w
}

// Attempt is the attempt that a transition at now has started, changed or ended; without a uid: none.
func (t *Transition) Attempt(now time.Time) model.Attempt {
	next := &t.decision.Next
	if t.decision.Ended != nil {
		return *t.decision.Ended
	}
	running, ended := next, time.Time{}
	if !next.Running() && t.attemptUID != "" { // it ends without a record of it
		before := decode(t.uid, t.before)
		running, ended = &before.State, now
	}
	return model.Attempt{
		AttemptUID: running.AttemptUID, AttemptNo: running.AttemptNo, StartedAt: running.StartedAt, EndedAt: ended,
		DeadlineAt: running.DeadlineAt, Worker: running.Worker,
	}
}

// encode encodes the transition for commit.lua; the journal may be told of a create or not.
func (t *Transition) encode(e *encoder, item *Item, now time.Time, config *Config, k *Keys, tellsCreates bool) {
	next, event := &t.decision.Next, t.decision.Event
	scores := next.Scores()
	e.values = append(e.values, t.uid)
	item.message(e)
	e.addAny("rev", t.rev)
	e.add("attempt", t.attemptUID)
	e.add("push", t.decision.Message)
	e.add("back", t.TakeBack)
	e.flag("must", event == model.EventWithdrawn || t.decision.MustBeQueued)
	e.addList("policy", t.policy...)
	e.addList("unknown", t.others...)
	e.add("due", Millis(scores.Due))
	e.add("urgent", Millis(scores.Urgent))
	e.add("running", Millis(next.ExpiresAt()))
	e.add("payload", t.payload)
	if t.decision.Ended != nil && config.HistoryCap > 0 {
		e.add("history", t.decision.Ended.Entry())
	}
	e.flag("instead", t.decision.Replaces || t.decision.Ended != nil && t.decision.Ended.Times > 1)
	if past := t.decision.Past; past != nil {
		past = slices.Clone(past[:min(len(past), max(0, config.HistoryCap))])
		slices.Reverse(past)
		e.addEach("attempts", past)
	}
	e.addNotifications(t, now)
	e.count("keys", item.keys(config))
	t.encodeChanges(e, k, now, config)
	e.addLog(t, k, config.LogCap)
	e.flag("remove", t.removes())
	e.flag("ticket", event == model.EventStart)
	e.flag("fenced", event == model.EventStart || event == model.EventParked)
	e.flag("wake", t.decision.NotifiesDispatcher(now))
	for _, name := range t.decision.Counters(t.queueCircuit, now) {
		e.word("count=", name)
	}
	e.add("next", t.newRev)
	entry, journaled := t.decision.Journal(t.uid, now)
	if journaled && config.JournalCap > 0 && (tellsCreates || !t.creates()) {
		e.word("event=", string(entry.Event))
		c := codec{set: func(name, value string) { e.add("note="+name, value) }}
		c.notes(&entry)
		if t.newRev != "" && (parseInt(t.newRev) != parseInt(t.rev)+1 || t.before.of(fieldHeardAt) != "") { // signs have counted too
			e.add("note="+fieldRev, t.newRev)
		}
		if t.after != nil && t.after.of(fieldWhy) == t.before.of(fieldWhy) {
			e.add("note="+fieldWhy, t.after.of(fieldWhy))
		}
	}
	e.addFields(t, model.FormatTime(now))
}

// addFields adds what turns the hash that was read into the one that follows.
func (e *encoder) addFields(t *Transition, now string) {
	if t.after != nil && len(t.wasLabels)+len(t.isLabels) > 0 { // otherwise the hash stays as it is, or goes
		e.addLabels(t.wasLabels, t.isLabels)
	}
	for i, value := range t.after {
		switch name := fieldNames[i]; {
		case value == t.before[i] || value != "" && name == FieldError: // the script decides it
		case value == "" && isOfAttempt[name] && !t.decision.Next.Running(): // it goes with attempt_uid
			e.word("left=", name)
		case value == "":
			e.word("gone=", name)
		case value == now:
			e.word("now=", name)
		default:
			e.word("$field=", name)
			e.values = append(e.values, value)
		}
	}
}

// creates reports whether there was no such model before.
func (t *Transition) creates() bool {
	return t.decision.Event == model.EventCreate || t.decision.Event == model.EventImport && t.rev == ""
}

// removes reports whether the model goes.
func (t *Transition) removes() bool {
	return t.decision.Event == model.EventRemove || t.decision.Event == model.EventOrphan
}

// Revise gives the model a revision, for one that has none.
func (t *Transition) Revise(now time.Time) { t.newRev = Millis(now) }

// indexed is what the indexes say of a model: of each the score in Unix ms, 0 where it does not stand, and what it waits for and holds.
type indexed struct {
	failing, disabled, parked, freshness, late, stale, deadline int64

	gate    model.Blocker
	counted string
	errorID string
}

func indexedAs(s *model.State) indexed {
	at := s.Scores()
	return indexed{
		score(s.FailingSince), score(at.Disabled), score(at.Parked), score(at.StaleAt), score(at.Late), score(at.Stale), score(s.DeadlineAt),
		s.ParkedBy, s.Counted, s.FingerprintID,
	}
}

func score(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// encodeChanges encodes in which indexes the model stands from now on, and what it takes and gives back of keys. Of most transitions there
// is nothing.
func (t *Transition) encodeChanges(e *encoder, k *Keys, now time.Time, config *Config) {
	c := indexChanges{encoder: e, transition: t, queue: k, now: now, was: t.was}
	if !t.removes() {
		c.is = indexedAs(&t.decision.Next)
	}
	c.all = t.removes() || t.decision.Event == model.EventMend
	was, is := &c.was, &c.is
	c.addScore("failing", was.failing, is.failing, t.decision.Ended != nil && is.failing != 0) // also an old one: a release that knew no index has forgotten it
	c.addScore("disabled", was.disabled, is.disabled, false)
	c.addScore("parked", was.parked, is.parked, was.gate != is.gate)
	c.addScore("stale_at", was.freshness, is.freshness, false)
	c.addScore("late", was.late, is.late, false)
	c.addScore("stale", was.stale, is.stale, false)
	c.addAcquires()
	c.addLabelSets()
	c.addBlockers()
	if was.counted != "" && (is.counted == "" || c.all || is.deadline != was.deadline) {
		c.addReleases()
	}
	c.addFingerprint(config.NewErrorAbove)
}

// addLog adds what the attempt that has ended has said, and how many logs are kept.
func (e *encoder) addLog(t *Transition, k *Keys, most int) {
	if ended := t.decision.Ended; t.decision.Log != "" && ended != nil {
		entry := model.Log{UID: t.uid, AttemptUID: ended.AttemptUID, At: model.FormatTime(ended.EndedAt), Text: t.decision.Log}
		e.addList("log#1", entry.Entry(), strconv.Itoa(most))
		e.addKeys(k.Logs)
	}
}

// indexChanges encodes what only a part of the models has.
type indexChanges struct {
	*encoder
	transition *Transition
	queue      *Keys
	now        time.Time
	was, is    indexed
	all        bool // also what does not change: whatever is believed of the indexes
}

// addScore adds a score in an index if it changes, or anyway; of 0 that the model leaves it.
func (c *indexChanges) addScore(word string, was, is int64, anyway bool) {
	switch {
	case was == is && !anyway && !c.all:
	case is == 0:
		c.addAny(word, "")
	default:
		c.addAny(word, strconv.FormatInt(is, 10))
	}
}

// addBlockers adds which blocker parks the model, and when a dispatcher is to look at it, now if nobody knows; and which one does no more.
func (c *indexChanges) addBlockers() {
	if c.was.gate != "" && c.was.gate != c.is.gate {
		c.count("unblocks", 1)
		c.addKeys(c.queue.ParkedBy(string(c.was.gate)))
	}
	if c.is.parked != 0 && (c.was.gate != c.is.gate || c.all) {
		c.add("blocker#1", string(c.is.gate))
		c.add("recheck", cmp.Or(Millis(c.transition.decision.Recheck), Millis(c.now), "0"))
		c.addKeys(c.queue.ParkedBy(string(c.is.gate)))
	}
}

// addAcquires adds what a start takes of keys, or a model reserves.
func (c *indexChanges) addAcquires() {
	d := &c.transition.decision
	var acquires []string
	for _, take := range d.Acquires {
		before, after, lasts := "", "", ""
		if take.After != (model.Slots{}) {
			before, after = take.Before.String(), take.After.String()
			lasts = strconv.FormatInt(max(1, take.After.Last().Sub(c.now).Milliseconds()+1), 10)
		}
		acquires = append(acquires, number(take.Limit), before, after, lasts)
		c.addKeys(c.queue.Limit(take.Name), c.queue.Rate(take.Name))
	}
	if acquires != nil {
		c.addEach("acquires#"+strconv.Itoa(2*len(d.Acquires)), acquires)
	}
	if d.Probe {
		c.count("probe", 1)
		c.addKeys(c.queue.Circuit(model.CountedBy(d.Next.Counted, model.BlockerCircuit)[0]))
	}
}

// addReleases adds what an attempt gives back of keys: when it ends all of them, and while it goes on it holds them for as long as it may take.
func (c *indexChanges) addReleases() {
	goesOn := model.CountedBy(c.is.counted, model.BlockerLimit)
	var blockers, frees, extends, rates []string
	for _, name := range model.CountedBy(c.was.counted, model.BlockerLimit) {
		if slices.Contains(goesOn, name) {
			extends = append(extends, c.queue.Limit(name))
			continue
		}
		blockers, frees = append(blockers, string(model.NewBlocker(model.BlockerLimit, name))), append(frees, c.queue.Limit(name))
		rates = append(rates, c.queue.Rate(name))
	}
	if len(frees) > 0 {
		c.addEach("frees#"+strconv.Itoa(len(frees)), blockers)
		c.addKeys(frees...)
	}
	if len(extends) > 0 {
		c.add("extends#"+strconv.Itoa(len(extends)), strconv.FormatInt(c.is.deadline, 10))
		c.addKeys(extends...)
	}
	if c.is.counted != "" {
		return
	}
	if until := c.transition.decision.ClosedUntil; len(rates) > 0 && until.After(c.now) {
		by := c.transition.uid
		if kind := c.transition.decision.Ended.ErrorType; kind != "" {
			by += " (" + document.Shorten(kind, document.MaxFound) + ")"
		}
		c.add("closes#"+strconv.Itoa(len(rates)), strconv.FormatInt(until.UnixMicro(), 10)+" "+by)
		c.addKeys(rates...)
	}
	for _, name := range model.CountedBy(c.was.counted, model.BlockerCircuit) {
		c.addCircuit(name)
	}
}

// addCircuit adds what the end of an attempt says of the circuit of its key.
func (c *indexChanges) addCircuit(name string) {
	failures, of, probe := 1, 1, time.Minute // of a policy that has none any more; its outcome counts for nothing
	if circuit := c.transition.circuit; circuit != nil {
		failures, of, probe = circuit.Failures, circuit.Of, circuit.Probe
	}
	d := &c.transition.decision
	if d.CircuitOutcome == model.CircuitUnsettled { // until its worker wants to go on, nobody else tries
		probe = min(probe, max(0, d.Next.NotBefore.Sub(c.now)))
	}
	at := c.now.Add(probe)
	c.addList("circuit#1", string(model.NewBlocker(model.BlockerCircuit, name)), name, string(d.CircuitOutcome),
		strconv.Itoa(failures), strconv.Itoa(of), model.FormatTime(at), Millis(at))
	c.addKeys(c.queue.Circuit(name))
}

// addLabelSets adds which sets of labels the model joins and leaves.
func (c *indexChanges) addLabelSets() {
	before, after := c.transition.wasLabels, c.transition.isLabels
	if len(before)+len(after) == 0 {
		return
	}
	were, are := model.LabelTerms(before), model.LabelTerms(after)
	join := slices.DeleteFunc(slices.Clone(are), func(term string) bool { return !c.all && slices.Contains(were, term) })
	leave := slices.DeleteFunc(were, func(term string) bool { return slices.Contains(are, term) })
	c.count("labels", len(join))
	c.count("unlabels", len(leave))
	for _, term := range slices.Concat(join, leave) {
		c.addKeys(c.queue.Label(term))
	}
}

// addLabels adds which fields of the hash hold other labels than before.
func (e *encoder) addLabels(before, after map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			e.add("field="+labelPrefix+name, after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			e.word("gone=", labelPrefix+name)
		}
	}
}

// addFingerprint adds by which fingerprint the model fails, once more or by another one, or that it fails by none any more. Of most
// transitions neither is so.
func (c *indexChanges) addFingerprint(ignored int) {
	was, is, d := c.was.errorID, c.is.errorID, &c.transition.decision
	switch {
	case is != "" && (is != was || d.Fingerprint != ""):
		reason, errorType := "", ""
		if ended := d.Ended; ended != nil {
			reason, errorType = ended.Reason, ended.ErrorType
		}
		c.addList("fingerprint#3", is, strconv.Itoa(ignored), string(d.Fingerprint), reason, errorType)
		c.addKeys(c.queue.Error(was), c.queue.Error(is), c.queue.Error(fingerprint.Other))
	case is == "" && was != "":
		c.count("recovers", 1)
		c.addKeys(c.queue.Error(was))
	}
}
