package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/client"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// scenario is one thing that can happen to a worker.
type scenario struct {
	name        string
	concurrency int // 0: 1, so that one attempt that does not stop holds up the next
	parts       int
	lease       time.Duration // 0: a short one
	wire        model.Wire
	play        func(ctx context.Context, s *stage)
}

// scenarios are in the order of the report.
var scenarios = []scenario{
	{name: "success", play: func(ctx context.Context, s *stage) {
		s.must("a result is answered as success", s.succeeds(ctx, "a", work{"do": "succeed", "after_ms": 50, "status": "half way", "progress": 50}), silence)
		s.should("the begin of the work is told: started", s.times("a", model.EventStarted) > 0, "none")
		m := s.get(ctx, "a")
		s.should("the owner is told how far it is: user_friendly_status, progress", m.UserFriendlyStatus == "half way" && m.Progress == 50,
			fmt.Sprintf("status %q", m.UserFriendlyStatus))
	}},
	{name: "failure", play: func(ctx context.Context, s *stage) {
		s.put(ctx, "a", work{"do": "fail", "reason": "HTTP 404", "error_type": "http_404", "retryable": false, "user_friendly_reason": "The feed is gone."})
		s.must("a failure is answered as failure", s.until(ctx, "a", model.EventFailure), silence)
		if e := s.first(model.EventFailure); e.Event != "" {
			s.should("with its reason", e.Reason == "HTTP 404", fmt.Sprintf("%q", e.Reason))
			s.should("with its error_type", e.ErrorType == "http_404", fmt.Sprintf("%q", e.ErrorType))
			s.should("with user_friendly_reason", e.DisabledReason == "The feed is gone.", fmt.Sprintf("%q", e.DisabledReason))
		}
		s.put(ctx, "b", work{"do": "postpone", "seconds": 3600})
		s.should("work that cannot be done now is postponed", s.until(ctx, "b", model.EventPostponed), silence)
	}},
	{name: "payload", play: playPayload},
	{name: "malformed", play: func(ctx context.Context, s *stage) {
		for _, garbage := range []string{
			"", "no json", "[]", "17", "null", `"text"`, "\xff\xfe{", `{"input_url":"http://x"}`, `{"big_table_uid":5,"refresh_attempt_uid":[]}`,
			`{"big_table_uid":"a","refresh_attempt_uid":""}`, strings.Repeat("[", 2_000),
		} {
			s.push(ctx, garbage)
		}
		s.must("goes on after entries that cannot be read", s.succeeds(ctx, "a", succeed), silence)
		rejected := s.counter(ctx, "no_uid", "unknown_type", "malformed", "unknown_model")
		s.should("answers none of them", rejected == 0, fmt.Sprintf("%d messages that cannot be used", rejected))
	}},
	{name: "duplicate", play: playDuplicate},
	{name: "stale", play: playStale},
	{name: "deadline", play: func(ctx context.Context, s *stage) {
		s.putFor(ctx, "a", work{"do": "succeed", "after_ms": forever}, "2s")
		s.must("an attempt that takes too long ends at its deadline", s.until(ctx, "a", model.EventTimeout), silence)
		s.must("stops when its deadline has passed", s.succeeds(ctx, "b", succeed), "it works on")
		more := s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageSuccess, model.MessageFailure)
		s.should("says nothing more about it", more == 0, "a result")
	}},
	{name: "reconnect", play: playReconnect},
	{name: "refusals", play: playRefusals},
	{name: "shutdown", play: playShutdown},
	{name: "killed", play: playKilled},
	{name: "thawed", play: playThawed},
	{name: "silent", play: playSilent},
	{name: "mute", lease: time.Minute, play: playMute},
	{name: "outage", lease: time.Minute, play: playOutage},
	{name: "poison", concurrency: 3, play: playPoison},
	{name: "connection", concurrency: 2, play: playConnection},
	{name: "reply", lease: 5 * time.Second, play: playReply},
	{name: "orders", play: playOrders},
	{name: "texts", play: playTexts},
	{name: "names", wire: model.Wire{ModelName: "banner_uid", AttemptName: "run_uid", Nested: true}, play: func(ctx context.Context, s *stage) {
		nested := work{"do": "digest", "text": "nested", "reply_to": "of the payload"}
		s.should("works in a queue with names of its own and a nested payload", s.succeeds(ctx, "a", nested), silence)
	}},
	{name: "parts", parts: 2, play: func(ctx context.Context, s *stage) {
		s.put(ctx, "a", succeed)
		s.put(ctx, "f", succeed) // in the other part
		s.should("works on all parts of a queue, and answers to reply_to",
			s.until(ctx, "a", model.EventSuccess) && s.until(ctx, "f", model.EventSuccess), silence)
	}},
	{name: "flood", concurrency: 8, play: playFlood},
}

// Names returns the names of all scenarios.
func Names() []string { return redis.Map(scenarios, func(s scenario) string { return s.name }) }

const (
	silence = "nothing within the time"
	// forever outlasts every patience: the work ends on a request.
	forever = 3_600_000
)

var succeed = work{"do": "succeed"}

// playPayload checks whether payloads arrive unchanged: letters of the world, and the largest one.
func playPayload(ctx context.Context, s *stage) {
	for uid, text := range map[string]string{"unicode": "Grüße, 世界 \U0001F600 \"\\\n\t\u2028", "large": strings.Repeat("größer ", 7_000)} {
		done := s.succeeds(ctx, uid, work{"do": "digest", "text": text, "unknown": map[string]any{"deep": []any{1, nil, true}}})
		m := s.get(ctx, uid)
		sum := sha256.Sum256([]byte(text))
		s.must("a payload arrives as it is: "+uid, done && m.UserFriendlyStatus == hex.EncodeToString(sum[:]), fmt.Sprintf("status %q", m.UserFriendlyStatus))
	}
}

// playDuplicate gives the worker an attempt once more when it is over, as a worker that died and came back would.
func playDuplicate(ctx context.Context, s *stage) {
	s.must("works on an attempt", s.succeeds(ctx, "a", succeed), silence)
	over := s.first(model.EventSuccess).AttemptUID
	// It would fail this time: its success may have been sent twice, which is well.
	entry, _ := json.Marshal(map[string]any{"big_table_uid": "a", "refresh_attempt_uid": over, "do": "fail", "attempt_no": 1})
	s.push(ctx, string(entry))
	s.must("goes on after an attempt that is over", s.succeeds(ctx, "b", succeed), silence)
	s.must("an attempt counts once", s.times("a", model.EventSuccess) == 1, fmt.Sprintf("%d times", s.times("a", model.EventSuccess)))
	s.should("does not begin an attempt that is over", s.proxy.heard(over, model.MessageFailure) == 0, "another result")
}

// playStale ends an attempt in mid-run, as somebody does who disables its model.
func playStale(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": forever})
	s.inHand(ctx, "a")
	_, err := s.app.Disable(ctx, "a", "")
	s.fail(err)
	s.must("stops when its attempt no longer counts", s.succeeds(ctx, "b", succeed), "it works on")
	s.must("a stale result changes nothing", s.times("a", model.EventSuccess) == 0, "a success")
	s.should("says nothing more about it", s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageSuccess, model.MessageFailure) == 0, "a result")
}

// outage is how long Redis does not answer: longer than the work that is under way.
const outage = 600 * time.Millisecond

// playReconnect breaks the connection on which a result comes, and then all of them, as a restart of Redis does, while the worker works and
// while it waits.
func playReconnect(ctx context.Context, s *stage) {
	s.proxy.losing.Store(true)
	s.should("a result that Redis did not take is pushed again", s.succeeds(ctx, "a", succeed), silence)
	s.put(ctx, "b", work{"do": "succeed", "after_ms": 300})
	s.inHand(ctx, "b")
	s.proxy.cut()
	wait := time.AfterFunc(outage, s.proxy.restore)
	defer wait.Stop()
	s.must("works on when the connections were cut during the work", s.succeeds(ctx, "c", succeed), silence)
	s.proxy.cut()
	s.proxy.restore()
	s.must("works on when the connections were cut while it waited", s.succeeds(ctx, "d", succeed), silence)
}

// playShutdown asks the worker to end while it works and more is in line.
func playShutdown(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": forever})
	s.inHand(ctx, "a")
	waiting := []string{"b", "c", "d"}
	for _, uid := range waiting {
		s.put(ctx, uid, work{"do": "succeed", "after_ms": forever})
		s.until(ctx, uid, model.EventStart)
	}
	if s.err != nil {
		return
	}
	ended := s.worker.end(ctx, s.config.Patience)
	s.must("ends when it is asked to by SIGTERM", ended, "it had to be killed")
	s.should("with exit status 0", s.worker.ended() == "exit status 0", s.worker.ended())
	s.must("hands back what it has not finished: interrupted", s.until(ctx, "a", model.EventInterrupted, model.EventSuccess), "nothing: its model waits for the deadline")
	s.within(ctx, time.Second, func() bool { return s.times("a", model.EventStart) > 1 }) // it is due again at once
	lost := 0
	line := s.inLine(ctx)
	for _, uid := range waiting {
		if line[uid] == 0 && s.times(uid, model.EventInterrupted) == 0 {
			lost++
		}
	}
	s.must("takes no other attempt with it", lost == 0, fmt.Sprintf("%d were taken and not handed back", lost))
}

// playFlood has many short attempts.
func playFlood(ctx context.Context, s *stage) {
	n := s.config.Flood
	quiet, err := client.Open(ctx, s.config.Redis, s.queue.Name, client.Config{Timeout: -1})
	if err != nil {
		s.fail(err)
		return
	}
	defer func() { _ = quiet.Close() }()
	for i := range n {
		if s.err == nil {
			_, s.err = quiet.Put(ctx, client.Definition{UID: fmt.Sprintf("m%d", i), Payload: succeed})
		}
	}
	done, counted := map[string]bool{}, 0
	for before := -1; len(done) > before && len(done) < n; { // as long as it goes on, however slowly
		before = len(done)
		s.within(ctx, s.config.Patience, func() bool {
			for ; counted < len(s.seen); counted++ {
				if e := s.seen[counted]; e.Event == model.EventSuccess {
					done[e.UID] = true
				}
			}
			return len(done) > before
		})
	}
	all := len(done) == n
	s.must(fmt.Sprintf("%d attempts are all answered", n), all, fmt.Sprintf("%d answers", len(done)))
	twice := s.counter(ctx, string(model.Stale), string(model.Duplicate))
	s.should("each once", twice == 0, fmt.Sprintf("%d more messages", twice))
	if !all {
		return
	}
	commands, rounds := s.proxy.commands.Load(), s.proxy.roundTrips.Load()
	took := s.seen[len(s.seen)-1].At.Sub(s.first(model.EventStart).At)
	s.cost = &Cost{
		Attempts: n, Commands: float64(commands) / float64(n), RoundTrips: float64(rounds) / float64(n),
		PerSecond: float64(n) / max(took, time.Millisecond).Seconds(),
	}
}

// first is the first time that something has happened; without one it is empty.
func (s *stage) first(event model.Event) (none model.JournalEntry) {
	if i := slices.IndexFunc(s.seen, func(e model.JournalEntry) bool { return e.Event == event }); i >= 0 {
		return s.seen[i]
	}
	return none
}

// refusals are the errors of a Redis that takes nothing for a moment, in its own words.
var refusals = []refusal{
	{text: "OOM command not allowed when used memory > 'maxmemory'."},
	{text: "READONLY You can't write against a read only replica."},
	{text: "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."},
	{text: "NOREPLICAS Not enough good replicas to write."},
	{text: "TRYAGAIN Multiple keys request during rehashing of slot"},
	{text: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", all: true},
	loadingData,
	{text: "CLUSTERDOWN The cluster is down", all: true},
	{text: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", all: true},
}

var loadingData = refusal{text: "LOADING Redis is loading the dataset in memory", all: true}

// verdicts are the errors of Redis for messages that it will never take.
var verdicts = []string{
	"NOPERM this user has no permissions to access one of the keys used as arguments",
	"WRONGTYPE Operation against a key holding the wrong kind of value",
}

// moment is how long Redis refuses everything: longer than the work that is under way, which lasts long enough to ask whether it counts.
const moment = 1500 * time.Millisecond

// playRefusals lets Redis refuse what the worker says: for a moment, for ever, and for longer than the attempt may last. For a moment is each
// message twice, and of those errors that refuse reads, too, all that the worker asks while it works.
func playRefusals(ctx context.Context, s *stage) {
	for _, r := range refusals {
		code, _, _ := strings.Cut(r.text, " ")
		messages, todo := refusal{text: r.text, times: 2}, work{"do": "succeed"}
		s.proxy.refuse(messages)
		if r.all {
			todo["after_ms"] = 1_200
		}
		s.put(ctx, code, todo)
		if r.all {
			s.inHand(ctx, code)
			s.proxy.refuse(r)
			time.AfterFunc(moment, func() { s.proxy.refuse(messages) }) // nothing succeeds before
		}
		s.must("works on, and pushes a result again that Redis refuses: "+code, s.until(ctx, code, model.EventSuccess), silence)
	}
	for _, text := range verdicts {
		code, _, _ := strings.Cut(text, " ")
		s.should("goes on after a result that Redis never takes: "+code, goesOn(ctx, s, code, text, "1h"), "it takes no other attempt")
	}
	s.should("goes on when a result could not be pushed within its deadline", goesOn(ctx, s, "late", refusals[0].text, "2s"), "it takes no other attempt")
}

// goesOn refuses the result of an attempt for ever, and reports whether the worker takes another one.
func goesOn(ctx context.Context, s *stage, uid, text, timeout string) bool {
	s.proxy.refuse(refusal{})
	s.putFor(ctx, uid, work{"do": "succeed", "after_ms": 300}, timeout)
	s.inHand(ctx, uid)
	s.proxy.refuse(refusal{text: text, times: math.MaxInt})
	s.put(ctx, "after-"+uid, succeed)
	return s.taken(ctx, "after-"+uid)
}
