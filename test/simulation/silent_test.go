package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// silentSaves are of models whose workers count as lost when they are silent, if they have announced signs of life.
var silentSaves = []string{
	`"policy":{"timeout":"5m","silent_after":"20s","retries":["1m","1m","next"]},"refresh":"now"`,
	`"policy":{"timeout":"1m","silent_after":"30s","retries":["0s","1m"],"on_exhausted":"give_up"},"refresh":"now"`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"none","silent_after":"20s","retries":["1m"]}`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"2m","fresh_within":"3m","warn_within":"1m","silent_after":"20s"},"refresh":"now"`,
}

func silentCommand(rng *rand.Rand, uid string) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d},%s}`, uid, rng.IntN(3), silentSaves[rng.IntN(len(silentSaves))])
}

// listen are worlds in which workers announce signs of life, drawn separately like the steered ones.
func (t *temper) listen(rng *rand.Rand, planted bug) {
	elsewhere := planted.name != "" && !planted.silent
	if t.silent = !elsewhere && !t.steers && !t.hands && !t.timed && rng.IntN(3) == 0 || planted.silent; t.silent {
		t.jumps = []time.Duration{time.Millisecond, time.Second, time.Second, 5 * time.Second, 15 * time.Second, -5 * time.Second}
		t.maxQueued += 3
	}
}

// announces are the further fields of a `started`.
func (w *workerRole) announces(name string) []string {
	fields := []string{fmt.Sprintf(`"worker":%q`, name)}
	if w.temper.silent {
		fields = append(fields, [][]string{{`"signs_every":5`}, {`"signs_every":"15s"`}, {`"signs_every":"PT5S"`}, {`"signs_every":0`}, nil}[w.rng.IntN(5)]...)
	}
	return fields
}

// lateSigns are signs of life of attempts that ended long ago, about models that another worker is heard of.
func (w *world) lateSigns() (signs []string) {
	for _, uid := range w.uids {
		if !silentAt(w.before.models[uid]).IsZero() {
			signs = append(signs, fmt.Sprintf(`{"type":"user_friendly_status","big_table_uid":%q,"refresh_attempt_uid":"a0"}`, uid))
		}
	}
	return signs
}

// silentAt reads from a hash when its attempt counts as lost unless it gives a sign of life; zero: never.
func silentAt(hash map[string]string) time.Time {
	heard, begun := instant(hash["heard_at"]), instant(hash["processing_at"])
	after, err := time.ParseDuration(hash["silent_after"])
	if err != nil || begun.IsZero() || heard.Before(begun) {
		return time.Time{}
	}
	return heard.Add(after)
}

// expires returns when an attempt ends without further signs of life.
func expires(hash map[string]string) time.Time {
	deadline, silent := instant(hash["deadline_at"]), silentAt(hash)
	if silent.IsZero() || deadline.Before(silent) {
		return deadline
	}
	return silent
}

// signed reports whether a sign of life of this very attempt was handled.
func (p *replay) signed(attemptUID string) bool {
	return slices.ContainsFunc(p.handled, func(claimed string) bool {
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		return claimed[0] == 'o' && err == nil && message.AttemptUID == attemptUID &&
			(message.Type == model.MessageStatus || message.Type == model.MessageStarted)
	})
}

// heard is a model about which its revision says that a sign of life came before an entry.
func (p *replay) heard(m *model.Model, rev string, at time.Time) {
	if m == nil || m.HeardAt.IsZero() || rev != strconv.FormatInt(p.rev(m.UID)+2, 10) {
		return
	}
	failIf(!p.signed(m.AttemptUID), "the revision has grown by two, and nothing was heard of %s", m.AttemptUID)
	p.steps[m.UID]++
	if m.HeardAt = at; at.Before(m.ProcessingAt) {
		m.HeardAt = m.ProcessingAt
	}
}

// checkHeard completes the wanted hash with the last sign of life. Only one of the running attempt may be heard, and it must be.
func (p *replay) checkHeard(want, got map[string]string) {
	uid := want["attempt_uid"]
	if uid == "" || silentAt(want).IsZero() || got["attempt_uid"] != uid || !p.signed(uid) {
		return
	}
	begun, heard := instant(want["processing_at"]), instant(got["heard_at"])
	now := slices.ContainsFunc(p.clock, func(at time.Time) bool { return heard.Equal(at) || at.Before(begun) && heard.Equal(begun) })
	failIf(!now, "a sign of life of %s was heard at %s, the clock has shown %v", uid, heard, p.clock)
	if got["heard_at"] != want["heard_at"] {
		want["heard_at"], want["rev"] = got["heard_at"], digits(count(want["rev"])+1)
	}
}

// gullible takes a message about an ended attempt for a sign of the one that runs.
type gullible struct{ fixture.Part }

func (s gullible) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	for i := range batch.Items {
		item := &batch.Items[i]
		message, err := model.Wire{}.DecodeMessage([]byte(item.Message.Raw()))
		if err != nil || item.Counter != string(model.Stale) && item.Counter != string(model.Duplicate) || item.Message.FromControl() {
			continue
		}
		records, err := s.Load(ctx, []string{item.UID})
		if err != nil {
			return nil, err
		}
		if r := records[item.UID]; r.Exists && r.ExpectsSigns() && message.AttemptUID != r.AttemptUID {
			decision, _ := r.Handle(model.Message{Type: model.MessageStatus, AttemptUID: r.AttemptUID}, batch.Now)
			item.Transition, item.Counter = r.Decide(decision, batch.Now), ""
		}
	}
	return s.Store.Commit(ctx, batch)
}

// silentBugs are bugs of signs of life.
var silentBugs = []bug{
	{name: "a sign of an old attempt extends", first: 70, silent: true, store: func(s fixture.Part) queue { return gullible{s} }},
	{name: "a sign is not heard", first: 30, silent: true, lie: liar{record: func(r *store.Record) { r.SilentAfter = 0 }}},
	{name: "the silence of a worker is not scored", silent: true, mark: "group",
		line: rescored("running", "math.max(tonumber(list[i]), now + 60000)")},
}
