package simulation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// enter replays one entry of the journal.
func (p *replay) enter(entry map[string]string) {
	uid, event, at := entry["uid"], model.Event(entry["event"]), instant(entry["at"])
	if aboutQueueCircuit(entry) {
		p.notices++
		return
	}
	if aboutCircuit(entry) {
		return
	}
	failIf(!slices.ContainsFunc(p.clock, at.Equal), "the clock has shown %v since the round began", p.clock)
	m := p.model(uid)
	if event == "orphan" {
		failIf(m != nil, "the model exists")
		return
	}
	delta := entry
	entry, p.message = completed(m, delta), nil
	decision := p.decide(uid, m, event, at, entry)
	failIf(decision.Event != event, "the decision is %s", decision.Event)
	if decision.Event != model.EventRemove { // what it means for the age of its model
		cmp.Or(m, &model.Model{}).Watch(&decision, at)
	}
	p.sort(m, &decision)
	p.keep(uid, m, decision, at)
	p.checkCancelled(m, decision)
	p.wait(m, decision, at)
	p.giveBack(m, decision, at)
	p.book(uid, m, decision)
	p.notices += len(decision.Notifications(uid, at))
	if decision.Ended != nil {
		p.remember(uid, m, event, entry)
		p.count(event, at)
	}
	p.follow(uid, m, decision, at)
	p.grow(uid, event, at)
	if event == model.EventImport {
		p.arrive(uid)
	}
	rebuilds(m, p.models[uid], delta)
}

// completed is an entry with what it leaves as it was.
func completed(m *model.Model, entry map[string]string) map[string]string {
	entry = maps.Clone(entry)
	if m == nil {
		return entry
	}
	for name, value := range fields(m) {
		if _, changed := entry[name]; !changed {
			entry[name] = value
		}
	}
	return entry
}

// rebuilds checks that an entry holds what turns a model into what has become of it.
func rebuilds(before, after *model.Model, entry map[string]string) {
	if after == nil {
		return
	}
	was, is := map[string]string{}, fields(after)
	if before != nil {
		was = fields(before)
	}
	for name := range is {
		was[name] = cmp.Or(was[name], "") // each name once
	}
	for name, value := range was {
		again := name == "error" && contains(entry, name) && entry[name] == is[name] // each failure tells by what
		failIf(name != "refresh_why" && !again && (entry[name] != is[name] || !contains(entry, name)) == (value != is[name]),
			"%s was %q and is %q", name, value, is[name])
	}
	failIf(entry["refresh_why"] != is["refresh_why"], "refresh_why is %q", is["refresh_why"])
}

func contains(entry map[string]string, name string) bool { _, found := entry[name]; return found }

// follow moves the model on to the state that follows.
func (p *replay) follow(uid string, m *model.Model, decision model.Decision, at time.Time) {
	if decision.Event == model.EventRemove {
		failIf(m == nil, "the model does not exist")
		p.first[uid] = p.rev(uid) + 1
		p.begun[uid] = false
		p.models[uid], p.steps[uid] = nil, 0
		p.records[uid], p.forgotten[uid] = nil, true
		p.replaced[uid] = false
		return
	}
	p.steps[uid]++
	p.wakes = p.wakes || decision.Event != model.EventStart && soon(&decision.Next, at)
	if decision.Event == model.EventCreate || decision.Event == model.EventImport && m == nil {
		p.first[uid], p.steps[uid] = max(at.UnixMilli(), p.first[uid]), 0
	}
	next := m
	if decision.Definition != nil {
		next = decision.Definition
	}
	moved := *next
	moved.State = decision.Next
	p.models[uid] = &moved
}
