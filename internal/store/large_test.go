package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// small returns the bench with a cap of messages.
func (b *bench) small(messageCap int) { b.config.MessageCap = messageCap }

func TestOfAMessageThatIsTooLargeOnlyItsSizeAndItsBeginningAreClaimed(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.small(4 << 10)
		fits, large := strings.Repeat("f", 4<<10), strings.Repeat("l", 4<<10+1)
		b.seed(keys{"-output": list{fits, large, "r"}, "-control": list{large}})
		beginning := "4097/4096 " + strings.Repeat("l", 1000)
		want := list{"o" + fits, "O" + beginning, "or", "C" + beginning}
		expectEqual(t, "claimed", want, b.claim("p1", 10))
		expectEqual(t, "claimed again", want, b.claim("p1", 10))
	})
}

func TestALargeMessageTellsItsSourceItsSizeAndItsBeginning(t *testing.T) {
	c := Claimed{"C4097/4096 {\"type\": \"put\""}
	size, most, large := c.Large()
	if !large || size != "4097" || most != "4096" || !c.FromControl() || c.Raw() != `{"type": "put"` {
		t.Errorf("got %q of %q, %t, control %t, %q", size, most, large, c.FromControl(), c.Raw())
	}
	for _, entry := range []string{"", "O", "C", "O12", "C1/2", "o1/2 x", "cx y"} {
		Claimed{entry}.Large()
		if raw := (Claimed{entry}).Raw(); strings.HasPrefix(entry, "o") && raw != "1/2 x" || strings.HasPrefix(entry, "c") && raw != "x y" {
			t.Errorf("%q: got %q", entry, raw)
		}
	}
}

func TestOfARejectedMessageThatIsLargeTheBeginningAndTheSizeAreKept(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		entries := list{"o" + strings.Repeat("é", maxRaw), "O104857600/1048576 " + strings.Repeat("x", 999) + "\xc3"}
		b.seed(keys{":claimed:p1": entries})
		b.settle("p1", Item{Message: Claimed{entries[0]}, Counter: "malformed", Reason: "bad"}, Item{Message: Claimed{entries[1]}, Counter: "oversized", Reason: "bad"})
		rejected := b.state()[":rejected"].(list)
		want := []Rejected{
			{Raw: strings.Repeat("é", maxRaw/2), Bytes: "32768"},
			{Raw: strings.Repeat("x", 999), Bytes: "104857600"},
		}
		for i, text := range rejected {
			var got Rejected
			if err := json.Unmarshal([]byte(text), &got); err != nil || got.Raw != want[i].Raw || got.Bytes != want[i].Bytes || got.RawBase64 != "" {
				t.Errorf("%v: want %s bytes beginning with %d, got %s and %d", err, want[i].Bytes, len(want[i].Raw), got.Bytes, len(got.Raw))
			}
		}
		if len(rejected) != 2 {
			t.Errorf("want 2 rejected, got %d", len(rejected))
		}
	})
}

// bytesOf is how much stands in a list.
func bytesOf(entries []string) (sum int) {
	for _, entry := range entries {
		sum += len(entry)
	}
	return sum
}

func TestAClaimIsBoundedByBytesAndNeitherListStarvesTheOther(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		results, commands := make(list, 30), make(list, 30)
		for i := range results {
			results[i], commands[i] = strings.Repeat("r", 1<<20), strings.Repeat("k", 1<<20)
		}
		b.seed(keys{"-output": results, "-control": commands})
		claimed := b.claim("p1", 1000)
		if n := len(claimed); n != 16 || claimed[7][0] != 'o' || claimed[8][0] != 'n' {
			t.Errorf("want 8 results and 8 commands of 1 MiB, got %d entries of %d bytes", n, bytesOf(claimed))
		}
		if again := b.claim("p1", 1000); len(again) != 16 {
			t.Errorf("want nothing more while these are held, got %d", len(again))
		}
	})
}

func TestOneMessageOf100MBIsClaimedAtOnceWithoutItsBytes(t *testing.T) {
	b := newBench(t, testkit.Redis(t))
	huge, many := strings.Repeat("x", 100_000_000), long.Or(1, 3)
	for range many {
		must(t, b.Clients.Write.RPush(t.Context(), b.Keys.Output, huge).Err())
	}
	must(t, b.Clients.Write.RPush(t.Context(), b.Keys.Output, "r").Err())
	for i := range many {
		if claimed := b.claim("p1", 1000); len(claimed) != i+1 || bytesOf(claimed) > 4000 {
			t.Fatalf("claim %d: got %d entries of %d bytes", i, len(claimed), bytesOf(claimed))
		}
	}
	if claimed := b.claim("p1", 1000); claimed[many] != "or" {
		t.Errorf("want the message behind them, got %q", claimed[3])
	}
}
