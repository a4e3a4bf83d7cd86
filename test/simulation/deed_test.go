package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// deed is one executed command and what it may have done.
type deed struct {
	before, after *snapshot
	now           time.Time
	moment
	step      int
	note      *note            // what it is to note of the input list; nil: nothing
	setBack   bool             // the clock was set back before
	sent      []string         // messages that it pushed, with the mark of their source
	said      []string         // what it may have pushed to the output list
	leaves    bool             // a poller or a worker pool resigns
	found     string           // the heartbeat by which a worker pool was found expired, in Unix ms
	measured  time.Time        // the instant for which the circuit of the queue was measured; zero: it was not
	compared  *compared        // what was read of what operators set, before the deed changes it; nil: it does not
	turned    *turn            // what somebody does with the circuit of the queue; nil: nothing
	commits   string           // the poller that commits; empty: a dispatcher or an operator does
	alive     string           // a poller or a worker pool that gives a heartbeat
	looks     bool             // a dispatcher reads what is due
	pops      bool             // it pops attempts from the input list
	work      bool             // it may move attempts between the input list and those of worker pools
	few       bool             // few signatures of failures are kept apart
	brought   *[]luggage       // models that it may import
	orders    *[]model.Command // commands that its caller may carry out without a message
	maxQueued int              // high-water mark of the input list
	window    int              // what it takes for that mark; a dispatcher may take a lower one
	batch     int              // how many models of a kind a dispatcher reads at once
	schedules *schedule.Cache
	policies  map[string]policy.Policy // by their text
	believed  func(*model.Model)       // what a planted bug says of models; nil: nothing
}

// moment is where the round of a process began.
type moment struct {
	since         int                            // in which step
	clock         []time.Time                    // what the clock has shown since, in order
	queueCircuits []map[string]string            // what the circuit of the queue has been since, in order
	shared        []string                       // likewise the policy that several models share
	saw           *sight                         // what was due when a dispatcher looked; nil: it has not
	fronts        [][]string                     // what was noted of the input list since, in order
	circuits      []map[string]map[string]string // what the circuits of keys have been since, in order
}

// consumed returns the messages that the deed has handled. No message may come from nowhere.
func (d *deed) consumed() (gone []string) {
	was, is := d.before.messages(), d.after.messages()
	for _, message := range d.sent {
		was[message]++
	}
	for _, message := range slices.Sorted(maps.Keys(is)) {
		if message[0] == 'o' && slices.Contains(d.said, message[1:]) {
			for ; is[message] > was[message]; was[message]++ {
				d.sent = append(d.sent, message)
			}
		}
		failIf(is[message] > was[message], "the message %s stands there %d times, want %d", message, is[message], was[message])
	}
	for _, message := range slices.Sorted(maps.Keys(was)) {
		for range was[message] - is[message] {
			gone = append(gone, message)
		}
	}
	return gone
}

// execute lets Redis carry out a call and checks what it did.
func (w *world) execute(a *actor, c *call) error {
	err := c.execute()
	if w.lines != nil {
		w.note("    %v", c.commands)
	}
	if !c.writes() {
		return err
	}
	d := &deed{now: w.now, step: w.steps, moment: c.began, sent: sent(c.commands), work: true}
	if a != nil {
		d.moment = a.began
	}
	for _, command := range c.commands {
		d.pops = d.pops || command.Name() == "lpop"
		if err == nil {
			d.read(w.server.store.Keys, command)
		}
		if args := command.Args(); len(args) > 3 && args[3] == w.server.store.Keys.Output {
			d.said = texts(args[4:])
		}
	}
	if a == nil || a.role == w.operator { // a delayed request may be the operator's
		d.orders, d.brought = &w.operator.orders, &w.operator.brought
	}
	w.enter(d)
	if a != nil && d.looks {
		a.began.saw = &sight{snapshot: d.after, now: d.now, meddled: len(w.oracle.meddled) > 0}
	}
	return err
}

// enter reads the queue after a deed and enters it in the oracle.
func (w *world) enter(d *deed) {
	d.before, d.after = w.before, w.server.look(w.uids, w.owners, w.pools)
	d.schedules, d.policies, d.maxQueued, d.batch, d.setBack, d.few, d.believed = w.schedules, w.policies, w.temper.maxQueued, w.temper.batch, w.setBack, w.temper.few, w.believed
	w.before = d.after
	if !maps.Equal(d.before.queueCircuit, d.after.queueCircuit) {
		for _, a := range w.actors {
			a.began.queueCircuits = append(a.began.queueCircuits, d.after.queueCircuit)
		}
	}
	if text := d.after.policies[sharedPolicy]; text != d.before.policies[sharedPolicy] {
		for _, a := range w.actors {
			a.began.shared = append(a.began.shared, text)
		}
	}
	if fmt.Sprint(d.before.circuits) != fmt.Sprint(d.after.circuits) {
		for _, a := range w.actors {
			a.began.circuits = append(a.began.circuits, d.after.circuits)
		}
	}
	if !slices.Equal(d.before.front, d.after.front) {
		for _, a := range w.actors {
			a.began.fronts = append(a.began.fronts, d.after.front)
		}
	}
	if w.calm && d.changed() {
		w.writes++
	}
	if w.broken == nil {
		w.broken = w.oracle.account(d)
	}
	if w.before.wake > 0 && w.rng.IntN(2) == 0 {
		w.server.mini.Del(w.server.store.Keys.Wake) // a dispatcher heard of it
		w.before.wake = 0
	}
}

// changed reports whether a deed did more than show a sign of life.
func (d *deed) changed() bool {
	return len(d.after.journal) > 0 || len(d.sent) > 0 || len(d.before.input) != len(d.after.input) ||
		fmt.Sprint(d.before.messages()) != fmt.Sprint(d.after.messages()) || fmt.Sprint(d.before.claimed) != fmt.Sprint(d.after.claimed) ||
		fmt.Sprint(d.before.due, d.before.urgent, d.before.running, d.before.taken) != fmt.Sprint(d.after.due, d.after.urgent, d.after.running, d.after.taken)
}

// sent lists the messages that commands push, with the mark of their source.
func sent(commands []redis.Cmder) (messages []string) {
	marks := map[string]string{queueName + "-output": "o", queueName + "-control": "c"}
	for _, command := range commands {
		args := command.Args()
		if command.Name() != "rpush" {
			continue
		}
		for _, message := range args[2:] {
			messages = append(messages, marks[fmt.Sprint(args[1])]+fmt.Sprint(message))
		}
	}
	return messages
}

func texts(args []any) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = fmt.Sprint(arg)
	}
	return all
}
