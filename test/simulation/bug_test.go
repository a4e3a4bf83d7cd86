package simulation

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// bug is a planted bug: another line of a script, or another store.
type bug struct {
	name  string
	mark  string                    // of the line of a script or an include, which ends with it: --@ mark
	file  string                    // of the script, if the mark is not enough
	line  string                    // the replacement
	lie   liar                      // what the store says else, or
	store func(fixture.Part) queue  // another store
	over  func(*ahead) poller.Store // or one that pollers have whose rounds overlap
	first uint64                    // the seed to begin with, as one near it has found it; 0: 1

	believed func(*model.Model) // what daemons and decide believe of a model alike

	// Where it shows: only such worlds are searched, and each run has its share of them.
	pools, queueCircuit, hands, floors, rules, waits, steers, ages, moves, few, back, timed, silent, doubts, away, lines, alone bool
	keyed                                                                                                                       string // the policy that most models have there; empty: any
	deeds                                                                                                                       deeds  // what operators mostly do there; empty: anything
}

// bugs are the planted bugs that the simulation must find.
var bugs = slices.Concat([]bug{
	{name: "rev is not compared", mark: "compare",
		line: "return (reply[2] or '') ~= second and code"},
	{name: "rev and uid are not compared", mark: "compare", line: "return false"},
	{name: "the claimed entry is not looked for", first: 4, mark: "check", line: unchecked("gone", "t.changes")},
	{name: "the claimed entry is removed before the checks", mark: "check",
		line: checks + " if check.run == verbs.gone and not refusal then verbs.settle(args[1]) end"},
	{name: "the claimed entry stays", first: 223, mark: "claimed is removed"},
	{name: "what is done in front stays", mark: "front is removed", line: "done = done"},
	{name: "the entry to take back is not looked for", mark: "taken", line: "return false"},
	{name: "the entry to take back stays", first: 9, mark: "take back"},
	{name: "the high-water mark is forgotten", first: 12, mark: "full", line: "return false",
		lie: liar{due: func(d *store.Due) { d.Queued = 0 }}},
	{name: "a wrong score for due", mark: "group", line: rescored("due", "list[i] + 1")},
	{name: "the deadline is not scored", mark: "group", line: neverIn("running")},
	{name: "a model leaves no set", mark: "group", line: uncollected("group.args[1] == 'ZREM'")},
	{name: "mend is missing", mark: "collect",
		line: "local told = not t.changes" +
			" for _, step in ipairs(steps) do told = told or step.args[1] == 'HSET' or step.args[1] == 'HDEL' end" +
			" list[#list + 1] = told and ARGV[from + adds[i + 1]] or nil"},
	{name: "a start is pushed twice", mark: "push", line: "pushed[#pushed + 1] = entry pushed[#pushed + 1] = entry"},
	{name: "changed fields stay as they were", mark: "step", line: without(does("HSET", ":model:"))},
	{name: "deleted fields stay", mark: "step", line: without(does("HDEL", ":model:"))},
	{name: "the journal is forgotten", mark: "step", line: without(does("XADD", ":journal$"), "step.n <= 23")},
	{name: "creates are forgotten", mark: "step", line: without(does("XADD", ":journal$"), "args[5] == 'create'")},
	{name: "the outbox is forgotten", first: 18, mark: "step", line: without(does("XADD", ":outbox$"))},
	{name: "counters count twice", mark: "last", line: "if step.count then step.args[step.count] = 2 * step.applied end run(step)"},
	{name: "removed models stay without their payload", mark: "step", line: removed("args[3], args[4]")},
	{name: "removed models leave their payload alone behind", mark: "step", line: removed("args[2], args[3]")},
	{name: "what is shared is written for the first of a batch only", mark: "collect",
		line: "list[#list + 1] = t.applied == 0 and ARGV[from + adds[i + 1]] or nil"},
	{name: "few items are not checked", alone: true, mark: "check alone", line: "code = nil"},
	{name: "few items lose their last step", alone: true, mark: "alone", line: "reply = at + words + 1 < stop and command(unpack(ARGV, at + 1 + before, at + words))"},
	{name: "few items leave no set", alone: true, mark: "leave"},
	{name: "policies are not stored with their models", mark: "step", line: without(does("HSETNX", ":policies$"))},

	{name: "a command id is not looked for", mark: "check", line: unless("args[1] == 'ZSCORE'")},
	{name: "a command id is noted although it was refused by a conflict", first: 9, mark: "check",
		line: checks + " if refusal then for _, step in ipairs(steps) do local args = step.args if " + does("ZADD", ":commands$") + " then run(step) end end end"},
	{name: "a reply is pushed twice", mark: "keep",
		line: "if seconds then redis.pcall(command, key, entry) end local length = redis.pcall(command, key, entry)"},
	{name: "a reply is not pushed", mark: "keep", line: "local length = seconds and 0 or redis.pcall(command, key, entry)"},

	{name: "what is settled is not looked for", mark: "check", line: unchecked("gone", "not t.changes")},
	{name: "what is settled stays", mark: "step", line: without("step.run == verbs.settle and not t.changes")},
	{name: "what is settled is not counted", mark: "applied", line: "if t.changes then t.applied = t.applied + 1 end"},
	{name: "rejected messages are not kept", mark: "group", line: uncollected("group.args[1] == 'RPUSH'")},

	{name: "what was claimed before is not replayed", file: "claim-messages.lua", mark: "replay", line: "return {now, leads and 1 or 0, {unpack(entries, limit - room + 1)}, 0, {}}"},
	{name: "a claim trims before it is applied", file: "claim-messages.lua", mark: "replay", line: "redis.call('DEL', claimed) return {now, leads and 1 or 0, entries, 0, {}}"},
	{name: "a poller gives no heartbeat", file: "claim-messages.lua", mark: "heartbeat", line: "local alive = true"},
	{name: "a claim pops once too often", file: "claim-messages.lua", mark: "keep", line: "redis.call('RPUSH', kept_in, unpack(kept, first, math.min(3, last)))"},

	{name: "adopted messages are dropped", mark: "adopt", line: "redis.call('LPOP', entries)"},
	{name: "a poller is forgotten with messages left", first: 6, mark: "forget", file: "move-entries.lua", line: "if true then"},
	{name: "nothing is ever adopted", file: "move-entries.lua", mark: "expired", line: "if adopter ~= '' or found and found ~= seen then"},
	{name: "a heartbeat from the future counts", first: 13, back: true, file: "move-entries.lua", mark: "expired",
		line: "if lease and (not seen or now - lease < seen) or found and found ~= seen then"},

	{name: "deadlines are ignored", first: 4, file: "read-due.lua", mark: "expired", line: "local _, next_deadline = read_page(running, few_running, judged) local expired = {}"},
	{name: "due models are ignored when many wait", first: 132, file: "read-due.lua", mark: "due",
		line: "local is_due, next_due, due_count = read_page(due, few_due, now) if redis.call('ZCARD', due) > 1 then is_due = {} end"},

	{name: "a pool is told of entries once", first: 70, pools: true, file: "take-attempts.lua", mark: "replay", line: "if false then"},
	{name: "a pool pops", mark: "take", line: "entries[#entries + 1] = redis.call('LPOP', input)"},
	{name: "a taken attempt stays in line", mark: "take",
		line: "local entry = redis.call('LINDEX', input, 0) if entry then redis.call('RPUSH', taken, entry) end entries[#entries + 1] = entry"},
	{name: "an answer leaves the entry", file: "answer-attempts.lua", mark: "end", line: "if ends == '' or redis.call('LPOS', taken, entry) then"},
	{name: "an answer is not pushed", file: "answer-attempts.lua", mark: "push", line: "if message ~= '' and ends == '' then"},
	{name: "a forgotten pool answers", first: 29, pools: true, file: "answer-attempts.lua", mark: "end", line: "redis.call('LREM', taken, 1, entry) if true then"},
	{name: "a pool that has come back is requeued", first: 57, pools: true, file: "move-entries.lua", mark: "expired", line: "if lease and not seen then"},
	{name: "what is requeued is dropped", first: 154, pools: true, mark: "requeue", line: "redis.call('LPOP', entries)"},
	{name: "nothing is ever requeued", pools: true, mark: "requeue"},

	{name: "commands are applied by who does not lead", mark: "holder", line: "local leads = owner ~= ''"},
	{name: "a new leader claims before it finishes", mark: "unfinished", line: "local commands = {}"},
	{name: "a living leader loses the lead", file: "claim-messages.lua", mark: "hold", line: "leads = silence >= lease / 10 or silence < 0"},
	{name: "everybody leads", file: "claim-messages.lua", mark: "hold", line: "leads = true"},
	{name: "nobody leads", mark: "take the lead"},
	{name: "the command queue is filled from its front", file: "claim-messages.lua", mark: "keep", line: "redis.call(number and 'LPUSH' or 'RPUSH', kept_in, unpack(kept, first, last))"},
	{name: "what is applied stays in the command queue", mark: "command is removed"},
	{name: "the history is forgotten", mark: "keep", line: "local length = command == 'LPUSH' and 0 or redis.pcall(command, key, entry)"},
	{name: "the history is written at its end", mark: "keep", line: "local length = redis.pcall('RPUSH', key, entry)"},
	{name: "the history has no end", first: 14, mark: "newest in front"},
	{name: "removed models keep their history", mark: "step", line: removed("args[2], args[4]")},
	{name: "no dispatcher is woken", mark: "call"},
	{name: "dispatchers are woken for nothing", mark: "applied",
		line: "t.applied, wakes, wake = t.applied + 1, true, wake or string.match(KEYS[1], '^%w+') .. ':wake'"},
	{name: "wake calls pile up", mark: "wake", line: "if wakes and wake then"},
	{name: "what is over is requeued too", first: 16, pools: true, mark: "drop"},
	{name: "a heartbeat of a pool is not noted", file: "take-attempts.lua", mark: "heartbeat", line: "if most > 0 then redis.call('ZADD', workers, now, owner) end"},
	{name: "taking is no heartbeat", file: "take-attempts.lua", mark: "heartbeat", line: "if new ~= '' then redis.call('ZADD', workers, now, owner) end"},
	{name: "a poller that has come back is adopted", first: 19, file: "move-entries.lua", mark: "expired", line: "if found and found ~= seen or lease and not seen then"},
	{name: "living pollers are adopted", store: func(s fixture.Part) queue { return hastyHeir{s} }},
	{name: "pools are requeued when the clock has jumped", pools: true, store: func(s fixture.Part) queue { return impatient{s} }},
	{name: "living pools are requeued", first: 4, pools: true, store: func(s fixture.Part) queue { return hastyHeir{s} }},
	{name: "the circuit of the queue never opens", first: 71, queueCircuit: true, file: "measure-circuit.lua", mark: "open", line: "if false then"},
	{name: "the circuit of the queue is opened by few failures", first: 6, queueCircuit: true, file: "measure-circuit.lua", mark: "open",
		line: "if not opened and count.failed > 0 then"},
	{name: "the circuit of the queue never closes", first: 4, queueCircuit: true, file: "measure-circuit.lua", mark: "close", line: "elseif false then"},
	{name: "the circuit of the queue counts old attempts too", first: 323, queueCircuit: true, mark: "oldest", line: "if false then"},
	{name: "a measurement closes at once what somebody has opened", first: 10, queueCircuit: true, mark: "probed", line: "local probed = true"},
	{name: "to open an open circuit is told again", queueCircuit: true, mark: "notified once", line: "if true then"},
	{name: "what was counted before somebody opened the circuit closes it", first: 193, queueCircuit: true, file: "turn-circuit.lua", mark: "forget"},
	{name: "nobody looks at the circuit of the queue", queueCircuit: true, lie: liar{record: func(r *store.Record) { r.QueueCircuit.Open = false }}},

	// Fair to the owner
	{name: "an update of a taken attempt counts as applied to its entry", mark: "check",
		line: having("replaces", "other.run == verbs.replace") + unchecked("taken", "replaces")},
	{name: "no entry is ever found in line", first: 4, mark: "check",
		line: having("replaces", "other.run == verbs.replace") + unchecked("taken", "true") +
			" if check.run == verbs.taken then refusal = replaces and check.code end"},
	{name: "an update leaves the entry as it was", first: 4, mark: "in its place"},
	{name: "an update sends the entry to the end of the line", first: 11, mark: "in its place",
		line: "redis.call('LREM', input, 1, entry) redis.call('RPUSH', input, by)"},
	{name: "what an outdated attempt reports counts", lie: liar{record: func(r *store.Record) { r.Outdated = false }}},
	{name: "a save lifts what a hand has stopped", first: 9, lie: liar{record: func(r *store.Record) {
		if r.Disabled {
			r.DisabledBy = model.StoppedByPolicy
		}
	}}},
	{name: "a model is in both sets", mark: "group", line: stays("urgent")},
	{name: "what is urgent is due only", mark: "group",
		line: "if " + grouped("ZADD", "urgent") + " then" +
			" local later = {args = {'ZADD', (string.gsub(group.args[2], 'urgent$', 'due'))}, list = {unpack(list, first_of, last_of)}}" +
			" groups[#groups + 1] = later else " + writes + " end"},
	{name: "what is urgent is never read", file: "read-due.lua", mark: "urgent", line: "local is_urgent, next_urgent, urgent_count = {}, '', 0"},
	{name: "what is urgent comes last", hands: true, lie: liar{due: func(d *store.Due) { d.Due, d.Urgent = append(d.Due, d.Urgent...), nil }}},
	{name: "what is urgent fills the room", hands: true, lie: liar{due: func(d *store.Due) {
		if len(d.Urgent) > 0 {
			d.Due = nil
		}
	}}},
	{name: "the floor of a worker is forgotten", first: 56, floors: true, rules: true, lie: liar{record: func(r *store.Record) { r.NotBefore = time.Time{} }}},

	{name: "the clock of a dispatcher is fast", lie: liar{due: func(d *store.Due) { d.Now = d.Now.Add(2 * time.Second) }}},
	{name: "the clock of a poller is fast", lie: liar{claim: func(c *store.Claim) { c.Now = c.Now.Add(2 * time.Second) }}},

	{name: "a start draws the ticket of another", mark: "ticket"},
	{name: "the front is not noted", mark: "front"},
	{name: "the front stands still", first: 18, mark: "still in front"},
	{name: "nothing waits though much does", mark: "waits", line: "if newest == 0 or last == '' then",
		store: func(s fixture.Part) queue { return hollow{s} }},
	{name: "a deadline is spent in line twice", first: 122, waits: true, lie: liar{record: func(r *store.Record) { r.TakenAt = time.Time{} }}},
	{name: "an attempt counts as taken too early", first: 97, waits: true, store: func(s fixture.Part) queue { return premature{s} }},

	{name: "taking back is forgotten", first: 4, lie: liar{commit: func(i *store.Item) { i.Transition.TakeBack = "" }}},
	{name: "nobody looks into the input list", first: 4, mark: "taken", line: "return true"},
	{name: "the fence is that of whoever answers", first: 18, store: hearsay(believesMessage)},
	{name: "what was claimed is taken for handled", lie: liar{commit: func(i *store.Item) { i.Message = store.Claimed{} }}},
	{name: "messages are settled before they are decided", store: func(s fixture.Part) queue { return hasty{s} }},
	{name: "a walk forgets its step when it is killed", rules: true, store: func(s fixture.Part) queue { return &forgetful{Part: s} }},
	{name: "a bulk starts twice after a kill", first: 109, rules: true, store: func(s fixture.Part) queue {
		return relapsing{liar{Part: s, bulk: func(b *flow.Bulk) { b.Ticket = math.MaxInt }}, new(int)} // what was started before a step was repeated is over
	}},
	{name: "a model that waits for a retry is planned anew", first: 494, rules: true, lie: liar{read: func(r *store.Record, commands []*model.Command) {
		if commands == nil && r.Trigger == model.TriggerRetry && !r.Running() {
			r.Trigger, r.AttemptNo = model.TriggerPlanned, 0
		}
	}}},
	{name: "a fence falls with the clock", first: 4, back: true, believed: func(m *model.Model) { m.Fence = 0 }},
	{name: "a start that is not due", lie: liar{due: func(d *store.Due) {
		d.Now, d.Due, d.Expired = d.Now.Add(time.Hour), []string{"m1", "m2", "m3"}, nil
	}}},
}, steeredBugs, fleetBugs, timedBugs, aheadBugs, silentBugs, guardBugs, heardBugs, lineBugs)

// enough is how many seeds may pass before a bug is found.
const enough = 600

// TestEveryPlantedBugIsFound looks for each tenth, unless the long tests are to run.
func TestEveryPlantedBugIsFound(t *testing.T) {
	for i, planted := range bugs {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			if i%10 != 0 {
				long.Only(t)
			}
			ran, failed, err := runSeeds(t, planted, max(1, planted.first), enough, 1)
			if err == nil {
				t.Fatalf("not found in %d seeds", ran)
			}
			t.Logf("found by seed %d: %.200v", failed, err)
		})
	}
}

// steeredBugs are bugs of blockers, keys, indexes and bulks.
var steeredBugs = []bug{
	{name: "an end does not free its key", steers: true, mark: "step", line: without(does("ZREM", ":limit:"))},
	{name: "a slot is leaked by a kill", steers: true, mark: "step", line: "if " + takes + " then args[3] = '+inf' end " + runs},
	{name: "a start takes one of two keys", steers: true, mark: "step", line: earlier("ZADD", ":limit:") + without(takes, "earlier")},
	{name: "a full key lets one more through", steers: true, keyed: singlePolicy, mark: "check", line: unless(counted), lie: knowsNothingRunning},
	{name: "what is past its deadline holds no slot", first: 4, steers: true, keyed: singlePolicy, mark: "check",
		line: recounted("redis.call('ZCOUNT', args[2], now, '+inf')"), lie: knowsNothingRunning},
	{name: "a slot is given away twice", steers: true, keyed: ratedPolicy, mark: "check", line: unless("args[1] == 'GET'")},
	{name: "what is late for its slot starts at once", steers: true, keyed: ratedPolicy, store: bursting},
	{name: "who is told to wait loses his place", first: 345, steers: true, keyed: ratedPolicy, mark: "close the key",
		line: "redis.call('SET', key, string.format('%.0f %.0f', till, till) .. paced .. by, 'PX', lasts)"},
	{name: "who closes a key forgets its pace", first: 24, steers: true, keyed: ratedPolicy, mark: "close the key",
		line: "redis.call('SET', key, string.format('%.0f %.0f', free, till) .. by, 'PX', lasts)"},
	{name: "a start takes no slot", steers: true, mark: "step", line: without(does("SET", ":rate:"))},
	{name: "a key that has had enough stays open", first: 29, steers: true, keyed: ratedPolicy, mark: "close the key"},
	{name: "what goes on holds its key no longer", steers: true, mark: "step", line: without(does("ZADD", ":limit:"), "step.run == redis.pcall")},

	{name: "a start ignores the changes of holds", first: 17, steers: true, mark: "hold"},
	{name: "what is held counts towards giving up", first: 8, steers: true, keyed: tiredPolicy, lie: liar{record: func(r *store.Record) {
		if r.Parked() {
			r.ParkedSince = model.Never
		}
	}}},
	{name: "a parked model is forgotten", steers: true, mark: "recheck"},
	{name: "a parked model stands at no blocker", steers: true, mark: "wait", line: "list[#list] = nil"},
	{name: "one attempt too many is counted of a key", steers: true, keyed: singlePolicy, lie: liar{limiters: func(l *model.Limiters) {
		for _, limiter := range l.Keys {
			limiter.Running++
		}
	}}},
	{name: "a place of a key is counted twice", steers: true, keyed: singlePolicy, mark: "check", line: recounted("reply - 1"), lie: knowsNothingRunning},
	{name: "a blocker is forgotten with its models", steers: true, mark: "models wait", line: "if true then"},
	{name: "a blocker that was opened meanwhile is closed", first: 58, steers: true, deeds: holding, mark: "opened meanwhile", line: "if true then"},
	{name: "what has left a blocker stands there still", steers: true, mark: "step", line: without(does("ZREM", ":parked:"))},
	{name: "what is parked no more stands there still", steers: true, mark: "group", line: stays("parked")},

	{name: "a probe that never ends", first: 25, steers: true, keyed: triedPolicy, mark: "probe anew"},
	{name: "anybody closes a circuit", steers: true, keyed: triedPolicy, mark: "probe alone", line: "if false then"},
	{name: "a circuit never opens", steers: true, keyed: triedPolicy, mark: "circuit opens"},
	{name: "people are not told of an open circuit", steers: true, keyed: triedPolicy, mark: "listed"},
	{name: "an open circuit is forgotten that no model waits for", first: 4, steers: true, keyed: triedPolicy, mark: "models wait",
		line: "if redis.call('ZCARD', KEYS[(at + 10) / 4]) == 0 then"},
	{name: "a circuit never closes", steers: true, keyed: triedPolicy, mark: "circuit closes"},

	{name: "what fails is not listed", mark: "group", line: neverIn("failing")},
	{name: "what has succeeded is listed as failing", mark: "group", line: stays("failing")},
	{name: "what is enabled is listed as disabled", mark: "group", line: stays("disabled")},
	{name: "a label is not listed", steers: true, mark: "step", line: without(does("SADD", ":label:"))},
	{name: "a label stays", steers: true, mark: "step", line: without(does("SREM", ":label:"))},

	{name: "a late request undoes what was set since", first: 18, steers: true, deeds: holding, mark: "changed since", line: "if false then"},
	{name: "a command is carried out behind a later one", first: 59, steers: true, deeds: sending, mark: "in order", line: "if false then"},
	{name: "a command is carried out twice", steers: true, deeds: sending, file: "change-queue.lua", mark: "once", line: "if false then"},
	{name: "a change of what is set is not counted", steers: true, deeds: holding, mark: "change"},
	{name: "a bulk that steers starts twice after a kill", first: 4, steers: true, lie: liar{bulk: func(b *flow.Bulk) { b.Since, b.Ticket = model.Never, 1<<40 }}},
	{name: "two pollers move a bulk", first: 32, steers: true, deeds: walking, mark: "another step", line: "if is[1] ~= since or is[3] then"},
	{name: "a bulk is never over", steers: true, file: "move-bulk.lua", mark: "end"},
}

// fleetBugs are bugs of freshness, of fingerprints, of attempts that a hold takes back, and of moved models.
var fleetBugs = []bug{
	{name: "stale is told twice", ages: true, store: func(s fixture.Part) queue {
		return repeating{liar{Part: s, record: func(r *store.Record) {
			if r.Freshness == model.FreshnessStale {
				r.Freshness = model.FreshnessLate
			}
		}}}
	}},
	{name: "an owner is told stale twice", ages: true, mark: "step",
		line: "if " + does("XADD", ":outbox$") + " and args[5] == 'stale' then step.run(unpack(args, 1, step.n)) end " + runs},
	{name: "an owner is not told fresh beside recovered", first: 465, ages: true, mark: "step",
		line: earlier("XADD", ":outbox$") + without(does("XADD", ":outbox$"), "earlier")},
	{name: "a disabled model never goes stale", ages: true, store: func(s fixture.Part) queue {
		return sparing{s, func(r *store.Record) bool { return r.Disabled }}
	}},
	{name: "a parked model never goes stale", ages: true, steers: true, store: func(s fixture.Part) queue { return sparing{s, func(r *store.Record) bool { return r.Parked() }} }},
	{name: "nobody looks at ages", ages: true, store: func(s fixture.Part) queue {
		return sparing{s, func(*store.Record) bool { return true }}
	}},
	{name: "an age is not listed", ages: true, mark: "group", line: neverIn("stale_at")},
	{name: "what is stale grows older", ages: true, mark: "group", line: stays("stale_at")},
	{name: "what has succeeded is listed as never", ages: true, lie: liar{record: func(r *store.Record) {
		if r.Freshness == model.FreshnessNever {
			r.Freshness = model.Fresh
		}
	}}},
	{name: "what is late is not listed", ages: true, mark: "group", line: neverIn("late")},
	{name: "what is fresh again is listed as late", ages: true, mark: "group", line: stays("late")},
	{name: "what is stale is not listed", ages: true, mark: "group", line: neverIn("stale")},
	{name: "what is fresh again is listed as stale", ages: true, mark: "group", line: stays("stale")},

	{name: "a removed model is failing for ever", few: true, mark: "step",
		line: having("removes", "other.args[1] == 'DEL' and other.n == 4") + without("step.run == verbs.recover", "removes")},
	{name: "a fingerprint is never left", few: true, mark: "leave the error"},
	{name: "a fingerprint counts one model", few: true, mark: "join the error", line: "group.uids, group.began, group.models = last, group.began + 1, 1"},
	{name: "the models of a fingerprint are written for the first of a batch only", few: true, mark: "models of an error",
		line: "redis.call('ZINCRBY', errors, 1, group.id)"},
	{name: "fingerprints have no end", few: true, mark: "too many", line: "if id == 'other' then"},
	{name: "what is wanted again counts as a failure", lie: liar{record: func(r *store.Record) { r.Again = false }}},

	{name: "a cancelled attempt counts", steers: true, lie: liar{read: func(r *store.Record, commands []*model.Command) {
		if len(commands) > 0 && commands[0].Type == model.CommandType(model.BulkCancel) {
			r.AttemptNo++
		}
	}}},
	{name: "the late result of a cancelled attempt is applied", steers: true, store: hearsay(believesAnyResult)},
	{name: "a hold takes back what was started since", first: 31, steers: true, lie: liar{bulk: func(b *flow.Bulk) {
		if b.Action == model.BulkCancel {
			b.Ticket = 1 << 40
		}
	}}},
	{name: "a hold forgets what runs", first: 239, steers: true, store: func(s fixture.Part) queue { return halfHearted{s} }},

	{name: "an import loses the counters", first: 73, moves: true, lie: liar{export: func(r *store.Record) { r.TotalRetries, r.SuccessfulRetries, r.RetriedCycles = 0, 0, 0 }}},
	{name: "an import enables a model", first: 4, moves: true, lie: liar{export: func(r *store.Record) {
		if r.Disabled {
			r.Disabled, r.DisabledAt, r.DisabledBy, r.DisabledReason, r.DisabledWho, r.RefreshAt = false, time.Time{}, "", "", "", start
		}
	}}},
	{name: "an import loses the history", moves: true, mark: "step", line: without(does("LPUSH", ":history:"), "step.run == redis.call")},
	{name: "an import keeps what was told before", moves: true, mark: "step", line: without(does("DEL", ":history:"))},
	{name: "an import is written over what has changed", first: 59, moves: true, mark: "check",
		line: having("imports", "other.args[1] == 'DEL' and other.n == 2") + checks +
			" if imports and check.how == '&' and not refused[subject] then refusal = nil end"},

	{name: "what is urgent waits behind blockers", steers: true, lie: liar{due: func(d *store.Due) { d.Due, d.Urgent = append(d.Due, d.Urgent...), nil }}},
}
