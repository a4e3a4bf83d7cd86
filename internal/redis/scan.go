package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// ScanCount is about how many keys or members one call looks at, a millisecond: Redis serves others in between.
const ScanCount = 400

// Scan walks with a cursor until its end. An error says what it was doing.
func Scan(ctx context.Context, what string, next func(cursor uint64) ([]string, uint64, error), visit func([]string) error) error {
	return WalkFrom(ctx, 0, 0, func(cursor uint64) ([]string, uint64, error) {
		items, following, err := next(cursor)
		return items, following, Wrap(err, what)
	}, visit)
}

// WalkFrom walks from a place until an end.
func WalkFrom[P comparable](ctx context.Context, place, end P, next func(P) ([]string, P, error), visit func([]string) error) error {
	for {
		items, following, err := next(place)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(items, ScanCount) { // a small set and an embedded server come as one piece
			if err := visit(chunk); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if place = following; place == end {
			return nil
		}
	}
}

// chunksAtOnce is how many chunks of a walk are read or visited at a time: while one is visited, Redis answers the next.
const chunksAtOnce = 6

// ReadAhead reads the chunks of a walk side by side, in no order, and visits one at a time: read returns how. It ends early with the first error, and
// then nothing is read any more.
func ReadAhead[C any](
	ctx context.Context, walk func(context.Context, func(chunk C) error) error, read func(context.Context, C) (visit func() error, err error),
) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(chunksAtOnce)
	var visiting sync.Mutex
	walked := walk(ctx, func(chunk C) error {
		work.Go(func() error {
			visit, err := read(ctx, chunk)
			if err != nil {
				return err
			}
			visiting.Lock()
			defer visiting.Unlock()
			return visit()
		})
		return nil
	})
	return cmp.Or(work.Wait(), walked)
}

// EachField hands over the fields of a hash with their values, in no order. One may come twice.
func EachField(ctx context.Context, client goredis.UniversalClient, doing, key string, visit func(field, value string)) error {
	return Scan(ctx, doing, func(cursor uint64) ([]string, uint64, error) {
		return client.HScan(ctx, key, cursor, "", ScanCount).Result()
	}, func(pairs []string) error {
		for pair := range slices.Chunk(pairs, 2) {
			visit(pair[0], pair[1])
		}
		return nil
	})
}

// MasterFor is the node on which a key lives: a cluster client would send a command without keys to any node.
func MasterFor(ctx context.Context, client goredis.UniversalClient, key string) (goredis.Cmdable, error) {
	if cluster, is := client.(*goredis.ClusterClient); is {
		return cluster.MasterForKey(ctx, key)
	}
	return client, nil
}

// AnyPrefix is a pattern of the keys that begin with one of these texts, and of few others. They may differ in letters only.
func AnyPrefix(prefixes ...string) string {
	var pattern strings.Builder
	for i := range len(slices.MinFunc(prefixes, func(a, b string) int { return cmp.Compare(len(a), len(b)) })) {
		letters := Map(prefixes, func(prefix string) byte { return prefix[i] })
		slices.Sort(letters)
		if letters = slices.Compact(letters); len(letters) == 1 {
			pattern.WriteString(EscapeGlob(string(letters)))
		} else {
			pattern.WriteString("[" + string(letters) + "]")
		}
	}
	return pattern.String() + "*"
}

// EscapeGlob makes a text mean itself in a pattern of SCAN.
func EscapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
