package redis

import (
	"cmp"
	"strings"
)

// WrittenAt is when an entry of a stream was written, in Unix ms by the clock of Redis.
func WrittenAt(id string) int64 {
	ms, _, _ := strings.Cut(id, "-")
	return ParseInt(ms)
}

// CompareIDs compares the ids of entries of streams. An empty one comes first.
func CompareIDs(a, b string) int {
	_, first, _ := strings.Cut(a, "-")
	_, second, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(WrittenAt(a), WrittenAt(b)), cmp.Compare(ParseInt(first), ParseInt(second)))
}
