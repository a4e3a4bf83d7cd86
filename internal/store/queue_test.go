package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

// onEach runs a test with the clients of a fake server, a real one and a cluster.
func onEach(t *testing.T, test func(t *testing.T, server *testkit.Server, clients *Clients)) {
	t.Helper()
	with := func(t *testing.T, s *testkit.Server) {
		client := s.Client(t)
		test(t, s, &Clients{Read: client, Write: client, Block: client, Clustered: s.IsCluster()})
	}
	testkit.Both(t, with)
	t.Run("cluster", func(t *testing.T) { with(t, testkit.Cluster(t)) })
}

// TestTheHomeOfAModelIsTheOneThatIsDocumented holds what readers in other languages compute: CRC-32 of "123456789" is 0xCBF43926.
func TestTheHomeOfAModelIsTheOneThatIsDocumented(t *testing.T) {
	for parts, want := range map[int]int{1: 0, 2: 0, 8: 6, 16: 6, 1000: 262} {
		expectEqual(t, fmt.Sprintf("part of %d", parts), want, PartOf("123456789", parts))
	}
	expectEqual(t, "without a uid", 0, PartOf("", 8))
}

func TestAQueueHasThePartsThatItWasCreatedWith(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		config := Config{Queue: "{bigtables}"}
		open := func() *Queue {
			q, err := Open(t.Context(), clients, config)
			must(t, err)
			return q
		}
		if q := open(); len(q.Parts) != 1 || q.Parts[0].Keys.Queue != "{bigtables}" || q.Parts[0].ReplyTo() != "" {
			t.Errorf("before it was created: want one part of the same name, got %+v", q)
		}
		must(t, Create(t.Context(), clients, config, 8))
		must(t, Create(t.Context(), clients, config, 8)) // again alike
		q := open()
		if len(q.Parts) != 8 || q.Parts[3].Keys.Queue != "{bigtables:3}" || q.Parts[3].ReplyTo() != "{bigtables:3}-output" {
			t.Errorf("want eight parts, got %+v", q)
		}
		if home, own := q.Parts[3].Home("123456789"); own || home != &q.Parts[6].Keys || q.Of("123456789") != q.Parts[6] {
			t.Errorf("want the model in part 6, got %v, %v", home, own)
		}
		err := Create(t.Context(), clients, config, 16)
		if want := "parts: expected the 8 that it was created with, as its models are where they are, found 16"; err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	})
}

func TestAQueueWithoutBracesMayHavePartsToo(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		client := server.Client(t)
		clients := &Clients{Read: client, Write: client, Block: client}
		must(t, Create(t.Context(), clients, Config{Queue: "bigtables"}, 2))
		for _, name := range []string{"bigtables", "{bigtables}"} {
			q, err := Open(t.Context(), clients, Config{Queue: name})
			must(t, err)
			expectEqual(t, name, "{bigtables:1}", q.Parts[1].Keys.Queue)
		}
	})
}

func TestAQueueThatIsInUseKeepsItsOnePart(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		for _, key := range []string{"bigtables:stats", "{bigtables}:due", "bigtables-output", "bigtables:pollers", "{bigtables:1}:policies"} {
			server.Flush(t)
			client := server.Client(t)
			must(t, client.RPush(t.Context(), key, "x").Err())
			clients := &Clients{Read: client, Write: client, Block: client}
			err := Create(t.Context(), clients, Config{Queue: "bigtables"}, 2)
			if err == nil || !strings.Contains(err.Error(), `found "`+key+`"`) {
				t.Errorf("want %s told, got %v", key, err)
			}
			q, err := Open(t.Context(), clients, Config{Queue: "bigtables"})
			if err != nil || len(q.Parts) != 1 {
				t.Errorf("want one part, got %+v, %v", q, err)
			}
		}
	})
}

func TestSettingsThatCannotBeReadKeepADaemonFromGuessing(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		client := server.Client(t)
		for _, value := range []string{"", "0", "-1", "1025", "many", "8 "} {
			must(t, client.HSet(t.Context(), "{q}:settings", "parts", value).Err())
			if _, err := Open(t.Context(), &Clients{Read: client, Write: client}, Config{Queue: "q"}); err == nil || !strings.Contains(err.Error(), "{q}:settings parts: expected 1 to 1024") {
				t.Errorf("%q: want a refusal, got %v", value, err)
			}
		}
	})
}

// twoParts opens a queue of two parts, and names a model in each.
func twoParts(t *testing.T, clients *Clients) (first, second *Store, inFirst, inSecond string) {
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

func TestPoliciesAndTheCircuitOfTheQueueAreSetAlikeInEveryPart(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		must(t, Create(t.Context(), clients, Config{Queue: "{q}"}, 3))
		q, err := Open(t.Context(), clients, Config{Queue: "{q}"})
		must(t, err)
		nightly := policy.Default()
		nightly.Name = "nightly"
		must(t, q.Fleet().PutPolicy(t.Context(), nightly))
		must(t, q.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"))
		for _, part := range q.Parts {
			names, err := part.Report().PolicyNames(t.Context())
			must(t, err)
			circuit, err := part.Fleet().QueueCircuit(t.Context())
			must(t, err)
			expectEqual(t, part.Keys.Queue, []string{"default", "nightly"}, names)
			expectEqual(t, part.Keys.Queue, aQueueCircuit(), circuit.QueueCircuit)
		}
		for _, want := range []bool{true, false} {
			removed, err := q.Fleet().RemovePolicy(t.Context(), "nightly")
			if err != nil || removed != want {
				t.Errorf("want removed %v, got %v, %v", want, removed, err)
			}
		}
	})
}

func TestEachPartTellsOfItsOwnCircuitThatIsTurnedByHand(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		must(t, Create(t.Context(), clients, Config{Queue: "{q}"}, 2))
		q, err := Open(t.Context(), clients, Config{Queue: "{q}"})
		must(t, err)
		_, err = q.Parts[1].Fleet().OpenCircuit(t.Context(), "queue", "bob", "", time.Now().Add(time.Hour), time.Now())
		must(t, err)
		for _, turn := range []func() (bool, error){
			func() (bool, error) { return q.Fleet().OpenCircuit(t.Context(), "queue", "ann", "", time.Hour) }, // one of them is open already
			func() (bool, error) { return q.Fleet().CloseCircuit(t.Context(), "queue", "ann") },
		} {
			if changed, err := turn(); !changed || err != nil {
				t.Errorf("want a change, got %v, %v", changed, err)
			}
		}
		for i, want := range []string{"circuit_opened ann, circuit_closed ann, ", "circuit_opened bob, circuit_closed ann, "} {
			told := ""
			for _, entry := range clients.Read.XRange(t.Context(), q.Parts[i].Keys.Outbox, "-", "+").Val() {
				told += fmt.Sprint(entry.Values["event"], " ", entry.Values["by"], ", ")
			}
			expectEqual(t, q.Parts[i].Keys.Queue, want, told)
		}
	})
}

func TestAnAttemptOfAQueueOfSeveralPartsNamesTheListToAnswerOn(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		_, second, _, uid := twoParts(t, clients)
		b := &bench{Store: second, t: t, server: server, redis: clients.Write, now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)}
		b.mustApply(b.put(uid, `{"input_url":"http://feed"}`))
		b.mustApply(b.start(uid, "a1"))
		entry := b.redis.LIndex(t.Context(), second.Keys.Input, 0).Val()
		if !strings.Contains(entry, `"input_url":"http://feed"`) || !strings.Contains(entry, `"reply_to":"{q:1}-output"}`) {
			t.Errorf("want reply_to beside the payload, got %s", entry)
		}
		if record := b.load(uid); record.Entry() != entry {
			t.Errorf("want an entry that can be taken back, got %s", record.Entry())
		}
	})
}

func TestAQueueThatCannotBeReadIsNotOpened(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := testkit.Miniredis(t).Client(t)
	if _, err := Open(ctx, &Clients{Read: client}, Config{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "read the settings of the queue") {
		t.Errorf("want the error, got %v", err)
	}
	if _, err := Open(t.Context(), &Clients{Read: client}, Config{Queue: "a b"}); err == nil {
		t.Error("want the name refused")
	}
}

func TestAPartMayBeLookedAtAloneAndNotWrittenTo(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		_, second, inFirst, _ := twoParts(t, clients)
		open := func(name string) *Queue {
			t.Helper()
			q, err := Open(t.Context(), clients, Config{Queue: name})
			must(t, err)
			return q
		}
		alone := open("{q:1}")
		if home, own := alone.Parts[0].Home(inFirst); own || home.Queue != "{q:0}" || alone.Parts[0].ReplyTo() != second.ReplyTo() {
			t.Errorf("want part 1 of two, got %+v with home %v of %s", alone.Parts[0].Keys, home, inFirst)
		}
		for doing, err := range map[string]error{
			"whole":   alone.RequireWhole(),
			"policy":  alone.Fleet().PutPolicy(t.Context(), policy.Default()),
			"circuit": alone.Fleet().SetQueueCircuit(t.Context(), aQueueCircuit(), "ann"),
		} {
			if want := "queue: expected the whole of {q}, found its part {q:1}"; err == nil || err.Error() != want {
				t.Errorf("%s: want %q, got %v", doing, want, err)
			}
		}
		for _, name := range []string{"{q:2}", "{q:01}", "{other:1}", "{q}"} { // queues of that name
			if q := open(name); q.RequireWhole() != nil || q.Parts[0].Keys.Queue == second.Keys.Queue {
				t.Errorf("%s: want a queue of its own, got %+v", name, q)
			}
		}
	})
}

func TestEachNodeIsToldTheScriptsOnce(t *testing.T) {
	server := testkit.Redis(t)
	client := server.Client(t)
	clients := &Clients{Read: client, Write: client, Block: client}
	must(t, Create(t.Context(), clients, Config{Queue: "q"}, 100))
	q, err := Open(t.Context(), clients, Config{Queue: "q"})
	must(t, err)
	must(t, client.ConfigResetStat(t.Context()).Err())
	must(t, q.LoadScripts(t.Context()))
	info := client.Info(t.Context(), "commandstats").Val()
	if want := fmt.Sprintf("cmdstat_script|load:calls=%d,", len(scripts.Sources())); !strings.Contains(info, want) {
		t.Errorf("want %s in\n%s", want, info)
	}
}
