package store

import (
	"context"
	"fmt"
	"time"
)

var (
	takeAttempts   = Load("take-attempts.lua")
	answerAttempts = Load("answer-attempts.lua")
)

// TakeRequest is what a worker pool asks for.
type TakeRequest struct {
	// Owner names the taken list of the pool; no two pools may share it, and one that was forgotten is not used again.
	Owner string
	// New says that the owner has not been answered yet. Any other owner that Redis does not know is forgotten.
	New bool
	// Most is how many entries to move at most.
	Most int
	// Known is how many entries the pool knows to stand in its taken list, at least; negative: a reply was lost.
	Known int
}

// Taken is what a worker pool gets.
type Taken struct {
	// Entries of the input list, oldest first.
	Entries []string
	// Whole says that Entries are all that stands in the taken list, also those that the pool knows of. Nothing was moved.
	Whole bool
	// Forgotten says that the lease of the pool has expired: all that it had taken was requeued.
	Forgotten bool
	// Now is the clock.
	Now time.Time
}

// Take moves the oldest entries of the input list into the taken list of a worker pool. It is also the pool's heartbeat. To
// repeat it after an error is safe: what was moved then still stands in the taken list and is told as soon as there is more in it
// than the pool knows of. An empty list is no error.
func (s Pool) Take(ctx context.Context, taking TakeRequest) (Taken, error) {
	k := s.Keys
	keys := []string{k.Input(), k.Taken(taking.Owner), k.Workers()}
	now, reply, err := runTimed(ctx, s.Clients.Write, takeAttempts, 2, keys,
		s.clockArg(), taking.Owner, flag(taking.New), taking.Most, max(-1, taking.Known))
	if err != nil {
		return Taken{}, fmt.Errorf("take entries of the input list: %w", err)
	}
	return Taken{Entries: texts(reply[1]), Whole: reply[0] == int64(2), Forgotten: reply[0] == int64(0), Now: now}, nil
}

// Answer is one message of a worker pool, or the end of an attempt about which there is nothing to tell.
type Answer struct {
	Message string // empty: nothing is pushed
	Ends    bool   // it ends the attempt of Entry
	Entry   string // as it was taken
}

// Answer pushes messages to the output list, in order, and removes the entries that they end from the owner's taken list, in one
// script: a crash leaves no attempt that is answered and yet requeued. A message whose entry does not stand there is not
// pushed, and its code is CodeGone. So after an error Answer may be repeated: no attempt is ended twice.
func (s Pool) Answer(ctx context.Context, owner string, answers []Answer) ([]Code, error) {
	if len(answers) == 0 {
		return nil, nil
	}
	keys := []string{s.Keys.Output(), s.Keys.Taken(owner)}
	args := []any{}
	for _, answer := range answers {
		args = append(args, flag(answer.Ends), answer.Entry, answer.Message)
	}
	codes, err := runCodes(ctx, s.Clients.Write, answerAttempts, keys, args)
	return codes, Wrap(err, "push messages to the output list")
}

// WaitInput waits up to a second for an entry of the input list; false: none came. It takes nothing.
func (s Pool) WaitInput(ctx context.Context) (bool, error) {
	return s.waitList(ctx, s.Keys.Input())
}
