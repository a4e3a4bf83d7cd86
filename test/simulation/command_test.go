package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// replyName is the name of the reply list of the simulation.
const replyName = "r"

// span is between which instants something happened.
type span struct{ from, to time.Time }

// named are the results of the commands with ids that a deed has handled.
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

func (c *named) repeats() (n int) {
	for _, again := range c.again {
		n += again
	}
	return n
}

// checkReplies checks that the sender of each command was answered once, and correctly, and that its id is noted.
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

// commandQueue keeps the pushed and unhandled commands about each model, in the order in
// which they reached Redis.
type commandQueue map[string][]string

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

func (q commandQueue) push(messages []string) {
	for _, message := range messages {
		if uid := subject(message); uid != "" {
			q[uid] = append(q[uid][:len(q[uid]):len(q[uid])], message)
		}
	}
}

// pop takes out what was handled, and returns it with the commands about each model in their order. Of these, none may have been
// handled before one that was pushed earlier.
func (q commandQueue) pop(handled []string) (ordered []string) {
	counts := map[string]int{}
	for _, message := range handled {
		if uid := subject(message); uid != "" {
			counts[uid]++
		} else {
			ordered = append(ordered, message)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(counts)) {
		first, left := q[uid][:counts[uid]], slices.Clone(handled)
		for _, message := range first {
			at := slices.Index(left, message)
			failIf(at < 0, "a command was handled before one that was pushed earlier: of %q these were handled: %q", q[uid], handled)
			left = slices.Delete(left, at, at+1)
		}
		ordered = append(ordered, first...)
		if q[uid] = q[uid][len(first):]; len(q[uid]) == 0 {
			delete(q, uid)
		}
	}
	return ordered
}

// typesOfBatch matches how a batch of items names the types of its keys.
var typesOfBatch = regexp.MustCompile(`^([!?]?[a-z]+ )+$`)

// read notes a script's work on the circuit of the queue, and on the heartbeats of pollers and worker pools.
func (d *deed) read(k store.Keys, command redis.Cmder) {
	args := command.Args()
	if name := command.Name(); name != "eval" && name != "evalsha" {
		return
	}
	all := texts(args[3:])
	keys := all[:count(fmt.Sprint(args[2]))]
	values := all[len(keys):]
	switch {
	case len(values) > 3 && typesOfBatch.MatchString(values[2]):
		lines := values[4 : 4+count(values[3])]
		last := func(verb string) string { // of its words, how many there are stands before it, behind a letter
			at := slices.Index(lines, verb)
			if at < 1 {
				return ""
			}
			return lines[at-1+64*int(lines[at-1][1]-'0')+int(lines[at-1][2]-'0')]
		}
		d.window, d.commits = count(cmp.Or(last("input"), "0")), last("claim")
	case keys[0] == k.Due && slices.Contains(keys, k.Dispatchers):
		d.looks = true
	case keys[0] == k.Front:
		d.note = &note{count(values[1]), count(values[2])}
	case len(keys) > 2 && keys[1] == k.Blockers && keys[2] == k.Forwarded:
		d.compared = &compared{seen: values[0], part: values[1], number: values[2]}
	case keys[0] == k.QueueCircuit && keys[1] == k.Blockers:
		d.turned = &turn{values[0], values[5], values[6]}
		d.compared = &compared{seen: values[10], opened: values[11], turns: true}
	case keys[0] == k.QueueCircuit:
		d.measured = time.UnixMilli(int64(count(values[0]))).UTC()
	case keys[0] == k.Pollers:
		d.leaves = keys[1] == keys[2]
	case keys[0] == k.Workers && len(keys) > 1:
		d.leaves, d.found = values[3] == "", values[3]
	case slices.Contains(keys, k.Pollers), slices.Contains(keys, k.Workers):
		d.alive = values[1]
	}
}

// checkHeartbeats checks that who is alive is known to be, and that nobody takes over from the living.
func (p *replay) checkHeartbeats() {
	for _, heartbeats := range [][2]map[string]float64{{p.before.pollers, p.after.pollers}, {p.before.workers, p.after.workers}} {
		before, after := heartbeats[0], heartbeats[1]
		if at, known := after[p.alive]; known && int64(at) != p.now.UnixMilli() {
			fail("%s has given a heartbeat at %s, noted is %s", p.alive, p.now, time.UnixMilli(int64(at)).UTC())
		}
		for _, owner := range slices.Sorted(maps.Keys(before)) {
			at := time.UnixMilli(int64(before[owner])).UTC()
			_, known := after[owner]
			failIf(!known && !p.leaves && p.living(at), "%s was forgotten, whose last heartbeat was at %s", owner, at)
			failIf(!known && p.found != "" && !evenly(p.moment.looks), "%s was forgotten, and its dispatcher has not seen the clock run evenly: %v", owner, p.moment.looks)
			failIf(!known && p.found != "" && at.UnixMilli() != int64(count(p.found)),
				"%s was forgotten, whose last heartbeat was at %s, and not at %s", owner, at, p.found)
		}
	}
	byCommand := func(message string) bool { return message[0] == 'c' || message[0] == 'C' }
	failIf(p.commits != p.before.leader && slices.ContainsFunc(p.handled, byCommand),
		"%q has handled commands, %q leads: %q", p.commits, p.before.leader, p.handled)
	at, known := p.before.pollers[p.before.leader]
	failIf(known && p.after.leader != p.before.leader && p.living(time.UnixMilli(int64(at))),
		"%s has lost the lead to %s, its last heartbeat was at %s", p.before.leader, p.after.leader, time.UnixMilli(int64(at)).UTC())
}

// evenly reports whether looks have followed each other for a lease without a gap.
func evenly(looks []time.Time) bool {
	steady, last := time.Time{}, time.Time{}
	for _, at := range looks {
		if gap := at.Sub(last); gap < 0 || gap > lease/2 {
			steady = at
		}
		last = at
	}
	return last.Sub(steady) >= lease
}

// living reports whether the lease of a heartbeat has been running since the round began. One from the future says nothing.
func (p *replay) living(heartbeat time.Time) bool {
	for _, at := range append(p.clock[:len(p.clock):len(p.clock)], p.now) {
		if heartbeat.After(at) || !heartbeat.Add(lease).After(at) {
			return false
		}
	}
	return true
}

// ownerOf is the name under which a poller or a worker pool holds what it has taken; empty: it is neither.
func ownerOf(a *actor) string {
	switch role := a.role.(type) {
	case pollerRole:
		return role.owner
	case aheadRole:
		return role.owner
	case *poolRole:
		return role.owner
	default:
		return ""
	}
}

// takenOver is whose entries a call is about to take over; empty: nobody's.
func takenOver(k store.Keys, c *call) string {
	if c == nil || c.commands[0].Name() != "evalsha" {
		return ""
	}
	args := texts(c.commands[0].Args()[3:])
	switch {
	case args[0] == k.Workers && args[2] == k.Input:
		return args[3]
	case args[0] == k.Pollers && args[1] != args[2]:
		return strings.TrimPrefix(args[1], k.Claimed(""))
	default:
		return ""
	}
}

// compared are the settings of operators as their changer has read them.
type compared struct {
	seen, opened string // how many changes there were; of a circuit, since when it was open
	turns        bool   // it turns the circuit of the queue
	part, number string // of the command that asks for it; empty: none does
}

// outdated reports whether the settings about to be changed have changed since they were read.
func (p *replay) outdated() bool {
	c := p.compared
	return c != nil && (c.seen != p.before.changes || c.turns && c.opened != p.before.queueCircuit["opened_at"])
}

// checkCompared checks that a change of what operators set is counted, and that one which was decided about something else does nothing.
func (p *replay) checkCompared() {
	if p.compared == nil {
		return
	}
	is, was := p.after.set(), p.before.set()
	last, _, _ := strings.Cut(p.before.ordered[p.compared.part], " ")
	failIf(p.compared.part != "" && count(p.compared.number) <= count(last) && is != was,
		"the command %s of %s was carried out behind %s: want %s, found %s", p.compared.number, p.compared.part, p.before.ordered[p.compared.part], was, is)
	failIf(p.outdated() && (is != was || p.after.changes != p.before.changes),
		"a change that was decided after %q changes came after %q, and was made: want %s, found %s", p.compared.seen, p.before.changes, was, is)
	before, _ := strconv.Atoi(p.before.changes)
	after, _ := strconv.Atoi(p.after.changes)
	failIf(is != was && after != before+1, "what operators set was changed, and %d changes were counted behind %d", after, before)
}

func (s *snapshot) set() string {
	return fmt.Sprint(s.holds, s.limits, s.calendars, s.policies, s.openBulks)
}
