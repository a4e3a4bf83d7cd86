package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

// tally is the state of a drill when everything has settled.
type tally struct {
	events   map[model.Event]int // of the journal
	errors   map[string]int      // failures by the type of their error
	starts   map[string]int      // by attempt uid
	ends     map[string]int      // by attempt uid
	ended    map[string]ending   // the last end of each attempt
	stall    time.Duration       // the longest time without an applied success
	stats    map[string]int64
	outdated int // of results: about a payload that was replaced
	results  int // results of workers that were applied
	handled  int // messages of workers that were handled in any way

	seen string    // behind the entry that was read last
	last time.Time // when the last success was applied
}

type ending struct {
	event model.Event
	at    time.Time
}

func newTally() *tally {
	return &tally{
		events: map[model.Event]int{}, errors: map[string]int{}, starts: map[string]int{}, ends: map[string]int{}, ended: map[string]ending{},
	}
}

var isEnd = map[model.Event]bool{
	model.EventSuccess: true, model.EventFailure: true, model.EventTimeout: true, model.EventWithdrawn: true,
	model.EventQueueTimeout: true, model.EventPostponed: true, model.EventInterrupted: true, model.EventOutdated: true,
}

// said are the events that messages of workers cause, and the counters of messages that caused none.
var (
	said   = []model.Event{model.EventLate, model.EventSuccess, model.EventFailure, model.EventPostponed, model.EventInterrupted, model.EventStarted}
	unsaid = []string{"stale", "duplicate", "unknown_model", "malformed", "no_uid", "unknown_type", "oversized", "broken_model"}
)

// read reads the entries added to the journal since it was last read.
func (d *drill) read(y *tally) {
	d.t.Helper()
	var entries []goredis.XMessage
	d.until("the journal", func() (ok bool, err error) {
		entries, err = d.clients.Read.XRange(d.ctx, d.store.Keys.Journal, cmp.Or(y.seen, "-"), "+").Result()
		return true, err
	})
	for _, entry := range entries {
		y.note(entry)
		y.seen = "(" + entry.ID
	}
}

func (d *drill) count() *tally {
	d.t.Helper()
	y := newTally()
	d.read(y)
	d.sum(y)
	return y
}

// sum adds the counters when nobody counts any more.
func (d *drill) sum(y *tally) {
	d.t.Helper()
	stats, err := report.Of(d.store).Stats(d.ctx)
	d.check("read the counters", err)
	y.stats = stats.Counters
	for _, event := range said {
		y.handled += y.events[event]
	}
	y.handled += y.outdated
	for _, counter := range unsaid {
		y.handled += int(y.stats[counter])
	}
	y.results = y.events[model.EventSuccess] + y.events[model.EventFailure] + y.outdated
}

func (y *tally) note(entry goredis.XMessage) {
	told := store.EntryFields(entry.Values)
	event := model.Event(fmt.Sprint(told["event"]))
	attempt := fmt.Sprint(told["attempt_uid"])
	at, _ := time.Parse(time.RFC3339, fmt.Sprint(told["at"]))
	y.events[event]++
	if event == model.EventOutdated && fmt.Sprint(told["reason"]) != "timeout" {
		y.outdated++
	}
	switch {
	case event == model.EventStart:
		y.starts[attempt]++
	case isEnd[event]:
		attempt = fmt.Sprint(told["last_attempt_uid"])
		y.ends[attempt]++
		y.ended[attempt] = ending{event, at}
	}
	if kind, failed := told["error_type"]; failed {
		y.errors[fmt.Sprint(kind)]++
	}
	if event != model.EventSuccess {
		return
	}
	if !y.last.IsZero() {
		y.stall = max(y.stall, at.Sub(y.last))
	}
	y.last = at
}

// audit checks the guarantees and logs the numbers of the drill.
func (d *drill) audit() *tally {
	d.t.Helper()
	y := d.count()
	d.checkAttempts(y)
	d.checkCounters(y)
	d.checkModels()
	lost := d.checkMessages(y)
	d.t.Logf("attempts started %d, results applied %d, stale %d, redone %d, lost %d, longest stall %s; the fault struck %d times", y.events[model.EventStart],
		y.results, y.stats["stale"]+y.stats["duplicate"], d.record.total()-y.results, lost, y.stall.Round(10*time.Millisecond), d.struck)
	return y
}

// checkAttempts checks that each started attempt ended once, and nothing else did.
func (d *drill) checkAttempts(y *tally) {
	d.t.Helper()
	for uid, count := range y.starts {
		failIf(d.t, count != 1 || y.ends[uid] != 1, "attempt %s: want one start and one end, got %d and %d", uid, count, y.ends[uid])
	}
	for uid := range y.ends {
		failIf(d.t, y.starts[uid] == 0, "attempt %s ended and never started", uid)
	}
}

// checkCounters checks that each event is counted as often as it is reported, except events of a fingerprint, which have no counter.
func (d *drill) checkCounters(y *tally) {
	d.t.Helper()
	for event, count := range y.events {
		failIf(d.t, event != "new_error" && int64(count) != y.stats[string(event)],
			"%s: the journal has %d, the counters %d", event, count, y.stats[string(event)])
	}
}

// checkModels checks that every model is enabled and idle, with no refresh left to do, and has been refreshed since the fault was over.
func (d *drill) checkModels() {
	d.t.Helper()
	records, err := d.store.Load(d.ctx, d.uids)
	d.check("read the models", err)
	for _, uid := range d.uids {
		m := records[uid].Model
		failIf(d.t, m.Disabled || m.AttemptUID != "" || !m.RefreshAt.IsZero() || m.LastSuccessAt.Before(d.healed.Add(-d.policy.Timeout)),
			"%s: want it enabled, idle and refreshed, got %+v", uid, m.State)
	}
}

// checkMessages checks that every acknowledged message was handled: applied, stale, duplicate or rejected. What was pushed without
// an answer may have been. It returns how many are gone, which is none unless Redis itself has gone back to an earlier state.
func (d *drill) checkMessages(y *tally) (lost int) {
	d.t.Helper()
	r := d.record
	r.mu.Lock()
	defer r.mu.Unlock()
	lost = max(0, r.acked-y.handled)
	failIf(d.t, d.cut.IsZero() && lost > 0 || y.handled > r.acked+r.unknown && !d.elsewhere,
		"want %d messages handled, and at most %d more whose push had no answer, got %d", r.acked, r.unknown, y.handled)
	for _, end := range r.ends {
		failIf(d.t, (d.cut.IsZero() || end.at.Before(d.cut)) && y.ends[end.attemptUID] != 1,
			"attempt %s: its result was acknowledged at %s and is nowhere", end.attemptUID, end.at)
	}
	return lost
}

// workerRecord is the workers' own knowledge of a drill, to be compared with Redis at the end.
type workerRecord struct {
	mu      sync.Mutex
	runs    map[string]int // guarded by mu: how often the work of each attempt was done
	acked   int            // guarded by mu: messages that Redis has acknowledged
	unknown int            // guarded by mu: pushes without an answer, which may have arrived
	refused int            // guarded by mu: pushes that Redis refused with an error
	ends    []end          // guarded by mu: of the acknowledged, those that end an attempt
}

type end struct {
	attemptUID string
	at         time.Time
}

func (r *workerRecord) ran(attemptUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[attemptUID]++
}

func (r *workerRecord) total() (total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.runs {
		total += count
	}
	return total
}

// pushed notes the fate of messages: an error that is no answer of Redis leaves it open.
func (r *workerRecord) pushed(err error, messages int, attemptUIDs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && redis.Answered(err):
		r.refused += messages
	case err != nil:
		r.unknown += messages
	default:
		r.acked += messages
		for _, uid := range attemptUIDs {
			r.ends = append(r.ends, end{uid, time.Now()})
		}
	}
}

// counted is a queue that notes what a pool pushes.
type counted struct {
	fixture.Part
	record *workerRecord
}

func (c counted) Answer(ctx context.Context, owner string, answers []store.Answer) ([]bool, error) {
	pushed, err := c.Pool.Answer(ctx, owner, answers)
	messages, ended := 0, []string{}
	for i, answer := range answers {
		if answer.Message == "" || err == nil && !pushed[i] {
			continue
		}
		messages++
		var entry fixture.Entry
		if answer.Ends && json.Unmarshal([]byte(answer.Message), &entry) == nil {
			ended = append(ended, entry.AttemptUID)
		}
	}
	c.record.pushed(err, messages, ended...)
	return pushed, err
}

// handle is the work of the pool: it takes a moment.
func (d *drill) handle(ctx context.Context, attempt *worker.Attempt) error {
	if rest(ctx, 5*time.Millisecond); ctx.Err() == nil {
		d.record.ran(attempt.AttemptUID)
	}
	return ctx.Err()
}

// entry is an attempt as workers read it.
type entry struct {
	fixture.Entry
	ReplyTo string `json:"reply_to"`
	Version int    `json:"version"` // of the payload
}

func (e entry) deadline() time.Time {
	at, _ := time.Parse(time.RFC3339, e.DeadlineAt)
	return at
}

// serve is a worker that knows two lists and JSON: it takes entries out of the input list for good, so many at once, and works on each until the
// context ends. An entry whose reply is lost is gone, and costs a deadline.
func serve(ctx context.Context, client goredis.UniversalClient, input string, most int64, work func(entry)) error {
	for ctx.Err() == nil {
		_, taken, err := client.BLMPop(context.WithoutCancel(ctx), time.Second, "left", most, input).Result()
		if err != nil && !errors.Is(err, goredis.Nil) {
			pause(ctx)
		}
		for _, raw := range taken {
			var e entry
			if err := json.Unmarshal([]byte(raw), &e); err != nil {
				return fmt.Errorf("read entry %s: %w", raw, err)
			}
			work(e)
		}
	}
	return nil
}

// push pushes a result until Redis says yes, and notes what Redis says.
func push(ctx context.Context, client goredis.UniversalClient, output string, event model.Event, e entry, note func(begun time.Time, err error)) {
	for {
		begun := time.Now()
		err := client.RPush(context.WithoutCancel(ctx), output, fixture.Result(string(event), e.UID, e.AttemptUID)).Err()
		note(begun, err)
		if err == nil || ctx.Err() != nil {
			return
		}
		pause(ctx)
	}
}

// foreignWorker succeeds with every attempt, after the given wait.
func (d *drill) foreignWorker(wait func(entry)) func(context.Context) error {
	return func(ctx context.Context) error {
		clients, store := d.connect(d.address)
		defer func() { _ = clients.Close() }()
		return serve(ctx, clients.Block, store.Keys.Input, 1, func(e entry) {
			wait(e)
			d.record.ran(e.AttemptUID)
			d.say(ctx, clients.Write, e)
		})
	}
}

// say pushes a success until Redis says yes.
func (d *drill) say(ctx context.Context, client goredis.UniversalClient, e entry) {
	push(ctx, client, d.store.Keys.Output, model.EventSuccess, e, func(_ time.Time, err error) { d.record.pushed(err, 1, e.AttemptUID) })
}

// pause is a worker's pause after an error of Redis.
func pause(ctx context.Context) { rest(ctx, 50*time.Millisecond) }

// rest waits for a while, unless the context ends before.
func rest(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
