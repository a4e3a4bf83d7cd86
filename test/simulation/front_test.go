package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// note is a dispatcher's request for a note of the input list.
type note struct {
	ticket int // of the first attempt; 0: the list was empty
	since  int // in Unix ms
}

func frontsOf(lines []string) (fronts []model.HeadSample) {
	for _, line := range lines {
		words := append(strings.Fields(line), "")
		front := model.HeadSample{Ticket: count(words[0]), FirstSeen: time.UnixMilli(int64(count(words[1]))).UTC()}
		if words[2] != "" {
			front.LastSeen = time.UnixMilli(int64(count(words[2]))).UTC()
		}
		fronts = append(fronts, front)
	}
	return fronts
}

// checkFront checks that the notes of the input list are true, and that only a note changes them.
func (p *replay) checkFront() {
	before, after := frontsOf(p.before.front), frontsOf(p.after.front)
	switch {
	case p.note == nil && !slices.Equal(before, after):
		fail("the front was %q and is %q, though nobody has noted it", p.before.front, p.after.front)
	case p.note != nil && p.note.ticket > 0 && len(after) == 0:
		fail("the ticket %d was noted, but there is no front", p.note.ticket)
	case p.note == nil || len(after) == 0:
		return
	}
	newest := after[len(after)-1]
	kept := min(len(before), len(after)-1)
	failIf(!slices.Equal(before[:kept], after[:kept]) || len(after)-len(before) > 1,
		"the front was %q and is %q: more than one has changed", p.before.front, p.after.front)
	since := time.UnixMilli(int64(p.note.since)).UTC()
	missing := newest.Ticket < p.note.ticket || newest.Ticket == p.note.ticket && !newest.LastSeen.IsZero() && newest.LastSeen.Before(since)
	failIf(missing, "the ticket %d was noted since %s, but the front is %q", p.note.ticket, since, p.after.front)
	if len(after) > len(before) {
		p.checkNewFront(before, newest, since)
		return
	}
	if was := before[len(before)-1]; newest != was && (newest.Ticket != was.Ticket || newest.FirstSeen != was.FirstSeen || newest.LastSeen != since) {
		fail("the front was %q and is %q", p.before.front, p.after.front)
	}
}

// checkNewFront checks an added front: an attempt with a lower ticket that was not handed back must have left the list.
func (p *replay) checkNewFront(before []model.HeadSample, newest model.HeadSample, since time.Time) {
	switch drawn := count(p.before.stats["start"]); {
	case len(before) > 0 && newest.Ticket < before[len(before)-1].Ticket, p.note.ticket > 0 && len(before) > 0 && newest.Ticket == before[len(before)-1].Ticket:
		fail("the front went back: %q", p.after.front)
	case !newest.FirstSeen.Equal(p.now):
		fail("the front was noted at %s as %q", p.now, p.after.front)
	case p.note.ticket == 0 && (len(p.before.input) > 0 || newest.Ticket != drawn || !newest.LastSeen.IsZero()):
		fail("it is noted as %q that nothing waits behind ticket %d, but there is %q", p.after.front, drawn, p.before.input)
	case p.note.ticket > 0 && (newest.LastSeen != since || newest.Ticket != p.note.ticket):
		fail("the ticket %d was noted since %s, but the front is %q", p.note.ticket, since, p.after.front)
	}
	for _, entry := range p.before.input {
		if facts := p.oracle.attempts[attemptOf(entry)]; !facts.handed && facts.ticket < newest.Ticket {
			fail("the front is %q, but there is still %s with ticket %d", p.after.front, entry, facts.ticket)
		}
	}
}

// taken decides about an attempt that has waited in line until its deadline: some front since the round began must say so.
func (p *replay) taken(m *model.Model, at time.Time, entry map[string]string) model.Decision {
	for _, noted := range p.fronts {
		for _, clock := range append(slices.Clip(p.clock), p.now) {
			decision := m.ExpireOrExtend(model.HeadSamples{Noted: frontsOf(noted), At: clock}, at)
			if says(decision, model.EventTaken, entry) && model.FormatTime(decision.Next.TakenAt) == entry["taken_at"] {
				return decision
			}
		}
	}
	fail("no front says so: %q", p.fronts)
	return model.Decision{}
}

// fair checks that an attempt which was seen to wait in line does not fail before it had its full timeout from when it really left the line.
func (p *replay) fair(m *model.Model, at time.Time) {
	facts := p.oracle.attempts[m.AttemptUID]
	if facts == nil || facts.handed || facts.left.IsZero() || p.setBack || len(p.fronts) == 0 {
		return
	}
	waited := m.Policy.Timeout > 0 && m.Policy.QueueTimeout == 0 && m.ProcessingAt.IsZero() && m.TakenAt.IsZero()
	seen := slices.ContainsFunc(frontsOf(p.fronts[0]), func(f model.HeadSample) bool { return f.Ticket <= facts.ticket && f.LastSeen.After(m.StartedAt) })
	failIf(waited && seen && at.Before(facts.left.Add(m.Policy.Timeout)),
		"the attempt waited in line until %s, and fails before its timeout of %s has passed", facts.left, m.Policy.Timeout)
}

// leave notes when attempts leave the input list.
func (p *replay) leave() {
	for _, entry := range p.before.input {
		uid := attemptOf(entry)
		stands := slices.ContainsFunc(p.after.input, func(other string) bool { return attemptOf(other) == uid })
		if facts := p.oracle.attempts[uid]; !stands && facts.left.IsZero() {
			facts.left = p.now
		}
	}
}

// unseeing never looks at the input list, and never trims the outbox.
type unseeing struct{ queue }

func (unseeing) InputPart(context.Context, int64, int64) ([]store.InputEntry, error) {
	return nil, nil
}

func (unseeing) TrimOutbox(context.Context) (int, error) { return 0, nil }

func queueCircuitOf(hash map[string]string) model.QueueCircuit {
	on := hash["on"] == "1"
	share, _ := strconv.ParseFloat(hash["share"], 64)
	window := time.Duration(count(hash["window_ms"])) * time.Millisecond
	return model.QueueCircuit{On: on, Open: hash["opened_at"] != "", Share: share, Window: window, Min: count(hash["min"])}
}

// end is one attempt that the circuit of the queue counts: when the tenth of its window began, and how it ended.
type end struct {
	tenth  int64 // Unix ms
	failed bool
}

// count notes an end that the circuit of the queue has to count.
func (p *replay) count(event model.Event, at time.Time) {
	counts := event == model.EventSuccess || event == model.EventFailure || event == model.EventTimeout
	if p.queueCircuit.On && counts {
		now := at.UnixMilli()
		p.ends = append(p.ends, end{now - now%(p.queueCircuit.Window.Milliseconds()/10), event != model.EventSuccess})
	}
}

// turn is a change of the circuit of the queue by hand.
type turn struct{ to, at, probeAt string }

// turn does what `refreshd circuit open queue` and `close queue` do.
func (o *operatorRole) turn(ctx context.Context) error {
	store := o.server.store
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if o.rng.IntN(3) == 0 {
		_, err = flow.Of(store).CloseCircuit(ctx, model.QueueCircuitKey, "ann", now)
	} else {
		_, err = flow.Of(store).OpenCircuit(ctx, model.QueueCircuitKey, "ann", "", now.Add(time.Duration(o.rng.IntN(4))*20*time.Second), now)
	}
	return err
}

// checkQueueCircuit checks the result of a measurement of the circuit of the queue, or of opening or closing it.
func (p *replay) checkQueueCircuit() {
	told := slices.DeleteFunc(slices.Clone(p.after.journal), func(entry map[string]string) bool { return !aboutQueueCircuit(entry) })
	want, entry := p.afterMeasuring()
	if p.turned != nil {
		want, entry = p.afterTurning()
	}
	is := [2]string{p.after.queueCircuit["opened_at"], p.after.queueCircuit["probe_at"]}
	failIf(is != want || len(told) > 1 || entry == nil && len(told) > 0 || entry != nil && fmt.Sprint(told) != fmt.Sprint([]map[string]string{entry}),
		"the circuit of the queue is open since, and may be tried from, %q, want %q by %v, told was %v", is, want, entry, told)
}

// afterTurning is the circuit of the queue after somebody's change, and its entry. Its counts are forgotten.
func (p *replay) afterTurning() (is [2]string, entry map[string]string) {
	since, to := p.before.queueCircuit["opened_at"], p.turned.to
	if p.outdated() {
		return [2]string{since, p.before.queueCircuit["probe_at"]}, nil
	}
	p.ends = nil
	if (since == "") == (to == "opened") {
		entry = map[string]string{"event": "circuit_" + to, "key": "queue", "at": p.turned.at, "by": "ann"}
	}
	if to == "closed" {
		return [2]string{}, entry
	}
	return [2]string{cmp.Or(since, p.turned.at), p.turned.probeAt}, entry
}

// afterMeasuring is the circuit of the queue after a measurement, and its entry. Without one it stays.
func (p *replay) afterMeasuring() (is [2]string, entry map[string]string) {
	is = [2]string{p.before.queueCircuit["opened_at"], p.before.queueCircuit["probe_at"]}
	if p.measured.IsZero() || p.before.queueCircuit["on"] != "1" {
		return is, nil
	}
	circuit := queueCircuitOf(p.before.queueCircuit)
	p.ends = slices.DeleteFunc(p.ends, func(e end) bool { // one from far ahead is from before the clock was set back
		return time.UnixMilli(e.tenth).Sub(p.measured).Abs() >= circuit.Window
	})
	total, failed := len(p.ends), 0
	for _, e := range p.ends {
		if e.failed {
			failed++
		}
	}
	at := model.FormatTime(p.measured)
	entry = map[string]string{"key": "queue", "at": at, "successes": strconv.Itoa(total - failed), "failures": strconv.Itoa(failed)}
	switch share := float64(failed); {
	case !circuit.Open && total >= circuit.Min && share >= circuit.Share*float64(total):
		entry["event"], is[0] = "circuit_opened", at
	case circuit.Open && !instant(is[1]).After(p.measured) && total > 0 && share < circuit.Share*float64(total)/2:
		entry["event"], is = "circuit_closed", [2]string{}
	default:
		return is, nil
	}
	return is, entry
}

func aboutQueueCircuit(entry map[string]string) bool {
	return aboutCircuit(entry) && entry["key"] == model.QueueCircuitKey
}
