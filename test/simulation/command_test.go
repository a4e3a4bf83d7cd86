package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// replyName is the name of the reply list of the simulation.
const replyName = "r"

// span is between which instants something happened.
type span struct{ from, to time.Time }

// named is what became of the commands with ids that a deed has handled.
type named struct {
	known   map[string]span // id -> when a command with it was handled last
	handled map[string]int  // id -> how many of it were handled by the deed
	again   map[string]int  // of these: how many did nothing, as the id was known
	doubt   map[string]bool // it was handled about a day ago
	applied map[string]int  // how many have changed a model
}

// idOf is the id of a command; empty: it has none, or is none.
func idOf(message string) string {
	if message[0] != 'c' {
		return ""
	}
	command, _ := model.DecodeCommand([]byte(message[1:]))
	return command.ID
}

// sortOut takes out of what was handled the commands that must have done nothing: their ids were handled within a day.
func (o *oracle) sortOut(d *deed, handled []string) (rest []string, c named) {
	c = named{known: maps.Clone(o.ids), handled: map[string]int{}, again: map[string]int{}, doubt: map[string]bool{}, applied: map[string]int{}}
	shown := append(slices.Clip(d.clock), d.now)
	now := span{slices.MinFunc(shown, time.Time.Compare), slices.MaxFunc(shown, time.Time.Compare)}
	const day = 24 * time.Hour
	for _, message := range handled {
		id := idOf(message)
		was, known := c.known[id]
		if id != "" && (c.handled[id] > 0 || known && now.to.Sub(was.from) < day) {
			c.handled[id]++
			c.again[id]++
			continue
		}
		rest = append(rest, message)
		if id == "" {
			continue
		}
		c.handled[id]++
		c.known[id] = now
		if c.doubt[id] = known && now.from.Sub(was.to) < day; c.doubt[id] {
			c.known[id] = span{was.from, now.to}
		}
	}
	return rest, c
}

// repeats counts the commands that did nothing.
func (c *named) repeats() (n int) {
	for _, again := range c.again {
		n += again
	}
	return n
}

// checkReplies checks that the sender of each command was told once, and the truth, and that its id is noted.
func (p *replay) checkReplies() {
	told := map[string]map[string]int{}
	for _, text := range p.after.replies {
		var reply struct {
			ID      string `json:"command_id"`
			Outcome string
		}
		err := json.Unmarshal([]byte(text), &reply)
		failIf(err != nil, "reply %s: %w", text, err)
		if told[reply.ID] == nil {
			told[reply.ID] = map[string]int{}
		}
		told[reply.ID][reply.Outcome]++
		told[reply.ID]["all"]++
	}
	for id := range p.after.ids {
		_, known := p.ids.known[id]
		failIf(!known, "the id %s is noted, but no command with it was handled", id)
	}
	for id, n := range p.ids.handled {
		again, applied := p.ids.again[id], p.ids.applied[id]
		right := told[id]["duplicate"] == again || p.ids.doubt[id] && told[id]["duplicate"] == again+1
		if _, noted := p.after.ids[id]; !noted || !right || told[id]["applied"] != applied || told[id]["all"] != n {
			fail("of %d commands %s %d are duplicates and %d applied, told was %v, noted is %v", n, id, again, applied, told[id], p.after.ids)
		}
		delete(told, id)
	}
	failIf(len(told) > 0, "replies to commands that were not handled: %v", told)
}

// lanes keep the commands about each model that were pushed and are not handled yet, in the order in
// which they reached Redis.
type lanes map[string][]string

// subject is the model that a command is about; empty: it is no command, or one that cannot be read.
func subject(message string) string {
	if message[0] != 'c' {
		return ""
	}
	command, err := model.DecodeCommand([]byte(message[1:]))
	if err != nil {
		return ""
	}
	return command.UID
}

// push notes messages that have reached Redis.
func (l lanes) push(messages []string) {
	for _, message := range messages {
		if uid := subject(message); uid != "" {
			l[uid] = append(l[uid][:len(l[uid]):len(l[uid])], message)
		}
	}
}

// pop takes out what was handled, and returns it with the commands about each model in their order. Of these, none may have been
// handled before one that was pushed earlier.
func (l lanes) pop(handled []string) (ordered []string) {
	counts := map[string]int{}
	for _, message := range handled {
		if uid := subject(message); uid != "" {
			counts[uid]++
		} else {
			ordered = append(ordered, message)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(counts)) {
		first, left := l[uid][:counts[uid]], slices.Clone(handled)
		for _, message := range first {
			at := slices.Index(left, message)
			failIf(at < 0, "a command was handled before one that was pushed earlier: of %q these were handled: %q", l[uid], handled)
			left = slices.Delete(left, at, at+1)
		}
		ordered = append(ordered, first...)
		if l[uid] = l[uid][len(first):]; len(l[uid]) == 0 {
			delete(l, uid)
		}
	}
	return ordered
}
