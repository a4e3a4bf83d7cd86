package txn

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// start adds an item that compares a hash, writes it, joins a set, and is counted.
func start(b *Batch, joins int, uid, rev, status string) {
	i := b.Item(uid, true)
	b.First("open", []Key{b.Key("q:list", List)}, "9")
	hash := i.Own("q:model:"+uid, Hash)
	i.Equal(2, 6, "HMGET", i.Put(rev), 0).Key(hash).Text("rev", "attempt")
	i.Fields(i.Put(status), Words("\t=status"))
	i.Do("HSET").Key(hash).Text("rev").Value(2).Fields().Drawn()
	i.Help("XADD").Key(b.Key("q:journal", Stream)).Text("*").Fields()
	i.Add(joins, i.Put("7"), Subject)
	i.Count("HINCRBY", b.Key("q:stats", Hash), "starts")
	i.Last("XTRIM", b.Key("q:journal", Stream), "MAXLEN")
	i.Last("call", "")
	i.End()
}

func TestItemsThatDifferInTheirValuesShareATemplate(t *testing.T) {
	b := NewBatch(2, false)
	joins := b.Group("ZADD", b.Must("q:due", ZSet))
	start(b, joins, "a", "1", "on")
	start(b, joins, "b", "2", "off")
	want := []any{
		"now", int64(5), "!zset list stream hash ", 44,
		"g0202", "ZADD", "@1",
		"f03", "open", "q:list", "9",
		"l040204", "HINCRBY", "@4", "starts", "+",
		"l0302", "XTRIM", "@3", "MAXLEN",
		"l01", "call",
		"&042602", "HMGET", "%0", "rev", "attempt", "2", "",
		"d0702040607", "HSET", "%0", "rev", "$2", "status", "$3", "#",
		"h050205", "XADD", "@3", "*", "status", "$3",
		"a1 4 1",
		"b1",
		"b2",
		"b3",
		"i5 1 1 hash",
		1, new("a"), new("1"), new("on"), new("7"), 1, new("b"), new("2"), new("off"), new("7"),
	}
	if diff := cmp.Diff(want, b.Args("now", 5)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	keys := []string{"q:due", "q:list", "q:journal", "q:stats", "q:model:a", "q:model:b"}
	if got := b.Keys(); !slices.Equal(got, keys) {
		t.Errorf("keys: got %q, want %q", got, keys)
	}
}

func TestAnItemThatIsAloneBringsItsStepsInPlaceOfValues(t *testing.T) {
	b := NewBatch(1, true)
	leaves := b.Group("ZREM", b.Must("q:due", ZSet))
	start(b, b.Group("ZADD", b.Key("q:running", ZSet)), "a", "1", "on")
	for _, uid := range []string{"a", "b"} {
		i := b.Item(uid, false)
		i.Try(leaves, Subject)
		i.End()
	}
	want := []any{
		"now", int64(5), "!zset zset list stream hash ", 4,
		"f03", "open", "q:list", "9",
		"i42 1 1 hash", new("a"),
		"&0426", "HMGET", "q:model:a", "rev", "attempt", "1", "",
		"d0707", "HSET", "q:model:a", "rev", "1", "status", "on", "#",
		"h05", "XADD", "q:journal", "*", "status", "on",
		"d04", "ZADD", "q:running", "7", "a",
		"h05", "last", "HINCRBY", "q:stats", "starts", "1",
		"h04", "last", "XTRIM", "q:journal", "MAXLEN",
		"h02", "last", "call",
		"i6 0 0", new("a"), "d03", "ZREM", "q:due", "a",
		"i6 0 0", new("b"), "d03", "leave", "q:due", "b",
	}
	if diff := cmp.Diff(want, b.Args("now", 5)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestAnItemMayBringAnyNumberOfKeys(t *testing.T) {
	b := NewBatch(1, false)
	i := b.Item("a", false)
	var last Key
	for range len(ownKeys) + 2 {
		last = i.Own("q:label", Set)
	}
	if want := Key("%9"); last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}
