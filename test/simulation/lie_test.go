package simulation

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// lie is a planted bug: another script, or another store.
type lie struct {
	name    string
	file    string            // of the script
	replace map[string]string // what stands there once -> what is run instead
	store   func(*scripts.Store) queue
	slow    bool // it takes seconds to be found
}

const (
	applying  = "apply-transitions.lua"
	claiming  = "claim-messages.lua"
	adopting  = "adopt-messages.lua"
	settling  = "settle-messages.lua"
	looking   = "read-due.lua"
	taking    = "take-attempts.lua"
	answering = "answer-attempts.lua"
	handing   = "hand-back-attempts.lua"
)

// lies are the planted bugs that the simulation must find.
var lies = []lie{
	{name: "rev is not compared", file: applying, replace: map[string]string{"(is[1] or '') ~= rev or ": ""}},
	{name: "rev and uid are not compared", file: applying, replace: map[string]string{"refused[uid] or (is[1] or '') ~= rev or (is[2] or '') ~= attempt": "false"}},
	{name: "the claimed entry is not looked for", file: applying, replace: map[string]string{"message ~= '' and not redis.call('LPOS', claimed, message)": "false"}},
	{name: "the claimed entry is removed before the checks", file: applying,
		replace: map[string]string{"message ~= '' and not redis.call('LPOS', claimed, message)": "message ~= '' and redis.call('LREM', claimed, 1, message) == 0"}},
	{name: "the claimed entry stays", file: applying, replace: map[string]string{"if message ~= '' then redis.call('LREM', claimed, 1, message) end": ""}},
	{name: "the entry to take back is not looked for", slow: true, file: applying, replace: map[string]string{"back ~= '' and not redis.call('LPOS', input, back)": "false"}},
	{name: "the entry to take back stays", file: applying, replace: map[string]string{" elseif back ~= '' then redis.call('LREM', input, 1, back) end": " end"}},
	{name: "the high-water mark is forgotten", file: applying, replace: map[string]string{"redis.call('LLEN', input) >= tonumber(ARGV[1])": "false"},
		store: func(s *scripts.Store) queue { return roomy{s} }},
	{name: "a wrong score for due", file: applying, replace: map[string]string{"score(due, uid, due_ms)": "score(due, uid, due_ms == '' and '' or due_ms + 1)"}},
	{name: "the deadline is not scored", file: applying, replace: map[string]string{" score(running, uid, running_ms)": ""}},
	{name: "a model leaves no set", file: applying, replace: map[string]string{"if ms == '' then redis.call('ZREM', set, uid) else": "if ms ~= '' then"}},
	{name: "mend is missing", slow: true, file: applying, replace: map[string]string{" score(due, uid, due_ms)": " if #set + #del > 0 then score(due, uid, due_ms) end"}},
	{name: "a start is pushed twice", file: applying, replace: map[string]string{"redis.call('RPUSH', input, push)": "redis.call('RPUSH', input, push, push)"}},
	{name: "deleted fields stay", file: applying, replace: map[string]string{"redis.call('HDEL', hash, unpack(del))": "redis.call('EXISTS', hash)"}},
	{name: "the journal is forgotten", file: applying, replace: map[string]string{"if #event > 0 then": "if #event > 20 then"}},
	{name: "the outbox is forgotten", file: applying, replace: map[string]string{"if #notice > 0 then": "if false then"}},
	{name: "counters count twice", file: applying, replace: map[string]string{"'HINCRBY', stats, name, 1": "'HINCRBY', stats, name, 2"}},
	{name: "removed models keep their payload", file: applying, replace: map[string]string{"redis.call('DEL', hash, body, history)": "redis.call('DEL', body, history)"}},

	{name: "what was claimed before is not replayed", file: claiming,
		replace: map[string]string{"local room = limit": "local old = #entries local room = limit", "return {now, entries}": "return {now, {unpack(entries, old + 1)}}"}},
	{name: "a claim trims before it is applied", file: claiming,
		replace: map[string]string{"return {now, entries}": "redis.call('DEL', claimed) return {now, entries}"}},
	{name: "a poller gives no sign of life", file: claiming, replace: map[string]string{"redis.call('ZADD', pollers, now, owner)": ""}},
	{name: "a claim pops once too often", file: claiming, replace: map[string]string{"redis.call('RPUSH', claimed, entries[#entries])": "if #entries < 4 then redis.call('RPUSH', claimed, entries[#entries]) end"}},

	{name: "adopted messages are dropped", file: adopting, replace: map[string]string{"redis.call('LMOVE', orphan, claimed, 'LEFT', 'RIGHT')": "redis.call('LPOP', orphan)"}},
	{name: "a poller is forgotten with messages left", file: adopting, replace: map[string]string{"if redis.call('LLEN', orphan) == 0 then redis.call('ZREM', pollers, owner) end": "redis.call('ZREM', pollers, owner)"}},
	{name: "nothing is ever adopted", slow: true, file: adopting, replace: map[string]string{"if not seen or": "if true or"}},

	{name: "what is settled is not looked for", file: settling, replace: map[string]string{"if redis.call('LPOS', claimed, message) then": "if true then"}},
	{name: "what is settled stays", file: settling, replace: map[string]string{"    redis.call('LREM', claimed, 1, message)\n": ""}},
	{name: "what is settled is not counted", file: settling, replace: map[string]string{"redis.pcall('HINCRBY', stats, counter, 1)": ""}},
	{name: "rejected messages are not kept", file: settling, replace: map[string]string{"redis.call('RPUSH', rejected, reject)": ""}},

	{name: "deadlines are ignored", file: looking, replace: map[string]string{"past(due), past(running)": "past(due), {}"}},
	{name: "due models are ignored when many wait", slow: true, file: looking, replace: map[string]string{"past(due), past(running)": "redis.call('ZCARD', due) > 1 and {} or past(due), past(running)"}},

	{name: "a pool is told of entries once", slow: true, file: taking, replace: map[string]string{"if redis.call('LLEN', taken) > known then": "if false then"}},
	{name: "a pool pops", file: taking, replace: map[string]string{"redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')": "redis.call('LPOP', input)"}},
	{name: "a taken attempt stays in line", file: taking, replace: map[string]string{"local entry = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')": "local entry = redis.call('LINDEX', input, 0) if entry then redis.call('RPUSH', taken, entry) end"}},
	{name: "an answer leaves the entry", file: answering, replace: map[string]string{"redis.call('LREM', taken, 1, entry) == 1": "redis.call('LPOS', taken, entry)"}},
	{name: "a forgotten pool answers", slow: true, file: answering, replace: map[string]string{"if ends == '' or redis.call('LREM', taken, 1, entry) == 1 then": "redis.call('LREM', taken, 1, entry) if true then"}},
	{name: "an answer is not pushed", file: answering, replace: map[string]string{"if message ~= '' then": "if message ~= '' and ends == '' then"}},
	{name: "what is handed back is dropped", slow: true, file: handing, replace: map[string]string{"redis.call('LMOVE', taken, input, 'RIGHT', 'LEFT')": "redis.call('LPOP', taken)"}},
	{name: "nothing is ever handed back", slow: true, file: handing, replace: map[string]string{"while redis.call('LMOVE', taken, input, 'RIGHT', 'LEFT') do": "while false do"}},

	{name: "taking back is forgotten", store: func(s *scripts.Store) queue { return takesNothingBack{s} }},
	{name: "nobody looks into the input list", slow: true, store: func(s *scripts.Store) queue { return blindToInput{s} }},
	{name: "the fence is that of whoever answers", slow: true, store: func(s *scripts.Store) queue { return &believer{Store: s} }},
	{name: "what was claimed is taken for handled", store: func(s *scripts.Store) queue { return unclaimed{s} }},
	{name: "messages are settled before they are decided", slow: true, store: func(s *scripts.Store) queue { return hasty{s} }},
	{name: "a start that is not due", slow: true, store: func(s *scripts.Store) queue { return early{s} }},
}

// takesNothingBack leaves withdrawn attempts in the input list.
type takesNothingBack struct{ *scripts.Store }

func (s takesNothingBack) Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error) {
	for _, t := range transitions {
		t.TakeBack = ""
	}
	return s.Store.Apply(ctx, transitions, owner, maxQueued, now)
}

// blindToInput takes every attempt for one that a worker has taken.
type blindToInput struct{ *scripts.Store }

func (blindToInput) Queued(context.Context) (map[string]string, error) { return nil, nil }

// believer takes the uid of a message for that of the running attempt.
type believer struct {
	*scripts.Store
	claimed []scripts.Claimed
}

func (s *believer) Claim(ctx context.Context, owner string, limit int) (now time.Time, claimed []scripts.Claimed, err error) {
	now, s.claimed, err = s.Store.Claim(ctx, owner, limit)
	return now, s.claimed, err
}

func (s *believer) OpenDesk(ctx context.Context, uids []string, commands []*model.Command) (*scripts.Desk, error) {
	desk, err := s.Store.OpenDesk(ctx, uids, commands)
	for _, claimed := range s.claimed {
		message, decodeErr := model.DecodeMessage([]byte(claimed.Raw()))
		if err != nil || decodeErr != nil || claimed.FromControl() || desk.Records[message.UID] == nil {
			continue
		}
		if record := desk.Records[message.UID]; record.LastAttemptUID == message.AttemptUID {
			record.LastAttemptUID = ""
			*record = scripts.Record{Model: record.Model} // a duplicate is of a model that nobody knows
		}
	}
	return desk, err
}

// unclaimed applies without the message that asked for it.
type unclaimed struct{ *scripts.Store }

func (s unclaimed) Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error) {
	for _, t := range transitions {
		t.Claimed = ""
	}
	return s.Store.Apply(ctx, transitions, owner, maxQueued, now)
}

// hasty counts every message as unchanged as soon as it is claimed.
type hasty struct{ *scripts.Store }

func (s hasty) Claim(ctx context.Context, owner string, limit int) (time.Time, []scripts.Claimed, error) {
	now, claimed, err := s.Store.Claim(ctx, owner, limit)
	var settlements []scripts.Settlement
	for _, entry := range claimed {
		settlements = append(settlements, scripts.Settlement{Claimed: entry, Counter: "unchanged"})
	}
	if _, settleErr := s.Settle(ctx, settlements, owner, now); settleErr != nil {
		return now, nil, settleErr
	}
	return now, claimed, err
}

// roomy sees an empty input list.
type roomy struct{ *scripts.Store }

func (s roomy) ReadDue(ctx context.Context, limit int) (scripts.Due, error) {
	due, err := s.Store.ReadDue(ctx, limit)
	due.Queued = 0
	return due, err
}

// early reads the clock an hour fast.
type early struct{ *scripts.Store }

func (s early) ReadDue(ctx context.Context, limit int) (scripts.Due, error) {
	due, err := s.Store.ReadDue(ctx, limit)
	due.Now = due.Now.Add(time.Hour)
	due.Due, due.Expired = []string{"m1", "m2", "m3"}, nil
	return due, err
}

// enough is how many seeds may pass before a lie is found.
const enough = 400

func TestEveryPlantedBugIsFound(t *testing.T) {
	for _, told := range lies {
		t.Run(told.name, func(t *testing.T) {
			t.Parallel()
			if told.slow {
				long.Only(t)
			}
			ran, failed, err := runSeeds(t, told, 1, enough, 1)
			if err == nil {
				t.Fatalf("not found in %d seeds", ran)
			}
			t.Logf("found by seed %d: %.200v", failed, err)
		})
	}
}
