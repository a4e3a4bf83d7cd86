package scripts

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
)

// fleet tells commit.lua in which indexes the model stands from now on, and what it takes and gives back of keys. Of most transitions there is
// nothing to tell.
func (t *Transition) fleet(w *wording, k Keys, now time.Time, config *Config) {
	was, is := &t.was, &t.decision.Next
	if t.removes() {
		is = &model.State{}
	}
	all := t.removes() || t.decision.Event == model.EventMend // whatever is believed of the indexes
	f := fleet{wording: w, keys: k, now: now, told: len(w.announced), all: all}
	// One that goes on failing is written too: a release that knew no index has forgotten it.
	fails := t.decision.Ended != nil && !is.FailingSince.IsZero()
	f.place("failing", is.FailingSince, fails || !is.FailingSince.Equal(was.FailingSince))
	f.place("disabled", is.DisabledSince(), !is.DisabledSince().Equal(was.DisabledSince()))
	f.place("parked", is.ParkedAt(), is.ParkedBy != was.ParkedBy || !is.ParkedAt().Equal(was.ParkedAt()))
	f.place("ages", is.AgesAt(), !is.AgesAt().Equal(was.AgesAt()))
	f.place("late", is.LateUntil(), !is.LateUntil().Equal(was.LateUntil()))
	f.place("stale", is.StaleSince(), !is.StaleSince().Equal(was.StaleSince()))
	joins := is.Parked() && (was.ParkedBy != is.ParkedBy || all)
	if joins {
		w.say("gate", "")
		w.say("look", "")
		w.announce(string(is.ParkedBy), cmp.Or(millis(t.decision.Look), millis(now), "0")) // nobody knows when: now
	}
	takes, gives := len(t.decision.Takes) > 0, was.Counted != "" && (is.Counted == "" || all || !is.DeadlineAt.Equal(was.DeadlineAt))
	begins, ends := t.fails()
	if takes || gives || begins || ends {
		w.say("ms", "")
		w.announce(millis(now))
	}
	f.take(&t.decision)
	f.labels(t.wasLabels, t.isLabels)
	if was.ParkedBy != "" && was.ParkedBy != is.ParkedBy {
		w.say("ungate", "")
		w.keys = append(w.keys, k.ParkedBy(string(was.ParkedBy)))
	}
	if joins {
		w.keys = append(w.keys, k.ParkedBy(string(is.ParkedBy)))
	}
	if gives {
		f.give(t, was, is)
	}
	if begins || ends {
		f.failure(t, begins, config.NewErrorAbove)
	}
	if len(w.announced) > f.told || len(w.keys) > 0 {
		w.say("fleet", "")
	}
	if len(w.keys) > 0 {
		w.say("more=", strconv.Itoa(len(w.keys)))
	}
}

// fleet is a wording of what only a part of the models has.
type fleet struct {
	*wording
	keys Keys
	now  time.Time
	told int  // values that were announced before
	all  bool // everything is told, also what does not change
}

// place tells the score in an index, if it changes; of a zero time that the model leaves it.
func (f *fleet) place(word string, at time.Time, changes bool) {
	if changes || f.all {
		f.say(word, "")
		f.announce(millis(at))
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
	f.count("takes=", len(d.Takes))
	for _, take := range d.Takes {
		lasts := ""
		if take.After != "" {
			lasts = strconv.FormatInt(max(1, take.Until.Sub(f.now).Milliseconds()+1), 10)
		}
		f.announce(number(take.Most), take.Before, take.After, lasts)
		f.wording.keys = append(f.wording.keys, f.keys.Limit(take.Name), f.keys.Rate(take.Name))
	}
	if d.Probe {
		f.say("probe", "")
		f.wording.keys = append(f.wording.keys, f.keys.Circuit(d.Next.CountedBy(model.GateCircuit)[0]))
	}
}

// give tells what an attempt gives back of keys: when it ends all of them, and while it goes on it holds them for as long as it may take.
func (f *fleet) give(t *Transition, was, is *model.State) {
	goesOn := is.CountedBy(model.GateLimit)
	var frees, extends []string
	for _, name := range was.CountedBy(model.GateLimit) {
		if slices.Contains(goesOn, name) {
			extends = append(extends, name)
		} else {
			frees = append(frees, name)
		}
	}
	ends := is.Counted == ""
	f.count("frees=", len(frees))
	f.count("extend=", len(extends))
	for _, name := range frees {
		f.announce(string(model.NewGate(model.GateLimit, name)))
	}
	for _, name := range slices.Concat(frees, extends) {
		f.wording.keys = append(f.wording.keys, f.keys.Limit(name))
	}
	if until := t.decision.ClosedUntil; ends && len(frees) > 0 && until.After(f.now) {
		f.count("closes=", len(frees))
		f.announce(strconv.FormatInt(until.UnixMicro(), 10), strconv.FormatInt(until.Sub(f.now).Milliseconds(), 10))
		for _, name := range frees {
			f.wording.keys = append(f.wording.keys, f.keys.Rate(name))
		}
	}
	for _, name := range was.CountedBy(model.GateCircuit) {
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
	f.announce(string(model.NewGate(model.GateCircuit, name)), name, string(t.decision.CircuitOutcome), strconv.Itoa(failures), strconv.Itoa(of),
		model.FormatTime(at), millis(at))
	f.wording.keys = append(f.wording.keys, f.keys.Circuit(name))
}

// labels tells which sets of labels the model joins and leaves.
func (f *fleet) labels(before, after map[string]string) {
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
