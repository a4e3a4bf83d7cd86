package txn

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// start adds an item that compares a hash, writes it, and joins a set.
func start(b *Batch, uid, rev, status string) {
	b.First(new(Words).Text("open").Key(b.Key("q:list", List)))
	i := b.Item(uid, true)
	hash := i.Own("q:model:"+uid, Hash)
	i.Equal(2, 6, "HMGET", i.Put(rev), 0).Key(hash).Text("rev", "attempt")
	i.Fields(i.Put(status), Words("\t=status"))
	i.Do("HSET").Key(hash).Text("rev").Value(2).Fields().Drawn()
	i.Help("XADD").Key(b.Key("q:journal", Stream)).Text("*").Fields()
	i.Add(b.Group("ZADD", b.Must("q:due", ZSet)), i.Put("7"), Subject)
	i.Last(new(Words).Text("HINCRBY").Key(b.Key("q:stats", Hash)).Text("starts").Count())
	i.End()
}

func TestItemsThatDifferInTheirValuesShareATemplate(t *testing.T) {
	b := NewBatch(2)
	start(b, "a", "1", "on")
	start(b, "b", "2", "off")
	want := []any{
		"now", int64(5), "list stream !zset hash ",
		1, "\t=open\t@1", 1, "\t=ZADD\t@3", 1, "\t=HINCRBY\t@4\t=starts\t+",
		1, "check 2 6 = 2 0\t=HMGET\t%0 hash\t=rev\t=attempt\nfields 3\t=status\ndo\t=HSET\t%0 hash\t=rev\t$2\t~\t#\n" +
			"help\t=XADD\t@2\t=*\t~\nadd 1 4 1\nlast 1\nitem 5 1 1 0\n",
		1, "a", "1", "on", "7", 1, "b", "2", "off", "7",
	}
	if diff := cmp.Diff(want, b.Args("now", 5)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	keys := []string{"q:list", "q:journal", "q:due", "q:stats", "q:model:a", "q:model:b"}
	if got := b.Keys(); !slices.Equal(got, keys) {
		t.Errorf("keys: got %q, want %q", got, keys)
	}
}

func TestAnItemMayBringAnyNumberOfKeys(t *testing.T) {
	b := NewBatch(1)
	i := b.Item("a", false)
	var last Key
	for range len(ownKeys) + 2 {
		last = i.Own("q:label", Set)
	}
	if want := Key("%9 set"); last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}
