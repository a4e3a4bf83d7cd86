package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
)

// read notes what a script is to do with the circuit of the queue, and with the heartbeats of pollers and worker pools.
func (d *deed) read(k store.Keys, command redis.Cmder) {
	args := command.Args()
	if name := command.Name(); name != "eval" && name != "evalsha" {
		return
	}
	all := texts(args[3:])
	keys := all[:count(fmt.Sprint(args[2]))]
	values := all[len(keys):]
	switch {
	case keys[0] == k.Due && slices.Contains(keys, k.Dispatchers):
		d.looks = true
	case keys[0] == k.Front:
		d.note = &note{count(values[1]), count(values[2])}
	case len(keys) > 2 && keys[1] == k.Gates && keys[2] == k.Forwarded:
		d.compared = &compared{seen: values[0], part: values[1], number: values[2]}
	case keys[0] == k.QueueCircuit && keys[1] == k.Gates:
		d.turned = &turn{values[0], values[5], values[6]}
		d.compared = &compared{seen: values[10], opened: values[11], turns: true}
	case keys[0] == k.QueueCircuit:
		d.measured = time.UnixMilli(int64(count(values[0]))).UTC()
	case keys[0] == k.Pollers:
		d.leaves = keys[1] == keys[2]
	case keys[0] == k.Workers && len(keys) > 1:
		d.leaves, d.found = values[3] == "", values[3]
	case slices.Contains(keys, k.ClaimedCommands) && !slices.Contains(keys, k.Control):
		d.window, d.commits = count(values[2]), values[6]
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
			failIf(!known && p.found != "" && at.UnixMilli() != int64(count(p.found)),
				"%s was forgotten, whose last heartbeat was at %s, and not at %s", owner, at, p.found)
		}
	}
	byCommand := func(message string) bool { return message[0] == 'c' || message[0] == 'C' }
	failIf(p.commits != p.before.holder && slices.ContainsFunc(p.handled, byCommand),
		"%q has handled commands, %q holds the lane: %q", p.commits, p.before.holder, p.handled)
	at, known := p.before.pollers[p.before.holder]
	failIf(known && p.after.holder != p.before.holder && p.living(time.UnixMilli(int64(at))),
		"%s has lost the lane to %s, its last heartbeat was at %s", p.before.holder, p.after.holder, time.UnixMilli(int64(at)).UTC())
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

// compared is what whoever changes what operators set has read of it.
type compared struct {
	seen, opened string // how many changes there were; of a circuit, since when it was open
	turns        bool   // it turns the circuit of the queue
	part, number string // of the command that asks for it; empty: none does
}

// outdated reports whether what is about to be changed has changed since it was read.
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

// set is what operators set.
func (s *snapshot) set() string {
	return fmt.Sprint(s.holds, s.limits, s.calendars, s.policies, s.openBulks)
}
