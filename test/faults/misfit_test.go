package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

var keyRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| (list|hash|zset|set|stream|string) \\|")

// wireKeys are all keys of the document of the wire with their types, with names for what varies.
func wireKeys(t *testing.T, errorID string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/wire.md")
	must(t, err)
	names := strings.NewReplacer("parked:GATE", "parked:hold:h1", ":KEY", ":host=example.com", "NAME=VALUE", "tenant=t1", "bulk:ID", "bulk:b1", "error:<id>", "error:"+errorID,
		"claimed:<owner>", "claimed:p", "taken:<owner>", "taken:w", "<uid>", "u", "<name>", "x", "CHANNEL", "mail", "RECIPIENT", "ann", "told:NAME", "told:hook")
	keys := map[string]string{"bigtables-input": "list", "bigtables-output": "list", "bigtables-control": "list", "bigtables:model:u": "hash", "bigtables:payload:u": "string"}
	for _, row := range keyRow.FindAllStringSubmatch(string(text), -1) {
		for key := range strings.SplitSeq(strings.ReplaceAll(row[1], "`", ""), ", ") {
			keys[names.Replace(key)] = row[2]
		}
	}
	delete(keys, "{bigtables}:settings") // read when a program begins
	stopIf(t, len(keys) < 50, "expected the keys of a queue, found %v", slices.Sorted(maps.Keys(keys)))
	return keys
}

// mistypes replace a key by one of each type.
var mistypes = map[string]string{"string": "SET %s x", "list": "RPUSH %s x", "hash": "HSET %s x y", "set": "SADD %s x", "zset": "ZADD %s 1 x", "stream": "XADD %s * x y"}

func mistype(ctx context.Context, r redis.UniversalClient, key, kind string) error {
	var words []any
	for word := range strings.FieldsSeq(fmt.Sprintf(mistypes[kind], key)) {
		words = append(words, word)
	}
	return errors.Join(r.Del(ctx, key).Err(), r.Do(ctx, words...).Err())
}

// traffic is a queue in which attempts of "u", which uses all there is, of "f", which fails, and of "a", which uses nothing of that, are in the
// hands of workers, and "h" is held.
type traffic struct {
	*fixture.Queue
	t    *testing.T
	d    *dispatcher.Dispatcher
	p    *poller.Poller
	log  bytes.Buffer
	errs map[string]string // the last errors of rounds
}

func newTraffic(t *testing.T, server *testkit.Server) *traffic {
	t.Helper()
	server.Flush(t)
	s, n := &traffic{Queue: fixture.New(t, server), t: t, errs: map[string]string{}}, 0
	log := zerolog.New(&s.log)
	var err error
	if s.d, err = dispatcher.New(dispatcher.RoomsOf(s.Store), dispatcher.Config{Owner: "d", Log: &log, NewUID: func() string { n++; return fmt.Sprint("attempt-", n) }}); err != nil {
		t.Fatal(err)
	}
	if s.p, err = poller.New(poller.RoomsOf(s.Store), poller.Config{Owner: "p", Log: &log}); err != nil {
		t.Fatal(err)
	}
	selector, err := model.ParseSelector("held=yes")
	if err == nil {
		err = flow.Of(s.Store).PutHold(t.Context(), &model.Hold{ID: "h1", Selector: selector, Since: s.Clock.Now()})
	}
	must(t, err)
	s.Command(`{"type":"put","uid":"u","labels":{"tenant":"t1"},"payload":{"input_url":"http://example.com/x"},"policy":{"timeout":"10m","retries":["1m"],"fresh_within":"2h","warn_within":"1h",`+
		`"limits":[{"key":"{host(input_url)}","running":2,"rate":"6/m"}],"circuit":{"key":"{host(input_url)}","open_after":"3 of 5","on":["timeout"],"probe":"5m"}}}`,
		`{"type":"put","uid":"a","rrule":"FREQ=HOURLY"}`, `{"type":"put","uid":"f","rrule":"FREQ=HOURLY"}`, `{"type":"put","uid":"h","labels":{"held":"yes"}}`, `{"type":"run","uid":"a"}`, `{"type":"run","uid":"f"}`)
	s.round()
	s.Say(fixture.Result("failure", "f", s.Attempt("f"), `"reason":"503"`))
	s.round()
	s.Clock.Turn(2 * time.Minute)
	s.round()
	stopIf(t, len(s.errs) > 0 || s.Attempt("u") == "" || s.Attempt("a") == "" || s.Attempt("f") == "" || s.Model("h")["parked_by"] == "",
		"expected traffic, found %v, u %v, a %v, f %v, h %v", s.errs, s.Model("u"), s.Model("a"), s.Model("f"), s.Model("h"))
	return s
}

// round is one of each daemon, and of a worker that takes everything.
func (s *traffic) round() {
	if _, err := s.p.RunOnce(s.t.Context()); err != nil {
		s.errs["poller"] = err.Error()
	}
	round, err := s.d.RunOnce(s.t.Context())
	if err != nil {
		s.errs["dispatcher"] = err.Error()
	}
	failIf(s.t, err == nil && round.Blocked > 0 && round.Sleep == 0 && round.Started == 0 && round.Parked == 0 && round.Limited == 0,
		"a dispatcher that waits for somebody to set a key right does not rest")
	for s.Redis.LPop(s.t.Context(), s.Store.Keys.Input).Err() == nil { // in the hands of workers
		continue
	}
}

// say pushes the messages that are left, and keeps the ones that Redis refuses.
func (s *traffic) say(messages map[string][]string) {
	for key, texts := range messages {
		for len(texts) > 0 && s.Redis.RPush(s.t.Context(), key, texts[0]).Err() == nil {
			texts = texts[1:]
		}
		messages[key] = texts
	}
}

// Which process waits for which keys, from guarantees.md; and keys that this traffic has no use for, which only the doctor reports.
var (
	stopPollers     = []string{":due", ":running", ":policies", ":pollers", ":claimed:p"}
	stopDispatchers = []string{":due", ":running", "-input"}
	stopResults     = append([]string{"-output"}, stopPollers...)
	unused          = []string{":deeds", ":disabled", ":parked", ":policy_uses", ":stale", ":payload:u", ":label:tenant=t1", ":parked:hold:h1", ":rate:host=example.com", ":bulk:b1", ":bulks_ended", ":recipients:mail", ":notices:ann", ":summary:ann", ":deliveries", ":undelivered", ":told:hook", ":taken:w", ":workers", ":hours", ":orders", ":zones"}
	stopCommands    = append([]string{"-control", ":claimed:control", ":holder", ":forwarded"}, stopPollers...)
)

func TestAKeyOfAnotherTypeStopsOnlyWhatNeedsItAndNothingIsLost(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		errorID := slices.Collect(maps.Keys(newTraffic(t, server).Scores("bigtables:errors")))[0]
		keys := wireKeys(t, errorID)
		for turn, key := range slices.Sorted(maps.Keys(keys)) {
			kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(mistypes)), func(kind string) bool { return kind == keys[key] })
			if !long.Enabled() && turn%4 != 0 {
				continue
			}
			for _, kind := range []string{kinds[turn%5], kinds[(turn+2)%5]}[:long.Or(1, 2)] {
				t.Run(strings.TrimPrefix(key, "bigtables")+"/"+kind, func(t *testing.T) { newTraffic(t, server).suffer(key, kind, keys[key]) })
			}
		}
	})
}

func (s *traffic) suffer(key, kind, want string) {
	t, k, name := s.t, s.Store.Keys, strings.TrimPrefix(key, "bigtables")
	attempts := map[string]string{"u": s.Attempt("u"), "a": s.Attempt("a"), "f": s.Attempt("f")}
	messages := map[string][]string{
		k.Output: {
			fixture.Result("success", "u", attempts["u"]), fixture.Result("failure", "f", attempts["f"], `"reason":"503","log":"1 row"`),
			fixture.Result("success", "a", attempts["a"]), "no JSON",
		},
		k.Control: {`{"type":"put","uid":"n"}`, `{"type":"run","uid":"f","command_id":"c1","reply_to":"bigtables:reply:x"}`},
	}
	must(t, mistype(t.Context(), s.Redis, key, kind))
	s.say(messages)
	s.Clock.Turn(2 * time.Second)
	s.round()
	s.round()

	applied := func(uid string) bool { return s.Model(uid)["attempt_uid"] != attempts[uid] }
	if stopped := slices.Contains(stopResults, name); applied("a") == stopped {
		t.Errorf("the result of a model that needs no such key is applied: %t; %v", !stopped, s.errs)
	}
	if stopped := slices.Contains(stopCommands, name); s.Redis.Exists(t.Context(), k.Model("n")).Val() == 0 != stopped {
		t.Errorf("a command for a model that needs no such key is applied: %t; %v", !stopped, s.errs)
	}
	for daemon, stops := range map[string][]string{"poller": stopPollers, "dispatcher": stopDispatchers} {
		if failed := s.errs[daemon] != ""; failed != slices.Contains(stops, name) && name != ":policies" { // it fails where there is something to do
			t.Errorf("a round of the %s fails: %t, %s", daemon, failed, s.errs[daemon])
		}
	}
	told := fmt.Sprintf("%s holds a %s, expected a %s", key, kind, want)
	failIf(t, !strings.Contains(s.log.String()+fmt.Sprint(s.errs), told) && !slices.Contains(unused, name),
		"expected to be told that %s, found %v\n%s", told, s.errs, s.log.String())
	report, err := doctor.Check(t.Context(), &store.Queue{Parts: []*store.Store{s.Store}}, doctor.Options{Repair: true})
	named := slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool {
		return f.Severity == doctor.Error && f.Where == key && f.Found == "a "+kind && f.Want == "a "+want
	})
	failIf(t, err != nil || !named, "expected the doctor to name %s, a %s that should be a %s, found %+v, %v", key, kind, want, report.Findings, err)
	s.recover(key, messages, applied)
}

// recover expects that all goes on as soon as the key is gone, and that nothing was lost.
func (s *traffic) recover(key string, messages map[string][]string, applied func(uid string) bool) {
	t, k := s.t, s.Store.Keys
	s.Redis.Del(t.Context(), key)
	queue := &store.Queue{Parts: []*store.Store{s.Store}}
	must(t, check.Only(doctor.Check(t.Context(), queue, doctor.Options{Repair: true})))
	s.say(messages)
	clear(s.errs)
	for range 3 {
		s.Clock.Turn(15 * time.Second) // also for a lease
		s.round()
	}
	for _, list := range []string{k.Output, k.Control, k.Claimed("p"), k.ClaimedCommands} {
		left := s.List(list)
		failIf(t, len(left) > 0, "%s still holds %q", list, left)
	}
	failIf(t, len(s.errs) > 0, "rounds fail still: %v", s.errs)
	for _, uid := range []string{"u", "a", "f"} {
		failIf(t, !applied(uid) && key != k.Model(uid), "the result of %s is lost: %v", uid, s.Model(uid))
	}
	failIf(t, s.Redis.Exists(t.Context(), k.Model("n")).Val() == 0, "a command is lost")
	kept := strings.Join(s.List(k.Rejected), " ")
	failIf(t, !strings.Contains(kept, "no JSON") && key != k.Rejected, "a message that cannot be handled is lost: %s", kept)
	report, err := doctor.Check(t.Context(), queue, doctor.Options{Repair: true})
	failIf(t, err != nil || report.Total(doctor.Error) > 0 && key != k.Model("u") && key != k.Payload("u") && key != k.Policies,
		"expected a healthy queue, found %v, %+v", err, report.Findings)
}
