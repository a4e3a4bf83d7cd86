package txn

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// start adds an item that compares a hash, writes it, and joins a set.
func start(b *Batch, uid, rev, status string) {
	i := b.Item(uid, true)
	i.First("open").Key(b.Key("q:list", List))
	hash := i.Own("q:model:"+uid, Hash)
	i.Equal(2, 6, "HMGET", i.Put(rev), 0).Key(hash).Text("rev", "attempt")
	i.Fields(i.Put(status), Words("\t=status"))
	i.Do("HSET").Key(hash).Text("rev").Value(2).Fields().Drawn()
	i.Help("XADD").Key(b.Key("q:journal", Stream)).Text("*").Fields()
	i.Add("ZADD", b.Must("q:due", ZSet), i.Put("7"), Subject)
	i.Last("HINCRBY").Key(b.Key("q:stats", Hash)).Text("starts").Count()
	i.End()
}

func TestItemsThatDifferInTheirValuesShareATemplate(t *testing.T) {
	b := NewBatch(2)
	start(b, "a", "1", "on")
	start(b, "b", "2", "off")
	want := []any{
		"now", int64(5), "list stream !zset hash ",
		"first\t=open\t@1\ncheck 2 6 = 2 0\t=HMGET\t%0 hash\t=rev\t=attempt\nfields 3\t=status\ndo\t=HSET\t%0 hash\t=rev\t$2\t~\t#\n" +
			"help\t=XADD\t@2\t=*\t~\nadd 4 1\t=ZADD\t@3\nlast\t=HINCRBY\t@4\t=starts\t+\nitem 5 1 1\n",
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
