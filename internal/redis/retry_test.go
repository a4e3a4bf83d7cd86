package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}

func TestWhatRedisAnswersWhileItIsNotReadyPasses(t *testing.T) {
	for text, want := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                    true,
		"BUSY Redis is busy running a script":                               true,
		"CLUSTERDOWN The cluster is down":                                   true,
		"MASTERDOWN Link with MASTER is down":                               true,
		"READONLY You can't write against a read only replica.":             true,
		"TRYAGAIN Multiple keys request during rehashing of slot":           true,
		"MOVED 1 127.0.0.1:1":                                               true,
		"ASK 1 127.0.0.1:1":                                                 true,
		"OOM command not allowed when used memory > 'maxmemory'.":           false,
		"WRONGTYPE Operation against a key holding the wrong kind of value": false,
	} {
		err := fmt.Errorf("commit a batch: %w", redisError(text))
		failIf(t, IsTransient(err) != want, "%s: want %t", text, want)
	}
	failIf(t, !IsTransient(errors.New("i/o timeout")), "want that a call without an answer may pass")
}

// The retry budget begins anew with each call, even if there are others meanwhile.
func TestWhoInsistsIsToldOfEachCallWithoutAnAnswerAndOfTheEnd(t *testing.T) {
	lost, refused := errors.New("i/o timeout"), redisError("OOM command not allowed")
	var told []error
	begun := 0
	ctx := WithRetry(t.Context(), func(context.Context) func(error) error {
		begun++
		return func(err error) error {
			told = append(told, err)
			return nil
		}
	})
	for _, row := range [][]error{{nil}, {lost, nil}, {refused}, {lost, lost, refused}, {lost, nil}} {
		want := row[len(row)-1]
		ctx, retried := TrackRetry(ctx)
		again := len(row) > 1
		err := Retry(ctx, func(context.Context) (err error) {
			err, row = row[0], row[1:]
			return err
		})
		failIf(t, !errors.Is(err, want) || *retried != again, "want %v, again: %t; got %v, %t", want, again, err, *retried)
	}
	want := []error{lost, nil, lost, lost, nil, lost, nil}
	failIf(t, fmt.Sprint(told) != fmt.Sprint(want) || begun != 3, "want %v told in 3 rows, got %v in %d", want, told, begun)
}

func TestNobodyInsistsBehindTheEndOfItsContextNorUnasked(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	endless := func(context.Context) func(error) error { return func(error) error { return nil } }
	for _, ctx := range []context.Context{t.Context(), WithRetry(ended, endless), WithRetry(WithRetry(t.Context(), endless), nil)} {
		calls := 0
		err := Retry(ctx, func(ctx context.Context) error {
			return Retry(ctx, func(context.Context) error {
				calls++
				return errors.New("i/o timeout")
			})
		})
		failIf(t, err == nil || calls != 1, "want one call and its error, got %d and %v", calls, err)
	}
}
