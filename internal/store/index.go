package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// indexed is what the indexes say of a model: of each the score in Unix ms, 0 where it does not stand, and what it waits for and holds.
type indexed struct {
	failing, disabled, parked, ages, late, stale, deadline int64

	gate      model.Blocker
	counted   string
	errorID   string
	freshness model.Freshness
}

func indexedAs(s *model.State) indexed {
	return indexed{
		score(s.FailingSince), score(s.DisabledSince()), score(s.ParkedAt()), score(s.FreshnessAt()), score(s.LateUntil()), score(s.StaleSince()), score(s.DeadlineAt),
		s.ParkedBy, s.Counted, s.FingerprintID, s.Freshness,
	}
}

func score(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// fleet tells commit.lua in which indexes the model stands from now on, and what it takes and gives back of keys, in the order of its header. Of
// most transitions there is nothing to tell.
func (t *Transition) fleet(w *wording, k Keys, now time.Time, config *Config) {
	f := fleet{wording: w, keys: k, now: now, told: len(w.announced), was: t.was}
	if !t.removes() {
		f.is = indexedAs(&t.decision.Next)
	}
	f.all = t.removes() || t.decision.Event == model.EventMend
	f.joins = f.is.parked != 0 && (f.was.gate != f.is.gate || f.all)
	f.places(t.decision.Ended != nil)
	f.gate(t.decision.Recheck)
	gives := f.was.counted != "" && (f.is.counted == "" || f.all || f.is.deadline != f.was.deadline)
	begins, ends := t.fails()
	if len(t.decision.Acquires) > 0 || gives || begins || ends {
		f.say("ms", "")
		f.announce(Millis(now))
	}
	f.take(&t.decision)
	f.labels(t.wasLabels, t.isLabels)
	f.gateKeys()
	if gives {
		f.give(t)
	}
	if begins || ends {
		f.failure(t, begins, config.NewErrorAbove)
	}
	if len(f.announced) > f.told || len(f.wording.keys) > 0 {
		f.say("fleet", "")
	}
	f.count("more=", len(f.wording.keys))
}

// fleet is a wording of what only a part of the models has.
type fleet struct {
	*wording
	keys    Keys
	now     time.Time
	was, is indexed
	told    int  // values that were announced before
	all     bool // everything is told, also what does not change: whatever is believed of the indexes
	joins   bool // it joins the models of a gate
}

// places tells the scores that change. One that goes on failing is written too: a release that knew no index has forgotten it.
func (f *fleet) places(ended bool) {
	was, is := &f.was, &f.is
	f.place("failing", was.failing, is.failing, ended && is.failing != 0)
	f.place("disabled", was.disabled, is.disabled, false)
	f.place("parked", was.parked, is.parked, was.gate != is.gate)
	f.place("ages", was.ages, is.ages, false)
	f.place("late", was.late, is.late, false)
	f.place("stale", was.stale, is.stale, false)
}

// place tells a score in an index if it changes, or anyway; of 0 that the model leaves it.
func (f *fleet) place(word string, was, is int64, anyway bool) {
	if was == is && !anyway && !f.all {
		return
	}
	f.say(word, "")
	if is == 0 {
		f.announce("")
	} else {
		f.announce(strconv.FormatInt(is, 10))
	}
}

// gate tells which gate parks the model, and when that is to be looked at; if nobody knows, now.
func (f *fleet) gate(look time.Time) {
	if f.joins {
		f.say("gate", "")
		f.say("look", "")
		f.announce(string(f.is.gate), cmp.Or(Millis(look), Millis(f.now), "0"))
	}
}

// gateKeys are the models of the gates that the model leaves and joins.
func (f *fleet) gateKeys() {
	if f.was.gate != "" && f.was.gate != f.is.gate {
		f.say("ungate", "")
		f.wording.keys = append(f.wording.keys, f.keys.ParkedBy(string(f.was.gate)))
	}
	if f.joins {
		f.wording.keys = append(f.wording.keys, f.keys.ParkedBy(string(f.is.gate)))
	}
}

// count says a word with a number, unless that is 0.
func (f *fleet) count(word string, n int) {
	if n > 0 {
		f.say(word, strconv.Itoa(n))
	}
}

// take tells what a start takes of keys, or a model reserves.
func (f *fleet) take(d *model.Decision) {
	f.count("takes=", len(d.Acquires))
	for _, take := range d.Acquires {
		before, after, lasts := "", "", ""
		if take.After != (model.Slots{}) {
			before, after = take.Before.String(), take.After.String()
			lasts = strconv.FormatInt(max(1, take.After.Last().Sub(f.now).Milliseconds()+1), 10)
		}
		f.announce(number(take.Limit), before, after, lasts)
		f.wording.keys = append(f.wording.keys, f.keys.Limit(take.Name), f.keys.Rate(take.Name))
	}
	if d.Probe {
		f.say("probe", "")
		f.wording.keys = append(f.wording.keys, f.keys.Circuit(model.CountedBy(d.Next.Counted, model.BlockerCircuit)[0]))
	}
}

// give tells what an attempt gives back of keys: when it ends all of them, and while it goes on it holds them for as long as it may take.
func (f *fleet) give(t *Transition) {
	goesOn := model.CountedBy(f.is.counted, model.BlockerLimit)
	var frees, extends []string
	for _, name := range model.CountedBy(f.was.counted, model.BlockerLimit) {
		if slices.Contains(goesOn, name) {
			extends = append(extends, name)
		} else {
			frees = append(frees, name)
		}
	}
	ends := f.is.counted == ""
	f.count("frees=", len(frees))
	f.count("extend=", len(extends))
	for _, name := range frees {
		f.announce(string(model.NewBlocker(model.BlockerLimit, name)))
	}
	for _, name := range slices.Concat(frees, extends) {
		f.wording.keys = append(f.wording.keys, f.keys.Limit(name))
	}
	if until := t.decision.ClosedUntil; ends && len(frees) > 0 && until.After(f.now) {
		f.count("closes=", len(frees))
		f.announce(strconv.FormatInt(until.UnixMicro(), 10))
		for _, name := range frees {
			f.wording.keys = append(f.wording.keys, f.keys.Rate(name))
		}
	}
	for _, name := range model.CountedBy(f.was.counted, model.BlockerCircuit) {
		if ends {
			f.settle(t, name)
		}
	}
}

// settle tells what the end of an attempt says of the circuit of its key.
func (f *fleet) settle(t *Transition, name string) {
	failures, of, probe := 1, 1, time.Minute // of a policy that has none any more; its outcome counts for nothing
	if c := t.circuit; c != nil {
		failures, of, probe = c.Failures, c.Of, c.Probe
	}
	at := f.now.Add(probe)
	f.say("circuit", "")
	f.announce(string(model.NewBlocker(model.BlockerCircuit, name)), name, string(t.decision.CircuitOutcome), strconv.Itoa(failures), strconv.Itoa(of),
		model.FormatTime(at), Millis(at))
	f.wording.keys = append(f.wording.keys, f.keys.Circuit(name))
}

// labels tells which sets of labels the model joins and leaves.
func (f *fleet) labels(before, after map[string]string) {
	if len(before)+len(after) == 0 {
		return
	}
	were, are := model.LabelTerms(before), model.LabelTerms(after)
	join := slices.DeleteFunc(slices.Clone(are), func(term string) bool { return !f.all && slices.Contains(were, term) })
	leave := slices.DeleteFunc(were, func(term string) bool { return slices.Contains(are, term) })
	f.count("labels=", len(join))
	f.count("unlabel=", len(leave))
	for _, term := range slices.Concat(join, leave) {
		f.wording.keys = append(f.wording.keys, f.keys.Label(term))
	}
}

// labels tells which fields of the hash hold other labels than before.
func (w *wording) labels(before, after map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			w.tell("field="+labelPrefix+name, after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			w.say("gone=", labelPrefix+name)
		}
	}
}

// fails reports whether the model fails by a signature from now on, once more or by another one, or by none any more. Of most transitions
// neither is so.
func (t *Transition) fails() (by, ends bool) {
	was, is := t.was.errorID, t.decision.Next.FingerprintID
	if t.removes() {
		is = ""
	}
	return is != "" && (is != was || t.decision.Fingerprint != ""), is == "" && was != ""
}

// failure tells by which signature the model fails, or that it fails no more.
func (f *fleet) failure(t *Transition, fails bool, untold int) {
	is := t.decision.Next.FingerprintID
	if fails {
		reason, errorType := "", ""
		if ended := t.decision.Ended; ended != nil {
			reason, errorType = ended.Reason, ended.ErrorType
		}
		f.list("error", []string{is, strconv.Itoa(untold), string(t.decision.Fingerprint), reason, errorType})
	} else {
		f.say("sound", "")
	}
	f.wording.keys = append(f.wording.keys, f.keys.Error(t.was.errorID), f.keys.Error(is), f.keys.Error(model.OtherFingerprint))
}
