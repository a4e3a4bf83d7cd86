package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestACommandIsForwardedOnceAndInOrderHoweverOftenItIsTried(t *testing.T) {
	onEach(t, func(t *testing.T, server *testkit.Server, clients *Clients) {
		first, second, _, uid := twoParts(t, clients)
		ctx := t.Context()
		claim := func(limit int) (commands []Forwarded) {
			claimed, err := first.Claim(ctx, "p", limit, time.Minute)
			must(t, err)
			for _, c := range claimed.Messages {
				commands = append(commands, Forwarded{uid, c})
			}
			return commands
		}
		forward := func(commands []Forwarded) {
			t.Helper()
			done, err := first.Forward(ctx, commands)
			if diff := cmp.Diff(map[*Keys]bool{&second.Keys: true}, done); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
		expect := func(want ...string) {
			t.Helper()
			found, err := clients.Read.LRange(ctx, second.Keys.Control, 0, -1).Result()
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
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
			if err != nil || codes[0] != CodeApplied {
				t.Fatalf("settle: %v, %v", codes, err)
			}
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
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		client := server.Client(t)
		first, second, inFirst, inSecond := twoParts(t, &Clients{Read: client, Write: client, Block: client})
		must(t, client.Set(t.Context(), first.Keys.Control, "of another type", 0).Err())
		done, err := second.Forward(t.Context(), []Forwarded{{inFirst, Claimed{"n1 a"}}, {inSecond, Claimed{"n2 b"}}})
		if diff := cmp.Diff(map[*Keys]bool{&second.Keys: true}, done); diff != "" {
			t.Error(diff)
		}
		if err == nil || !strings.Contains(err.Error(), "forward commands to {q:0}: ") || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("want the part named, got %v", err)
		}
	})
}
