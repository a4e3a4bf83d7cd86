package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// bound is how long a worker may take to notice that Redis has changed, and to end; a busy machine takes some seconds more.
const bound = 15*time.Second + 5*time.Second

// playMute lets the connections stay open and carry nothing: only a time limit of the worker finds out.
func playMute(ctx context.Context, s *stage) {
	s.succeeds(ctx, "a", succeed)
	s.within(ctx, 300*time.Millisecond, never) // it waits for the next
	s.mute()
	s.put(ctx, "b", succeed)
	s.must("takes again within 15 s when its connections have become mute", s.soon(ctx, bound, "b"), silence)
	s.put(ctx, "c", work{"do": "succeed", "after_ms": 500})
	s.inHand(ctx, "c")
	s.mute()
	s.must("answers within 15 s when they become mute during the work", s.soon(ctx, bound, "c"), silence)
	s.put(ctx, "d", work{"do": "succeed", "after_ms": forever})
	begun := s.taken(ctx, "d")
	s.proxy.freeze()
	s.must("ends within 15 s of SIGTERM though Redis does not answer", begun && s.worker.end(ctx, bound), "it had to be killed")
}

// mute lets the connections that are open carry nothing.
func (s *stage) mute() {
	s.proxy.freeze()
	s.proxy.restore()
}

// soon waits for the success of a model.
func (s *stage) soon(ctx context.Context, patience time.Duration, uid string) bool {
	return s.within(ctx, patience, func() bool { return s.times(uid, model.EventSuccess) > 0 })
}

// The parts of an outage: Redis is away until pauses that double have grown, then loads its data for longer than the longest pause.
const (
	absence = 4 * time.Second
	loading = 10 * time.Second
)

func never() bool { return false }

// playOutage has work end while Redis is away. It comes back as after a restart: it loads its data first.
func playOutage(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": absence.Milliseconds() / 2, "status": "begun"}) // it has not ended when its begin is heard of
	s.until(ctx, "a", model.EventStarted)
	s.within(ctx, time.Second, func() bool { return s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageStatus) > 0 }) // no reply is on its way
	s.proxy.away.Store(true)
	s.proxy.cut()
	s.proxy.restore()
	s.within(ctx, absence, never)
	s.proxy.refuse(loadingData)
	s.proxy.away.Store(false)
	begun := s.proxy.clock()
	s.within(ctx, loading, never)
	widest := s.proxy.widest(s.first(model.EventStart).AttemptUID, begun)
	s.should("pushes a result again every 2 s while Redis refuses it", widest < 3*time.Second, "a pause of "+widest.Round(time.Millisecond).String())
	s.proxy.refuse(refusal{})
	s.must("pushes what it holds within 2 s after Redis is back", s.soon(ctx, 5*time.Second, "a"), silence) // some seconds for a busy machine
	twice := s.counter(ctx, string(model.Stale), string(model.Duplicate))
	s.should("once", twice == 0, fmt.Sprintf("%d more messages", twice))
}

// playPoison has entries in line that have killed workers, before and behind others.
func playPoison(ctx context.Context, s *stage) {
	s.succeeds(ctx, "warm", succeed)
	line := []string{"a", "killer1", "b", "killer2", "c"}
	s.proxy.cut()
	for _, uid := range line {
		s.put(ctx, uid, work{"do": "succeed", "after_ms": 1000}) // long enough to be met by others on a busy machine
		s.until(ctx, uid, model.EventStart)
	}
	s.curse(ctx, "killer1", 2)
	s.curse(ctx, "killer2", 3)
	s.proxy.restore()
	for _, uid := range line {
		s.must("works on all, also on what has killed workers: "+uid, s.until(ctx, uid, model.EventSuccess), silence)
	}
	for _, uid := range []string{"killer1", "killer2"} {
		beside := strings.Join(s.beside(uid), ", ")
		s.should("works alone on what has killed workers: "+uid, beside == "", "beside it: "+beside)
	}
}

// curse writes into the entry of a model, which nobody has taken, how many workers have died over it.
func (s *stage) curse(ctx context.Context, uid string, deaths int) {
	input := s.queue.Parts[0].Keys.Input
	for i, entry := range s.clients.Write.LRange(ctx, input, 0, -1).Val() {
		if strings.Contains(entry, `"`+uid+`"`) {
			s.fail(s.clients.Write.LSet(ctx, input, int64(i), strings.TrimSuffix(entry, "}")+fmt.Sprintf(`,"deaths":%d}`, deaths)).Err())
		}
	}
}

// beside lists the models whose work overlaps that on one.
func (s *stage) beside(uid string) []string {
	open, others := map[string]bool{}, map[string]bool{}
	for _, e := range s.seen {
		delete(open, e.UID)
		if e.Event == model.EventStarted {
			open[e.UID] = true
		}
		if open[uid] {
			maps.Copy(others, open)
		}
	}
	delete(others, uid)
	return slices.Sorted(maps.Keys(others))
}

// playConnection leaves slots free, and the list empty: a worker with one connection for all pushes only when its pop has ended.
func playConnection(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": 300})
	s.until(ctx, "a", model.EventStarted)
	s.must("answers within 4 s though nothing more is in line", s.soon(ctx, 4*time.Second, "a"), // some workers pop for 5 s
		"no answer: a pop that waits needs a connection of its own, else the push waits behind it")
}

// playReply loses an entry on its way to the worker, on a connection that becomes mute then.
func playReply(ctx context.Context, s *stage) {
	s.succeeds(ctx, "a", succeed)
	before := s.owners(ctx)
	if len(before) == 0 {
		return // as in the scenario killed
	}
	s.proxy.muting.Store(true)
	s.put(ctx, "b", succeed)
	s.must("works on an attempt whose entry was lost on the way", s.soon(ctx, bound, "b"), silence)
	s.should("gives heartbeats meanwhile", slices.Equal(before, s.owners(ctx)), "its lease was lost")
}

// playOrders lets an operator ask the worker to take nothing, to go on, and to end.
func playOrders(ctx context.Context, s *stage) {
	s.succeeds(ctx, "a", succeed)
	pools := redis.Map(s.owners(ctx), store.PoolName)
	if len(pools) == 0 {
		return
	}
	order := func(verb string) { s.fail(s.queue.Fleet().OrderPools(ctx, pools, store.PoolOrder{Verb: verb})) }
	order(store.PoolQuiet)
	begun := s.proxy.commands.Load()
	s.put(ctx, "b", succeed)
	rest := 3 * time.Second
	s.should("takes nothing when an operator says quiet", !s.soon(ctx, rest, "b"), "another attempt")
	asked := s.proxy.commands.Load() - begun
	s.should("asks seldom meanwhile", asked <= 20*int64(rest/time.Second), fmt.Sprintf("%d commands in %s", asked, rest))
	order("")
	s.should("takes again when it may", s.until(ctx, "b", model.EventSuccess), silence)
	order(store.PoolStop)
	s.should("ends within 15 s when an operator says stop", s.within(ctx, bound, func() bool { return s.worker.ended() != "" }), "it had to be killed")
}

// playTexts has texts that are longer than anybody reads.
func playTexts(ctx context.Context, s *stage) {
	long := strings.Repeat("x", 20_000)
	s.put(ctx, "a", work{"do": "fail", "reason": long, "user_friendly_reason": long, "status": long})
	s.must("a failure with long texts is answered", s.until(ctx, "a", model.EventFailure), silence)
	s.should("cuts texts at 2,000 characters", s.proxy.largest.Load() < 10_000, fmt.Sprintf("a message of %d bytes", s.proxy.largest.Load()))
}

// owners are the names of the workers that give heartbeats: what these have in hand is requeued when they are silent.
func (s *stage) owners(ctx context.Context) (owners []string) {
	beats, _, err := s.queue.Parts[0].Report().Heartbeats(ctx)
	s.fail(err)
	for _, beat := range beats {
		if beat.Of == model.RoleWorker {
			owners = append(owners, beat.Owner)
		}
	}
	return owners
}

// unspent checks the attempt of a silent worker: it goes on under its uid, as if it had just been taken.
func (s *stage) unspent(ctx context.Context) {
	s.must("its attempt comes back within the lease", s.until(ctx, "a", model.EventSuccess), silence)
	begun, done := s.first(model.EventStart), s.first(model.EventSuccess)
	s.must("under the same uid, and not counted again", begun.AttemptUID == done.AttemptUID && s.times("a", model.EventStart) == 1, "another attempt")
}

// playKilled kills the worker in the middle of its work, as a machine that has no memory left does.
func playKilled(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": 1_000})
	s.inHand(ctx, "a")
	if len(s.owners(ctx)) == 0 {
		s.should("a killed worker costs seconds", false, "no heartbeats: its attempt waits for the deadline")
		return
	}
	s.worker.kill()
	s.startWorker(ctx)
	s.unspent(ctx)
}

// playSilent lets a worker that announces signs of life work for a while, and hang then.
func playSilent(ctx context.Context, s *stage) {
	policy := map[string]any{"timeout": "1h", "silent_after": "10m", "retries": []any{}, "on_exhausted": "give_up"}
	s.putUnder(ctx, "a", work{"do": "succeed", "after_ms": lease.Milliseconds()}, policy)
	if s.until(ctx, "a", model.EventStarted, model.EventSuccess); s.get(ctx, "a").SilentAfter == 0 {
		s.should("a worker that hangs costs seconds", false, "no signs_every in started: its attempt waits for the deadline")
		return
	}
	done := s.until(ctx, "a", model.EventSuccess)
	s.must("gives signs of life while it works", done && s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageStatus) > 0, "none")
	policy["silent_after"] = lease.String()
	s.putUnder(ctx, "b", work{"do": "hang"}, policy)
	s.must("gives none when it hangs", s.until(ctx, "b", model.EventTimeout) && s.first(model.EventTimeout).ErrorType == "silent", "it seems to live")
}

// playThawed stops the worker until another one has its attempt, and lets it go on then.
func playThawed(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": 1_000})
	s.inHand(ctx, "a")
	if len(s.owners(ctx)) == 0 {
		return // as in the scenario before
	}
	s.until(ctx, "a", model.EventStarted) // else it would say so later
	first := s.worker
	defer first.kill()
	first.signal(syscall.SIGSTOP)
	s.startWorker(ctx)
	s.unspent(ctx)
	if s.err != nil {
		return
	}
	s.worker.end(ctx, s.config.Patience)
	s.worker = first
	told := func() int64 { // a sign of life is no answer, nor is a start that is told again as its reply was not read before the stop
		signs := s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageStatus, model.MessageStarted)
		return s.counter(ctx, string(model.Stale), string(model.Duplicate)) - int64(signs)
	}
	before := told()
	first.signal(syscall.SIGCONT)
	s.must("a worker that was stopped for longer goes on", s.succeeds(ctx, "b", succeed), silence)
	s.must("and answers nothing for what others have", told() <= before, "a result")
}
