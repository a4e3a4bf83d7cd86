package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// reference is a queue in plain Go: what the scripts are to do to Redis, without Redis.
type reference struct {
	models   map[string]hash
	payloads map[string]string
	history  map[string]list
	claimed  map[string]list

	due, urgent, running, pollers    scores
	failing, disabled, parked, gates scores
	ages, late, stale                scores
	gate                             map[string]scores // models of each gate
	labels                           map[string]set    // models of each label
	input, output, control, rejected list
	lane                             list
	holder                           string
	numbered                         int64 // the last command
	journal, outbox                  events
	ids                              scores // of commands
	replies                          list
	errors, pastErrors               scores
	signature                        map[string]hash  // what is known of each
	incidents                        []map[string]any // of the batch
	stats                            map[string]int
	woken                            bool
}

func newReference() *reference {
	return &reference{
		models: map[string]hash{}, payloads: map[string]string{}, history: map[string]list{}, claimed: map[string]list{},
		due: scores{}, urgent: scores{}, running: scores{}, pollers: scores{}, stats: map[string]int{}, ids: scores{},
		failing: scores{}, disabled: scores{}, ages: scores{}, late: scores{}, stale: scores{}, parked: scores{}, gates: scores{}, gate: map[string]scores{}, labels: map[string]set{},
		errors: scores{}, pastErrors: scores{}, signature: map[string]hash{},
	}
}

// keys renders the queue as Redis holds it, where what is empty is absent.
func (r *reference) keys() keys {
	all := keys{}
	for uid, fields := range r.models {
		all[":model:"+uid] = fields
	}
	for uid, payload := range r.payloads {
		all[":payload:"+uid] = payload
	}
	lists := map[string]list{
		"-input": r.input, "-output": r.output, "-control": r.control, ":rejected": r.rejected, ":claimed:control": r.lane,
		":reply:x": r.replies,
	}
	if r.numbered > 0 {
		all[":forwarded"] = hash{"numbered": strconv.FormatInt(r.numbered, 10)}
	}
	if r.holder != "" {
		all[":holder"] = r.holder
	}
	for uid, entries := range r.history {
		lists[":history:"+uid] = entries
	}
	for owner, entries := range r.claimed {
		lists[":claimed:"+owner] = entries
	}
	if r.woken {
		lists[":wake"] = list{"1"}
	}
	addFilled(all, lists)
	addFilled(all, map[string]scores{":due": r.due, ":urgent": r.urgent, ":running": r.running, ":pollers": r.pollers, ":commands": r.ids,
		":failing": r.failing, ":disabled": r.disabled, ":parked": r.parked, ":gates": r.gates,
		":stale_at": r.ages, ":late": r.late, ":stale": r.stale, ":errors": r.errors, ":past_errors": r.pastErrors})
	for id, known := range r.signature {
		addFilled(all, map[string]hash{":error:" + id: known})
	}
	for name, models := range r.gate {
		addFilled(all, map[string]scores{":parked:" + name: models})
	}
	for term, models := range r.labels {
		addFilled(all, map[string]set{":label:" + term: models})
	}
	addFilled(all, map[string]events{":journal": r.journal, ":outbox": r.outbox})
	addFilled(all, map[string]hash{":stats": r.counters()})
	return all
}

func addFilled[T interface {
	list | scores | events | hash | set
}](all keys, values map[string]T) {
	for name, value := range values {
		if len(value) > 0 {
			all[name] = value
		}
	}
}

func (r *reference) counters() hash {
	texts := hash{}
	for name, n := range r.stats {
		texts[name] = strconv.Itoa(n)
	}
	return texts
}

func without(entries list, entry string) list {
	if at := slices.Index(entries, entry); at >= 0 {
		return slices.Delete(slices.Clone(entries), at, at+1)
	}
	return entries
}

// claim lets commands have half of the room, and what results leave over, if the lane is the owner's and empty.
func (r *reference) claim(owner string, limit int, now time.Time) list {
	at := float64(now.UnixMilli())
	r.pollers[owner] = at
	seen, known := r.pollers[r.holder]
	if silence := at - seen; !known || silence < 0 || silence >= float64(testLease.Milliseconds()) {
		r.holder = owner
	}
	var unfinished list
	if r.holder == owner {
		unfinished = r.lane
	}
	room, commands := max(0, limit-len(r.claimed[owner])-len(unfinished)), 0
	if r.holder == owner && len(r.lane) == 0 {
		commands = min(len(r.control), max(room/2, room-len(r.output)))
	}
	var taken list
	taken, r.output = take(r.output, "o", room-commands)
	r.claimed[owner] = slices.Concat(r.claimed[owner], taken)
	if r.holder != owner {
		return r.claimed[owner]
	}
	taken, r.control = take(r.control, "", commands)
	r.numbered = max(r.numbered, now.UnixMilli()*1000*int64(min(1, len(taken))))
	for i := range taken {
		r.numbered++
		taken[i] = fmt.Sprintf("n%d %s", r.numbered, taken[i])
	}
	r.lane = slices.Concat(r.lane, taken)
	return slices.Concat(r.claimed[owner], r.lane)
}

// take marks up to n messages and returns them and the rest.
func take(from list, mark string, n int) (taken, rest list) {
	n = min(n, len(from))
	for _, message := range from[:n] {
		taken = append(taken, mark+message)
	}
	return taken, from[n:]
}

// claims reports whether a message is the owner's to answer.
func (r *reference) claims(owner, entry string) bool {
	if entry[0] == 'n' {
		return r.holder == owner && slices.Contains(r.lane, entry)
	}
	return slices.Contains(r.claimed[owner], entry)
}

func (r *reference) answered(owner, entry string) {
	if entry != "" && entry[0] == 'n' {
		r.lane = without(r.lane, entry)
		return
	}
	r.claimed[owner] = without(r.claimed[owner], entry)
}

func (r *reference) adopt(expired, owner string, now time.Time, lease time.Duration, limit int) int {
	seen, known := r.pollers[expired]
	given := time.UnixMilli(int64(seen))
	if alive := given.After(now.Add(-lease)) && !given.After(now); !known || alive {
		return 0
	}
	if _, known := r.pollers[owner]; !known {
		r.pollers[owner] = float64(now.Add(-lease).UnixMilli())
	}
	moved := r.claimed[expired][:min(limit, len(r.claimed[expired]))]
	r.claimed[owner] = slices.Concat(r.claimed[owner], moved)
	if r.claimed[expired] = r.claimed[expired][len(moved):]; len(r.claimed[expired]) == 0 {
		delete(r.pollers, expired)
	}
	return len(moved)
}

func (r *reference) commit(owner string, maxQueued int, items []Item, now time.Time) (codes []Code) {
	r.incidents = nil
	refused, noted := map[string]bool{}, false
	for _, item := range items {
		var code Code
		if item.Transition == nil {
			code = r.settle(owner, item, refused[item.UID], now)
			refused[item.UID] = refused[item.UID] || code == CodeDuplicate && item.UID != ""
		} else {
			uid := item.Transition.uid
			if code = r.judge(owner, maxQueued, item, refused[uid], now); code == CodeApplied {
				r.write(owner, item, now)
			}
			refused[uid] = refused[uid] || code != CodeApplied
		}
		if codes = append(codes, code); code == CodeApplied {
			noted = r.reply(item, now) || noted
		}
	}
	for _, incident := range r.incidents {
		r.journal, r.outbox = appendEntry(r.journal, incident), appendEntry(r.outbox, incident)
	}
	maps.DeleteFunc(r.ids, func(_ string, at float64) bool { return noted && at <= dayBefore(now) })
	return codes
}

// reply tells the sender of a command what became of it, and notes its id, if it has either.
func (r *reference) reply(item Item, now time.Time) (noted bool) {
	if item.Reply.Text != "" {
		r.replies = append(slices.Clip(r.replies), item.Reply.Text)
	}
	if item.CommandID != "" {
		r.ids[item.CommandID] = float64(now.UnixMilli())
	}
	return item.CommandID != ""
}

func dayBefore(now time.Time) float64 { return float64(now.AddDate(0, 0, -1).UnixMilli()) }

// repeated reports whether a command has the id of one that was handled within a day.
func (r *reference) repeated(item Item, now time.Time) bool {
	at, known := r.ids[item.CommandID]
	return known && at > dayBefore(now)
}

func (r *reference) settle(owner string, item Item, refused bool, now time.Time) Code {
	switch {
	case !r.claims(owner, item.Message.Entry):
		return CodeGone
	case r.repeated(item, now):
		return CodeDuplicate
	case refused:
		return CodeConflict
	}
	r.answered(owner, item.Message.Entry)
	r.stats[item.Counter]++
	if entry := rejection(item, now); entry != "" {
		r.rejected = append(r.rejected, entry)
	}
	return CodeApplied
}

func (r *reference) judge(owner string, maxQueued int, item Item, refused bool, now time.Time) Code {
	t := item.Transition
	is := r.models[t.uid]
	switch {
	case item.Message.Entry != "" && !r.claims(owner, item.Message.Entry):
		return CodeGone
	case r.repeated(item, now):
		return CodeDuplicate
	case refused || is["rev"] != t.rev || is["attempt_uid"] != t.attemptUID:
		return CodeConflict
	case (t.decision.Event == model.EventWithdrawn || t.decision.MustBeQueued) && !slices.Contains(r.input, t.TakeBack):
		return CodeTaken
	case t.decision.Event == model.EventStart && len(r.input) >= maxQueued:
		return CodeFull
	default:
		return CodeApplied
	}
}

func (r *reference) write(owner string, item Item, now time.Time) {
	t := item.Transition
	o := t.occasion(r.models[t.uid], item.Message, now)
	r.sort(t, now)
	if t.decision.Event == model.EventRemove || t.decision.Event == model.EventOrphan {
		delete(r.models, t.uid)
		delete(r.payloads, t.uid)
		delete(r.history, t.uid)
	} else if t.after != nil || t.newRev != "" {
		r.change(t)
	}
	if t.decision.Event == model.EventStart {
		r.models[t.uid]["ticket"] = strconv.Itoa(r.stats["start"] + 1)
	}
	o.after = r.models[t.uid]
	next := t.decision.Next
	r.index(t, next)
	due, urgent := next.RefreshAt, time.Time{}
	if next.Disabled || next.AttemptUID != "" || next.ParkedBy != "" {
		due = time.Time{}
	} else if next.Trigger == model.TriggerHand {
		due, urgent = urgent, due
	} else if next.Trigger == model.TriggerRun {
		due, urgent = urgent, due.AddDate(0, 0, -36500)
	}
	setScore(r.due, t.uid, due)
	setScore(r.urgent, t.uid, urgent)
	setScore(r.running, t.uid, next.DeadlineAt)
	r.answered(owner, item.Message.Entry)
	switch at := slices.Index(r.input, t.TakeBack); {
	case t.decision.Event == model.EventStart:
		r.input = append(slices.Clip(r.input), t.decision.Message)
	case at >= 0 && t.decision.Message != "":
		r.input = slices.Replace(slices.Clone(r.input), at, at+1, t.decision.Message)
	case at >= 0:
		r.input = without(r.input, t.TakeBack)
	}
	r.record(t, o)
	if due = later(due, urgent); due.IsZero() {
		due = next.DeadlineAt
	}
	r.woken = r.woken || !due.IsZero() && due.Sub(now) < time.Second && t.decision.Event != model.EventStart
}

// index notes where else the model stands.
func (r *reference) index(t *Transition, next model.State) {
	fields := r.models[t.uid]
	if fields == nil {
		next = model.State{}
	}
	disabled, parked := time.Time{}, time.Time{}
	if next.Disabled {
		disabled = next.DisabledAt
	}
	for _, models := range r.gate {
		delete(models, t.uid)
	}
	if next.ParkedBy != "" {
		parked = next.RefreshAt
		gate := string(next.ParkedBy)
		if r.gate[gate] == nil {
			r.gate[gate] = scores{}
		}
		setScore(r.gate[gate], t.uid, parked)
		switch at, noted := r.gates[gate]; {
		case t.decision.Event == model.EventMend:
			r.gates[gate] = 0
		case t.decision.Event == model.EventParked && t.was.gate != next.ParkedBy && (!noted || float64(t.decision.Recheck.UnixMilli()) < at):
			setScore(r.gates, gate, t.decision.Recheck)
		}
	}
	setScore(r.failing, t.uid, next.FailingSince)
	setScore(r.disabled, t.uid, disabled)
	setScore(r.parked, t.uid, parked)
	r.watch(t.uid, next)
	for term, models := range r.labels {
		name, value, _ := strings.Cut(term, "=")
		if delete(models, t.uid); fields["label:"+name] == value {
			models[t.uid] = true
		}
	}
	for name, value := range fields {
		if label, is := strings.CutPrefix(name, "label:"); is {
			term := label + "=" + value
			if r.labels[term] == nil {
				r.labels[term] = set{}
			}
			r.labels[term][t.uid] = true
		}
	}
}

// watch notes when the freshness of the model changes, and whether it is late or stale.
func (r *reference) watch(uid string, next model.State) {
	ages, late, stale := next.StaleAt, time.Time{}, time.Time{}
	switch next.Freshness {
	case "late":
		late = next.StaleAt
	case "never":
		late = model.Never
	case "stale":
		ages, stale = stale, next.StaleAt
	}
	setScore(r.ages, uid, ages)
	setScore(r.late, uid, late)
	setScore(r.stale, uid, stale)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (r *reference) change(t *Transition) {
	fields := hash{}
	if t.after == nil {
		maps.Copy(fields, r.models[t.uid])
	}
	maps.Copy(fields, asHash(t.after))
	if t.after != nil {
		for name, value := range t.isLabels {
			fields["label:"+name] = value
		}
	}
	if fields["rev"] = t.rev; t.newRev != "" {
		fields["rev"] = t.newRev
	}
	for _, said := range []string{"user_friendly_status", "progress"} { // which a worker may have said since
		if now := r.models[t.uid][said]; t.after != nil && t.before.of(said) == t.after.of(said) && now != "" {
			fields[said] = now
		}
	}
	if ticket := r.models[t.uid]["ticket"]; ticket != "" { // a clerk that started the model does not know which it drew
		fields["ticket"] = ticket
	}
	if r.models[t.uid] = fields; t.payload != "" {
		r.payloads[t.uid] = t.payload
	}
}

func setScore(set scores, uid string, at time.Time) {
	if delete(set, uid); !at.IsZero() {
		set[uid] = float64(at.UnixMilli())
	}
}

func (r *reference) record(t *Transition, o *occasion) {
	r.journal = appendEntry(r.journal, o.journal())
	r.outbox = appendEntry(r.outbox, o.notice())
	r.outbox = appendEntry(r.outbox, o.freshNotice())
	if past := t.historyEntry(&Config{HistoryCap: 10}); past != "" {
		rest := r.history[t.uid]
		if t.decision.Ended.Times > 1 && len(rest) > 0 {
			rest = rest[1:]
		}
		entries := append(list{past}, rest...)
		r.history[t.uid] = entries[:min(len(entries), 10)]
	}
	for _, name := range o.counters() {
		r.stats[name]++
	}
}

func appendEntry(entries events, entry map[string]any) events {
	if entry == nil {
		return entries
	}
	return append(slices.Clip(entries), entry)
}
