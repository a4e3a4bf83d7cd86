package scripts

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/model"
)

// fleet tells commit.lua in which indexes the model stands from now on. Of most transitions there is nothing to tell.
func (t *Transition) fleet(w *wording, k Keys) {
	was, is := &t.was, &t.decision.Next
	all := t.removes() || t.decision.Event == model.EventMend // whatever is believed of the indexes
	gone := t.removes()
	if gone {
		is = &model.State{}
	}
	told, keys := len(w.announced), len(w.keys)
	index := func(word, score string, changed bool) {
		if changed || all {
			w.say(word, "")
			w.announce(score)
		}
	}
	// One that goes on failing is written too: a release that knew no index has forgotten it.
	index("failing", millis(is.FailingSince), !is.FailingSince.Equal(was.FailingSince) || t.decision.Ended != nil && !is.FailingSince.IsZero())
	index("disabled", millis(is.DisabledSince()), !is.DisabledSince().Equal(was.DisabledSince()))
	index("parked", millis(is.ParkedAt()), is.ParkedBy != was.ParkedBy || !is.ParkedAt().Equal(was.ParkedAt()))
	t.labels(w, k, all)
	if was.ParkedBy != "" && was.ParkedBy != is.ParkedBy {
		w.say("ungate", "")
		w.keys = append(w.keys, k.ParkedBy(string(was.ParkedBy)))
	}
	if is.ParkedBy != "" && (was.ParkedBy != is.ParkedBy || all) {
		w.say("gate", "")
		w.say("look", "")
		w.announce(string(is.ParkedBy), cmp.Or(millis(t.decision.Look), "0")) // nobody knows when: now
		w.keys = append(w.keys, k.ParkedBy(string(is.ParkedBy)))
	}
	if len(w.announced) > told || len(w.keys) > keys {
		w.say("fleet", "")
	}
	if len(w.keys) > 0 {
		w.say("more=", strconv.Itoa(len(w.keys)))
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

// labels tells which sets of labels the model joins and leaves.
func (t *Transition) labels(w *wording, k Keys, all bool) {
	before, after := model.LabelTerms(t.wasLabels), model.LabelTerms(t.isLabels)
	join := slices.DeleteFunc(slices.Clone(after), func(term string) bool { return !all && slices.Contains(before, term) })
	leave := slices.DeleteFunc(before, func(term string) bool { return slices.Contains(after, term) })
	if len(join) > 0 {
		w.say("labels=", strconv.Itoa(len(join)))
	}
	if len(leave) > 0 {
		w.say("unlabel=", strconv.Itoa(len(leave)))
	}
	for _, term := range slices.Concat(join, leave) {
		w.keys = append(w.keys, k.Label(term))
	}
}
