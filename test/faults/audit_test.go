package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// inTime is how long before its deadline a result must have been acknowledged to be sure to count: enough for a poller
// to be adopted.
const inTime = 7 * time.Second

// String says how much the workers have written down.
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	pops, asked, acked, unknown := 0, 0, 0, 0
	for _, w := range l.attempts {
		pops += w.pops
		asked += len(w.asked)
		for _, s := range w.said {
			if s.acked.IsZero() {
				unknown++
			} else {
				acked++
			}
		}
	}
	return fmt.Sprintf("the workers' log: %d attempts popped, %d requests of our workers, %d results acknowledged, %d without an answer",
		pops, asked, acked, unknown)
}

// auditCommands checks that after each gust of the storm each model was where its last command had left it.
func (c *chaos) auditCommands() {
	c.t.Helper()
	s := c.storm
	failIf(c.t, s.gusts == 0, "want a storm of commands, got none")
	if wrong := len(s.wrong); wrong > 0 {
		c.t.Fatalf("%d of %d times a model did not stand where its last command left it:\n%s", wrong, s.gusts*len(s.uids),
			strings.Join(s.wrong[:min(wrong, 20)], "\n"))
	}
}

// auditAttempts holds the log of the workers against the journal: each attempt was started once and ended once, in a way
// that the log can explain.
func (c *chaos) auditAttempts() {
	c.t.Helper()
	l := c.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := 0
	for uid, w := range l.attempts {
		failIf(c.t, w.pops > 1, "attempt %s of %s was popped %d times", uid, w.uid, w.pops)
		if w.pops+len(w.asked) == 0 { // the mistake of a worker
			idle += len(w.said)
			failIf(c.t, c.told.starts[uid]+c.told.ends[uid] > 0, "attempt %s was never given to a worker, and the journal has it", uid)
			continue
		}
		ends := c.told.ends[uid]
		cut := ends == 0 && c.storm.removed[w.uid] // a remove takes the attempt along
		if c.told.starts[uid] != 1 || ends != 1 && !cut {
			c.t.Errorf("attempt %s of %s: want one start and one end, got %d and %d", uid, w.uid, c.told.starts[uid], ends)
			continue
		}
		applied, wrong := w.explain(c.told.ended[uid], cut)
		failIf(c.t, wrong != "", "attempt %s of %s: %s; the log has %+v", uid, w.uid, wrong, w)
		idle += w.acknowledged() - applied
	}
	if stats := c.told.stats; int64(idle) > stats["stale"]+stats["duplicate"]+stats["unknown_model"] {
		c.t.Errorf("want %d acknowledged results counted as stale, duplicate or of an unknown model, got %v", idle, stats)
	}
}

// explain returns how many results of the log were applied, and what the log cannot explain in the end of an attempt.
func (w *worked) explain(end ending, cut bool) (applied int, wrong string) {
	if cut {
		return 0, ""
	}
	said, prompt := false, false
	for _, s := range w.said {
		said = said || s.event == end.event || end.event == model.EventOutdated
		prompt = prompt || !s.acked.IsZero() && s.acked.Before(w.deadline.Add(-inTime))
	}
	ours := len(w.asked) > 0
	switch {
	case said:
		return 1, ""
	case ours && end.event == model.EventSuccess: // what a process of ours pushed is its own affair
		return 0, ""
	case end.event == model.EventOutdated: // likewise, or its deadline has passed
		return 0, ""
	case end.event != model.EventTimeout:
		return 0, fmt.Sprintf("ended by a %s that nobody has pushed", end.event)
	case prompt && !ours:
		return 0, "timed out, and its result was acknowledged long before"
	case !w.deadline.IsZero() && end.at.Before(w.deadline):
		return 0, fmt.Sprintf("timed out at %s, before its deadline", end.at)
	}
	return 0, ""
}

func (w *worked) acknowledged() (count int) {
	for _, s := range w.said {
		if !s.acked.IsZero() {
			count++
		}
	}
	return count
}

// over is when the attempt may have been over at the earliest, by what the workers know.
func (w *worked) over() time.Time {
	times := append([]time.Time{w.deadline}, w.asked...)
	for _, s := range w.said {
		times = append(times, s.begun)
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// auditTurns checks without the journal that no attempt of a model began before the one before was over, and that none
// brings an older save than the one before.
func (c *chaos) auditTurns() {
	c.t.Helper()
	l := c.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	byModel := map[string][]*worked{}
	for _, w := range l.attempts {
		if w.pops > 0 {
			byModel[w.uid] = append(byModel[w.uid], w)
		}
	}
	const tick = 5 * time.Millisecond // Redis has whole milliseconds
	turns := 0
	for _, uid := range slices.Sorted(maps.Keys(byModel)) {
		all := byModel[uid]
		slices.SortFunc(all, func(a, b *worked) int { return a.deadline.Compare(b.deadline) })
		for i := range len(all) - 1 {
			before, after := all[i], all[i+1]
			began := after.deadline.Add(-c.policy.Timeout)
			turns++
			switch {
			case before.version > after.version:
				c.t.Errorf("%s: want no older save after version %d, got version %d", uid, before.version, after.version)
			case c.storm.last[uid] > 0 || c.storm.removed[uid]: // a remove may have come between
			case began.Before(before.over().Add(-tick)):
				c.t.Errorf("%s: an attempt began at %s, before the other was over at %s: %+v", uid, began, before.over(), before)
			}
		}
	}
	failIf(c.t, turns == 0, "want models that were refreshed more than once by foreign workers")
}

// auditLitter checks that each kind of litter was counted as what it is.
func (c *chaos) auditLitter() {
	c.t.Helper()
	for counter, count := range c.strewn {
		got := int(c.told.stats[counter])
		others := counter == "stale" || counter == "unknown_model" // answers of workers may be that as well
		failIf(c.t, got < count || got > count+c.doubtful[counter] && !others,
			"%s: want %d counted, and at most %d more, got %d", counter, count, c.doubtful[counter], got)
	}
}

// untilTheDeadAreForgotten waits until the only pollers and workers that Redis knows are those that live.
func (c *chaos) untilTheDeadAreForgotten() {
	c.t.Helper()
	living := map[string]int64{}
	for _, command := range c.commands {
		living[command[0]]++
	}
	c.until("only the living known", func() (bool, error) {
		pollers, err := c.clients.Read.ZCard(c.ctx, c.store.Keys.Pollers).Result()
		if err != nil {
			return false, err
		}
		workers, err := c.clients.Read.ZCard(c.ctx, c.store.Keys.Workers).Result()
		return pollers <= living["poller"] && workers <= living["worker"], err
	})
}

// auditKeys checks that there is no key which has lost its purpose: all daemons have ended, and nothing is left to do.
func (c *chaos) auditKeys() {
	c.t.Helper()
	k := c.store.Keys
	known := map[string]bool{k.Policies: true, k.Journal: true, k.Stats: true, k.Rejected: true, k.Label("host=feed"): true}
	// The token of a dispatcher, the last name in the command queue, the head of the queue, the hours, the numbers of commands, and the layout.
	perhaps := map[string]bool{k.Wake: true, k.Leader: true, k.Front: true, k.Hours: true, k.Forwarded: true, k.Settings: true, k.Zones: true, k.Heard: true}
	for _, uid := range c.uids {
		known[k.Model(uid)], known[k.Payload(uid)], known[k.History(uid)] = true, true, true
	}
	for key, value := range c.server.Dump(c.t) {
		failIf(c.t, !known[key] && !perhaps[key] && !value.Expires, "want no key %s, got %+.200v", key, value.Data)
		delete(known, key)
	}
	for key := range known {
		c.t.Errorf("want a key %s, found none", key)
	}
}
