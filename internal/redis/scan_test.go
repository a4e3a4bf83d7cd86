package redis

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

func TestAWalkVisitsEachItemOnceAndInPieces(t *testing.T) {
	pages := [][]string{{"a"}, {}, slices.Repeat([]string{"b"}, ScanCount+1)}
	var sizes []int
	err := WalkFrom(t.Context(), 0, len(pages), func(place int) ([]string, int, error) { return pages[place], place + 1, nil }, func(items []string) error {
		sizes = append(sizes, len(items))
		return nil
	})
	must(t, err)
	expectEqual(t, "the pieces", []int{1, ScanCount, 1}, sizes)
}

func TestAWalkEndsWithTheFirstError(t *testing.T) {
	lost := errors.New("lost")
	next := func(fails error) func(uint64) ([]string, uint64, error) {
		return func(cursor uint64) ([]string, uint64, error) { return []string{"a"}, cursor + 1, fails }
	}
	visits := 0
	err := Scan(t.Context(), "look", next(lost), func([]string) error { visits++; return nil })
	failIf(t, !errors.Is(err, lost) || err.Error() != "look: lost" || visits != 0, "of a read: %v after %d visits", err, visits)
	err = Scan(t.Context(), "look", next(nil), func([]string) error { visits++; return lost })
	failIf(t, !errors.Is(err, lost) || err.Error() != "lost" || visits != 1, "of a visit: %v after %d visits", err, visits)
	ctx, stop := context.WithCancel(t.Context())
	err = Scan(ctx, "look", next(nil), func([]string) error { visits++; stop(); return nil })
	failIf(t, !errors.Is(err, context.Canceled) || visits != 2, "of the end of its context: %v after %d visits", err, visits)
}

func TestChunksAreReadAheadAndVisitedOneAtATime(t *testing.T) {
	lost := errors.New("lost")
	const all = 20
	walk := func(fails error) func(context.Context, func(int) error) error {
		return func(_ context.Context, chunk func(int) error) error {
			for i := range all {
				if err := chunk(i); err != nil {
					return err
				}
			}
			return fails
		}
	}
	for name, test := range map[string]struct{ walk, read, visit, want error }{
		"all is well":          {},
		"an error of the walk": {walk: lost, want: lost},
		"of a read":            {read: lost, want: lost},
		"of a visit":           {visit: lost, want: lost},
	} {
		visited := 0 // one at a time: the race detector would see two
		var inside atomic.Int32
		err := ReadAhead(t.Context(), walk(test.walk), func(context.Context, int) (func() error, error) {
			return func() error {
				failIf(t, inside.Add(1) != 1, "%s: two are visited at a time", name)
				defer inside.Add(-1)
				visited++
				return test.visit
			}, test.read
		})
		failIf(t, !errors.Is(err, test.want) || (err == nil) != (test.want == nil), "%s: got %v, want %v", name, err, test.want)
		failIf(t, test.read == nil && test.visit == nil && visited != all, "%s: %d of %d are visited", name, visited, all)
	}
}

func TestEachFieldOfAHashComesWithItsValue(t *testing.T) {
	client := answers(t, func(command goredis.Cmder) error {
		command.(*goredis.ScanCmd).SetVal([]string{"a", "1", "b", "2"}, 0)
		return nil
	})
	got := map[string]string{}
	must(t, EachField(t.Context(), client, "look", "k", func(field, value string) { got[field] = value }))
	expectEqual(t, "the fields", map[string]string{"a": "1", "b": "2"}, got)
}
