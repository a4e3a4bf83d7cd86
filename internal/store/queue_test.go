package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

// onEach runs a test with the clients of a fake server, a real one and a cluster.
func onEach(t *testing.T, test func(t *testing.T, server *testkit.Server, clients *redis.Clients)) {
	t.Helper()
	everywhere(t, func(t *testing.T, b *bench) { test(t, b.server, b.Clients) })
}

// TestTheHomeOfAModelIsTheOneThatIsDocumented holds what readers in other languages compute: CRC-32 of "123456789" is 0xCBF43926.
func TestTheHomeOfAModelIsTheOneThatIsDocumented(t *testing.T) {
	for parts, want := range map[int]int{1: 0, 2: 0, 8: 6, 16: 6, 1000: 262} {
		expectEqual(t, fmt.Sprintf("part of %d", parts), want, PartOf("123456789", parts))
	}
	expectEqual(t, "without a uid", 0, PartOf("", 8))
}

func TestAQueueHasThePartsThatItWasCreatedWith(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *redis.Clients) {
		config := Config{Queue: "{bigtables}"}
		open := func() *Queue {
			q, err := Open(t.Context(), clients, config)
			must(t, err)
			return q
		}
		if q := open(); len(q.Parts) != 1 || q.Parts[0].Keys.Queue != "{bigtables}" || q.Parts[0].replyTo() != "" {
			t.Errorf("before it was created: want one part of the same name, got %+v", q)
		}
		must(t, Create(t.Context(), clients, config, 8))
		must(t, Create(t.Context(), clients, config, 8)) // again alike
		q := open()
		failIf(t, len(q.Parts) != 8 || q.Parts[3].Keys.Queue != "{bigtables:3}" || q.Parts[3].replyTo() != "{bigtables:3}-output",
			"want eight parts, got %+v", q)
		home, own := q.Parts[3].Home("123456789")
		failIf(t, own || home != &q.Parts[6].Keys || q.Of("123456789") != q.Parts[6], "want the model in part 6, got %v, %v", home, own)
		err := Create(t.Context(), clients, config, 16)
		if want := "parts: expected the 8 that it was created with, as its models are where they are, found 16"; err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	})
}

func TestAQueueThatIsInUseKeepsItsOnePart(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		clients := newBench(t, server).Clients
		for _, key := range []string{"bigtables:stats", "{bigtables}:due", "bigtables-output", "bigtables:pollers", "{bigtables:1}:policies"} {
			server.Flush(t)
			must(t, clients.Write.RPush(t.Context(), key, "x").Err())
			err := Create(t.Context(), clients, Config{Queue: "bigtables"}, 2)
			failIf(t, err == nil || !strings.Contains(err.Error(), `found "`+key+`"`), "want %s told, got %v", key, err)
			q, err := Open(t.Context(), clients, Config{Queue: "bigtables"})
			failIf(t, err != nil || len(q.Parts) != 1, "want one part, got %+v, %v", q, err)
		}
		server.Flush(t)
		must(t, Create(t.Context(), clients, Config{Queue: "bigtables"}, 2))
		for _, name := range []string{"bigtables", "{bigtables}"} { // a queue without braces may have parts too
			q, err := Open(t.Context(), clients, Config{Queue: name})
			must(t, err)
			expectEqual(t, name, "{bigtables:1}", q.Parts[1].Keys.Queue)
		}
	})
}

// twoParts opens a queue of two parts, and names a model in each.
func twoParts(t *testing.T, clients *redis.Clients) (first, second *Store, inFirst, inSecond string) {
	t.Helper()
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	config := Config{Queue: "{q}", Clock: func() time.Time { now = now.Add(time.Millisecond); return now }}
	must(t, Create(t.Context(), clients, config, 2))
	q, err := Open(t.Context(), clients, config)
	must(t, err)
	for i := 0; inFirst == "" || inSecond == ""; i++ {
		if uid := fmt.Sprintf("m%d", i); PartOf(uid, 2) == 0 {
			inFirst = uid
		} else {
			inSecond = uid
		}
	}
	return q.Parts[0], q.Parts[1], inFirst, inSecond
}

func TestAnAttemptOfAQueueOfSeveralPartsNamesTheListToAnswerOn(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *redis.Clients) {
		_, second, _, uid := twoParts(t, clients)
		b := &bench{Store: second, t: t, server: server, redis: clients.Write, now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)}
		b.mustApply(b.put(uid, `{"input_url":"http://feed"}`))
		b.mustApply(b.start(uid, "a1"))
		entry := b.redis.LIndex(t.Context(), second.Keys.Input, 0).Val()
		failIf(t, !strings.Contains(entry, `"input_url":"http://feed"`) || !strings.Contains(entry, `"reply_to":"{q:1}-output"}`),
			"want reply_to beside the payload, got %s", entry)
		record := b.load(uid)
		failIf(t, record.Entry() != entry, "want an entry that can be taken back, got %s", record.Entry())
	})
}

func TestAPartMayBeLookedAtAloneAndNotWrittenTo(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *redis.Clients) {
		_, second, inFirst, _ := twoParts(t, clients)
		open := func(name string) *Queue {
			t.Helper()
			q, err := Open(t.Context(), clients, Config{Queue: name})
			must(t, err)
			return q
		}
		alone := open("{q:1}")
		if home, own := alone.Parts[0].Home(inFirst); own || home.Queue != "{q:0}" || alone.Parts[0].replyTo() != second.replyTo() {
			t.Errorf("want part 1 of two, got %+v with home %v of %s", alone.Parts[0].Keys, home, inFirst)
		}
		for doing, err := range map[string]error{
			"whole":  alone.RequireWhole(),
			"policy": alone.Fleet().PutPolicy(t.Context(), policy.Default()),
		} {
			want := "queue: expected the whole of {q}, found its part {q:1}"
			failIf(t, err == nil || err.Error() != want, "%s: want %q, got %v", doing, want, err)
		}
		for _, name := range []string{"{q:2}", "{q:01}", "{other:1}", "{q}"} { // queues of that name
			if q := open(name); q.RequireWhole() != nil || q.Parts[0].Keys.Queue == second.Keys.Queue {
				t.Errorf("%s: want a queue of its own, got %+v", name, q)
			}
		}
	})
}

func TestEachNodeIsToldAllScriptsOnce(t *testing.T) {
	b := newBench(t, testkit.Redis(t))
	must(t, Create(t.Context(), b.Clients, Config{Queue: "q"}, 100))
	q, err := Open(t.Context(), b.Clients, Config{Queue: "q"})
	must(t, err)
	must(t, b.redis.ScriptFlush(t.Context()).Err())
	must(t, b.redis.ConfigResetStat(t.Context()).Err())
	must(t, q.LoadScripts(t.Context()))
	info := b.redis.Info(t.Context(), "commandstats").Val()
	want := fmt.Sprintf("cmdstat_script|load:calls=%d,", len(scripts.Sources()))
	failIf(t, !strings.Contains(info, want), "want %s in\n%s", want, info)
	for file, text := range scripts.Sources() {
		known := b.redis.ScriptExists(t.Context(), goredis.NewScript(text).Hash()).Val()
		failIf(t, len(known) != 1 || !known[0], "%s is not loaded", file)
	}
}

func TestACommandIsForwardedOnceAndInOrderHoweverOftenItIsTried(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *redis.Clients) {
		first, second, _, uid := twoParts(t, clients)
		ctx := t.Context()
		claim := func(limit int) (commands []Forwarded) {
			claimed, err := first.Claim(ctx, "p", Holding{}, limit, time.Minute)
			must(t, err)
			for _, c := range claimed.Messages {
				commands = append(commands, Forwarded{uid, c})
			}
			return commands
		}
		forward := func(commands []Forwarded) {
			t.Helper()
			done, err := first.Forward(ctx, commands)
			diff := cmp.Diff(map[*Keys]bool{&second.Keys: true}, done)
			failIf(t, err != nil || diff != "", "%v\n%s", err, diff)
		}
		expect := func(want ...string) {
			t.Helper()
			found, err := clients.Read.LRange(ctx, second.Keys.Control, 0, -1).Result()
			diff := cmp.Diff(want, found)
			failIf(t, err != nil || diff != "", "%v\n%s", err, diff)
		}
		settle := func(commands []Forwarded) {
			t.Helper()
			var items []Item
			for _, c := range commands {
				items = append(items, Item{Message: c.Claimed, UID: c.UID, Counter: "forwarded"})
			}
			now, err := first.Now(ctx)
			must(t, err)
			codes, err := first.Commit(ctx, Batch{Now: now, Owner: "p", Items: items})
			stopIf(t, err != nil || codes[0] != CodeApplied, "settle: %v, %v", codes, err)
		}
		must(t, clients.Write.RPush(ctx, first.Keys.Control, "one", "two two", "").Err())
		old := claim(10)
		forward(old)
		forward(old) // the reply was lost
		expect("one", "two two", "")
		settle(old)
		must(t, clients.Write.RPush(ctx, first.Keys.Control, "four").Err())
		fresh := claim(10)
		forward(fresh)
		forward(old) // by a poller that was paused
		expect("one", "two two", "", "four")
		settle(fresh)

		// A node that has taken over may have lost the last numbers.
		must(t, clients.Write.Del(ctx, first.Keys.Forwarded).Err())
		must(t, clients.Write.RPush(ctx, first.Keys.Control, "five").Err())
		forward(claim(10))
		expect("one", "two two", "", "four", "five")
	})
}

func TestAPartThatDoesNotAnswerKeepsItsCommandsWaitingAlone(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		client := server.Client(t)
		first, second, inFirst, inSecond := twoParts(t, &redis.Clients{Read: client, Write: client, Block: client})
		must(t, client.Set(t.Context(), first.Keys.Control, "of another type", 0).Err())
		done, err := second.Forward(t.Context(), []Forwarded{{inFirst, Claimed{"n1 a"}}, {inSecond, Claimed{"n2 b"}}})
		if diff := cmp.Diff(map[*Keys]bool{&second.Keys: true}, done); diff != "" {
			t.Error(diff)
		}
		failIf(t, err == nil || !strings.Contains(err.Error(), "forward commands to {q:0}: ") || !strings.Contains(err.Error(), "WRONGTYPE"),
			"want the part named, got %v", err)
	})
}

func TestAQueueOfANewerLayoutIsRefusedWithWordsBeforeAllElse(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		newer := strconv.Itoa(Layout + 1)
		b.redis.HSet(t.Context(), b.Keys.Settings, settingLayout, newer, settingParts, "what nobody knows yet")
		_, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
		want := b.Keys.Settings + " layout: expected at most " + strconv.Itoa(Layout) + ", found " + newer + ": a newer release stores this queue; upgrade this binary"
		failIf(t, err == nil || err.Error() != want, "expected %s, found %v", want, err)
		if err := Create(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}, 2); err == nil || !strings.Contains(err.Error(), "upgrade this binary") {
			t.Errorf("expected that nothing is created in it, found %v", err)
		}
	})
}

func TestSettingsThatCannotBeReadKeepADaemonFromGuessing(t *testing.T) {
	keys := newKeys("q")
	for _, test := range []struct {
		field  string
		values list
		want   string
	}{
		{settingParts, list{"", "0", "-1", "1025", "many", "8 "}, "parts: expected 1 to 1024"},
		{settingLayout, list{"0", "-1", "one", ""}, "layout: expected a whole number of at least 1"},
		{settingNewError, list{"-1", "many"}, "new_error_above: expected a whole number"},
		{settingPayload, list{"middle"}, "payload: expected top or nested"},
		{settingModelName, list{"a b"}, "model_name: expected "},
	} {
		for _, value := range test.values {
			_, err := parseSettings(keys, hash{test.field: value})
			failIf(t, err == nil || !strings.Contains(err.Error(), test.want), "%s %q: want a refusal, got %v", test.field, value, err)
		}
	}
	for _, test := range []struct {
		found hash
		want  settings
	}{
		{nil, settings{layout: 1, parts: 1}},
		{hash{settingLayout: "1", settingParts: "8", settingNewError: "7"}, settings{layout: 1, parts: 8, above: 7}},
		{hash{settingPayload: PayloadNested, settingNewError: "0"}, settings{layout: 1, parts: 1, wire: model.Wire{Nested: true}, above: None}},
	} {
		got, err := parseSettings(keys, test.found)
		failIf(t, err != nil || got != test.want, "%v: got %+v, %v", test.found, got, err)
	}
}

func TestHowManyModelsAFingerprintMayStopUntoldIsSetForTheQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		open := func() *Queue {
			q, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
			must(t, err)
			return q
		}
		q := open()
		expectEqual(t, "at first", 50, q.NewErrorAbove())
		err := q.SetNewErrorAbove(t.Context(), -1)
		failIf(t, err == nil, "expected a refusal")
		for _, models := range []int{9, 0} {
			must(t, q.SetNewErrorAbove(t.Context(), models))
			expectEqual(t, "here and for others", [2]int{models, models}, [2]int{q.NewErrorAbove(), open().NewErrorAbove()})
		}
	})
}

func TestAQueueThatCannotBeReadIsNotOpened(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := testkit.Miniredis(t).Client(t)
	if _, err := Open(ctx, &redis.Clients{Read: client}, Config{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "read the settings of the queue") {
		t.Errorf("want the error, got %v", err)
	}
	if _, err := Open(t.Context(), &redis.Clients{Read: client}, Config{Queue: "a b"}); err == nil {
		t.Error("want the name refused")
	}
}
