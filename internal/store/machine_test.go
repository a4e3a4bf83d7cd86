package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

// machine drives a store: two clerks, each poller and dispatcher in one, who decide on what they read some time ago. What exactly follows from
// each decision is compared by the simulation.
type machine struct {
	*bench
	rapid  *rapid.T // fails instead of the bench's, so that rapid shows the shortest way there
	clerks map[string]*clerk

	attempts, sent, handled int
	uids                    []string // of all attempts that were ever handed out
}

// clerk is one process with what it remembers.
type clerk struct {
	name     string
	records  map[string]*Record
	messages list // as last claimed

	// The last batch, to be sent again as after a lost reply.
	batch []Item
	mark  int
	at    time.Time
}

var modelNames = list{"m1", "m2", "m3"}

func newMachine(t *rapid.T, b *bench) *machine {
	b.now = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	b.config.NewErrorAbove = 1
	return &machine{bench: b, rapid: t, clerks: map[string]*clerk{"p1": {name: "p1"}, "p2": {name: "p2"}}}
}

func (m *machine) clerk(t *rapid.T) *clerk {
	return m.clerks[rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "clerk")]
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"time passes":   m.passTime,
		"command":       m.command,
		"answer":        m.answer,
		"a worker pops": m.pop,
		"claim":         func(t *rapid.T) { m.claimSome(t, m.clerk(t)) },
		"look":          func(t *rapid.T) { m.look(t, m.clerk(t)) },
		"work":          func(t *rapid.T) { m.work(t, m.clerk(t)) },
		"dispatch":      func(t *rapid.T) { m.dispatch(t, m.clerk(t)) },
		"round":         m.round,
		"another round": m.round,
		"a busy minute": m.minute,
		"adopt":         m.adoptSome,
		"park":          func(t *rapid.T) { m.park(t, m.clerk(t)) },
		"release":       func(t *rapid.T) { m.release(t, m.clerk(t)) },
		"send again":    m.sendAgain,
		"":              m.check,
	}
}

func (m *machine) passTime(t *rapid.T) {
	steps := []time.Duration{time.Millisecond, time.Second, time.Minute, 11 * time.Minute, 13 * time.Hour, -time.Minute, -time.Hour}
	m.now = m.now.Add(rapid.SampledFrom(steps).Draw(t, "by"))
}

func (m *machine) command(t *rapid.T) {
	uid := rapid.SampledFrom(modelNames).Draw(t, "uid")
	text := rapid.SampledFrom(list{
		`{"type":"put","uid":%q,"payload":{"n":1}}`, `{"type":"put","uid":%q,"payload":{"n":3}}`,
		`{"type":"put","uid":%q,"payload":{"n":2},"policy":"strict"}`,
		`{"type":"put","uid":%q,"payload":{"n":1},"policy":"watched"}`, `{"type":"put","uid":%q,"payload":{"n":2},"policy":"warned"}`,
		`{"type":"put","uid":%q,"payload":{"n":1},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01"}`,
		`{"type":"put","uid":%q,"refresh":"now"}`, `{"type":"put","uid":%q,"labels":{"tenant":"t1","kind":"feed"}}`, `{"type":"put","uid":%q,"labels":{"tenant":"t2"}}`, `{"type":"run","uid":%q}`, `{"type":"run","uid":%q,"force":true}`,
		`{"type":"enable","uid":%q}`, `{"type":"disable","uid":%q,"reason":"late"}`, `{"type":"remove","uid":%q}`,
	}).Draw(t, "command")
	text = fmt.Sprintf(text, uid)
	if id := rapid.IntRange(0, 5).Draw(t, "id"); id < 4 { // few, so that some are the same
		text = fmt.Sprintf(`%s,"command_id":"c%d","reply_to":"x","by":"ann"}`, strings.TrimSuffix(text, "}"), id)
	}
	m.send("-control", text)
}

func (m *machine) answer(t *rapid.T) {
	text := rapid.SampledFrom(list{
		`{"type":"success"`, `{"type":"success","changed":false`, `{"type":"failure","reason":"503"`, `{"type":"failure","retryable":false`,
		`{"type":"failure","reason":"row 17 of m1","error_type":"parse"`, `{"type":"failure","reason":"row 9 of m2","error_type":"parse"`,
		`{"type":"postponed","retry_after":30`, `{"type":"interrupted"`, `{"type":"started","worker":"w"`,
		`{"type":"user_friendly_status","status":"half","progress":50`,
	}).Draw(t, "answer")
	state := m.view()
	running, _ := state[":running"].(scores)
	uid := rapid.SampledFrom(append(slices.Sorted(maps.Keys(running)), modelNames...)).Draw(t, "uid")
	fields, _ := state[":model:"+uid].(hash)
	attempt := fields["attempt_uid"]
	if attempt == "" || rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		attempt = rapid.SampledFrom(append(list{"unknown"}, m.uids...)).Draw(t, "attempt")
	}
	m.send("-output", fmt.Sprintf(`%s,"big_table_uid":%q,"refresh_attempt_uid":%q}`, text, uid, attempt))
}

func (m *machine) send(key, message string) {
	m.seed(keys{key: list{message}})
	m.sent++
}

func (m *machine) pop(*rapid.T) { m.redis.LPop(context.Background(), m.Keys.Input) }

// minute lets models be stored, started and answered.
func (m *machine) minute(t *rapid.T) {
	for range 2 {
		m.command(t)
		m.answer(t)
		m.round(t)
	}
	m.passTime(t)
}

// round is the usual order of things, so that models get on.
func (m *machine) round(t *rapid.T) {
	c := m.clerk(t)
	m.claimSome(t, c)
	m.look(t, c)
	if rapid.Bool().Draw(t, "a worker is quick") {
		m.pop(t)
	}
	m.work(t, c)
	m.dispatch(t, c)
}

func (m *machine) claimSome(t *rapid.T, c *clerk) {
	c.messages = m.claim(c.name, rapid.IntRange(1, 8).Draw(t, "limit"))
}

// look reads everything that a clerk decides on.
func (m *machine) look(_ *rapid.T, c *clerk) {
	records, err := m.Load(context.Background(), modelNames)
	for uid, record := range records {
		if record.Fault != "" {
			m.rapid.Fatalf("%s was read as %+v", uid, record)
		}
	}
	if c.records = records; err != nil {
		m.rapid.Fatal(err)
	}
}

// lookIfBlind lets a clerk act on what it remembers, if it remembers anything.
func (m *machine) lookIfBlind(t *rapid.T, c *clerk) {
	if c.records == nil || rapid.IntRange(0, 2).Draw(t, "fresh") > 0 {
		m.look(t, c)
	}
}

// work decides about every message of a clerk as a poller does, and commits.
func (m *machine) work(t *rapid.T, c *clerk) {
	m.lookIfBlind(t, c)
	policies, err := m.Policies(context.Background(), list{"", "strict", "watched", "warned"})
	if err != nil {
		m.rapid.Fatal(err)
	}
	var batch []Item
	taken := rapid.Bool().Draw(t, "what runs was found to be taken")
	for _, entry := range c.messages {
		item := Item{Message: Claimed{entry}}
		var outcome model.Outcome
		item.Transition, item.UID, outcome = c.decide(item.Message, policies, taken, m.now)
		item.Counter, item.Reason = string(outcome), string(outcome)
		if item.Message.FromControl() {
			command, _ := model.DecodeCommand([]byte(item.Message.Raw()))
			item.CommandID, item.Reply = command.ID, Reply{command.ReplyTo, command.Reply(outcome, errors.New("refused"), m.now)}
			if command.ReplyTo == "" {
				item.Reply = Reply{}
			}
		}
		batch = append(batch, item)
	}
	c.messages = nil
	m.settleDuplicates(c, batch, m.run(c, batch, roomy))
}

// settleDuplicates settles the commands that were refused for their ids.
func (m *machine) settleDuplicates(c *clerk, batch []Item, codes []Code) {
	var again []Item
	for i, code := range codes {
		if code == CodeDuplicate {
			again = append(again, Item{Message: batch[i].Message, Counter: "duplicate", Reply: batch[i].Reply})
		}
	}
	m.run(c, again, roomy)
}

// decide turns a message into a transition, or says why it changes nothing.
func (c *clerk) decide(claimed Claimed, policies map[string]policy.Policy, taken bool, now time.Time) (*Transition, string, model.Outcome) {
	if !claimed.FromControl() {
		message, _ := model.Wire{}.DecodeMessage([]byte(claimed.Raw()))
		record := c.records[message.UID]
		decision, outcome := record.Handle(message, now)
		if outcome != model.Applied {
			return nil, message.UID, outcome
		}
		return record.Decide(decision, now), message.UID, outcome
	}
	command, _ := model.DecodeCommand([]byte(claimed.Raw()))
	record := c.records[command.UID]
	record.Taken = taken
	decision, outcome, err := record.Execute(&command, model.Policies{ByName: policies}, record.Exists, now)
	if err != nil {
		return nil, command.UID, "malformed"
	}
	if outcome != model.Applied {
		return nil, command.UID, outcome
	}
	return record.Decide(decision, now), command.UID, outcome
}

// dispatch starts what is due and ends what has expired, as a dispatcher does.
func (m *machine) dispatch(t *rapid.T, c *clerk) {
	m.lookIfBlind(t, c)
	due := m.readDue(3)
	var batch []Item
	for _, uid := range due.Expired {
		batch = append(batch, Item{Transition: c.expire(c.records[uid], rapid.Bool().Draw(t, "taken"), m.now)})
	}
	for _, uid := range slices.Concat(due.Urgent, due.Due) {
		m.attempts++
		m.uids = append(m.uids, fmt.Sprint("a", m.attempts))
		batch = append(batch, Item{Transition: c.start(c.records[uid], m.uids[len(m.uids)-1], m.now)})
	}
	for _, uid := range due.Ages {
		batch = append(batch, Item{Transition: c.age(c.records[uid], m.now)})
	}
	m.run(c, batch, rapid.IntRange(1, 6).Draw(t, "max queued"))
}

func (c *clerk) age(record *Record, now time.Time) *Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case record.FreshnessAt().IsZero() || record.FreshnessAt().After(now):
		return record.Mend()
	default:
		return record.Decide(record.ChangeFreshness(now), now)
	}
}

// park lets models that are due wait for a gate, and parked ones for another.
func (m *machine) park(t *rapid.T, c *clerk) {
	m.lookIfBlind(t, c)
	gate := rapid.SampledFrom([]model.Blocker{"hold:h1", "hold:h2"}).Draw(t, "gate")
	look := m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "look"))
	var batch []Item
	for _, uid := range modelNames {
		if record := c.records[uid]; record.Exists && (record.Due(m.now) || record.Parked()) {
			batch = append(batch, Item{Transition: record.Decide(record.Park(gate, look, m.now), m.now)})
		}
	}
	m.run(c, batch, roomy)
}

// release lets parked models go on, at once or later.
func (m *machine) release(t *rapid.T, c *clerk) {
	m.lookIfBlind(t, c)
	var batch []Item
	for _, uid := range modelNames {
		record := c.records[uid]
		switch {
		case !record.Exists || !record.Parked():
		case rapid.Bool().Draw(t, "at once"):
			m.attempts++
			m.uids = append(m.uids, fmt.Sprint("a", m.attempts))
			batch = append(batch, Item{Transition: record.Decide(record.Admit(m.now, m.uids[len(m.uids)-1]), m.now)})
		default:
			batch = append(batch, Item{Transition: record.Decide(record.Release(m.now.Add(time.Minute), m.now), m.now)})
		}
	}
	m.run(c, batch, roomy)
}

func (c *clerk) start(record *Record, attemptUID string, now time.Time) *Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case !record.Due(now):
		return record.Mend()
	default:
		return record.Decide(record.Start(now, attemptUID), now)
	}
}

func (c *clerk) expire(record *Record, taken bool, now time.Time) *Transition {
	switch {
	case !record.Exists:
		return record.Remove()
	case !record.Running() || record.DeadlineAt.After(now):
		return record.Mend()
	}
	if !record.ProcessingAt.IsZero() || taken {
		return record.Decide(record.Expire(now), now)
	}
	return record.Decide(record.Withdraw(now), now)
}

// run commits a batch; a clerk that was refused anything forgets what it knew.
func (m *machine) run(c *clerk, batch []Item, maxQueued int) []Code {
	if len(batch) == 0 {
		return nil
	}
	c.batch, c.mark, c.at = batch, maxQueued, m.now
	before := m.view()
	got, err := m.Commit(context.Background(), Batch{Now: m.now, Items: batch, Owner: c.name, MaxQueued: maxQueued})
	if err != nil {
		m.rapid.Fatal(err)
	}
	last := map[string]*Transition{}
	for i, code := range got {
		if code != CodeApplied {
			c.records = nil
			continue
		}
		if before = nil; batch[i].Message.Entry != "" {
			m.handled++
		}
		if t := batch[i].Transition; t != nil {
			last[t.uid] = t
		}
	}
	after := m.view()
	if before != nil {
		m.equal("what a refused batch changes", before, after)
	}
	for uid, t := range last {
		fields, _ := after[":model:"+uid].(hash)
		m.equal("the model that was decided", m.decided(t, fields), fields)
	}
	return got
}

func (m *machine) sendAgain(t *rapid.T) {
	c := m.clerk(t)
	now := m.now
	if c.batch != nil {
		m.now = c.at
	}
	m.run(c, c.batch, c.mark)
	m.now = now
}

func (m *machine) adoptSome(t *rapid.T) {
	pair := rapid.SampledFrom([][2]string{{"p1", "p2"}, {"p2", "p1"}}).Draw(t, "who")
	lease := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t, "lease")
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	m.adopt(pair[0], pair[1], lease, limit)
}

func (m *machine) equal(what string, want, got any) {
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		m.rapid.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAnyOrderOfStaleDecisionsKeepsTheInvariants(t *testing.T) {
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		b := newBench(t, s)
		rapid.Check(t, func(t *rapid.T) {
			s.Flush(b.t)
			b.seed(keys{":policies": hash{
				"strict":  `{"timeout":"1m","retries":[0],"on_exhausted":"give_up"}`,
				"watched": `{"timeout":"10m","retries":[0],"on_exhausted":"give_up","fresh_within":"1h"}`,
				"warned":  `{"timeout":"10m","retries":[0],"on_exhausted":"next_planned","fresh_within":"13h","warn_within":"2m"}`,
			}})
			t.Repeat(newMachine(t, b).actions())
		})
	})
}
