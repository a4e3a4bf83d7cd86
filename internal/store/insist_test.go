package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
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
		failIf(t, Passing(err) != want, "%s: want %t", text, want)
	}
	failIf(t, !Passing(errors.New("i/o timeout")), "want that a call without an answer may pass")
}

// replies answers one call after the other.
type replies struct {
	Executor
	left []error
}

func (r *replies) Now(context.Context) (now time.Time, err error) {
	err, r.left = r.left[0], r.left[1:]
	return now, err
}

func TestWhoInsistsIsToldOfEachAnswerBetweenCallsWithoutOne(t *testing.T) {
	lost, refused := errors.New("i/o timeout"), redisError("OOM command not allowed")
	var told []error
	i := &Insistent{Executor: &replies{left: []error{lost, nil, lost, lost, refused, lost, nil}}, Again: func(_ context.Context, err error) bool {
		told = append(told, err)
		return true
	}}
	for _, want := range []error{nil, refused, nil} {
		_, err := i.Now(t.Context())
		failIf(t, !errors.Is(err, want), "want %v, got %v", want, err)
	}
	want := []error{lost, nil, lost, lost, nil, lost, nil}
	failIf(t, fmt.Sprint(told) != fmt.Sprint(want), "want %v told, got %v", want, told)
}
