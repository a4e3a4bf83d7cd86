package main

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/worker"
)

// checkedQueue notes what the calls of a worker come to. A worker whose slots are all busy takes nothing, so taking and pushing
// may rest, and what shows that it gets on is any call that Redis answers: there is at least one a second, to take or to wait for
// something to take, or to look after what is in hand.
type checkedQueue struct {
	worker.Queue
	steady, taking, pushing *health.Progress
}

// checked returns the parts of a queue with their calls noted, unless nobody asks about health. A part that waits for its turn calls nothing,
// so that the worker gets on as long as any part of it does.
func (a *app) checked(queue *store.Queue, config worker.Config) []worker.Queue {
	queues, tick := make([]worker.Queue, len(queue.Parts)), config.WithDefaults().FenceEvery
	var steady *health.Progress
	if a.checks != nil {
		steady = a.checks.Loop(a.loopName("worker", queue.Name), tick, false)
	}
	for i, part := range queue.Parts {
		queues[i] = part.Pool()
		name := a.loopName("", queue.Name)
		if len(queue.Parts) > 1 {
			name = " " + part.Keys.Queue()
		}
		if a.checks != nil {
			queues[i] = &checkedQueue{part.Pool(), steady, a.checks.Loop("taking"+name, tick, true), a.checks.Loop("pushing"+name, tick, true)}
		}
	}
	return queues
}

// begin notes one call for the worker as a whole and for one of its parts. The returned function notes what it came to.
func (q *checkedQueue) begin(part *health.Progress) func(*error) {
	whole, own := q.steady.Begin(), part.Begin()
	return func(err *error) { whole(*err); own(*err) }
}

func (q *checkedQueue) Take(ctx context.Context, taking store.TakeRequest) (taken store.Taken, err error) {
	defer q.begin(q.taking)(&err)
	return q.Queue.Take(ctx, taking)
}

func (q *checkedQueue) WaitInput(ctx context.Context) (found bool, err error) {
	defer q.begin(q.taking)(&err)
	return q.Queue.WaitInput(ctx)
}

func (q *checkedQueue) Answer(ctx context.Context, owner string, answers []store.Answer) (codes []store.Code, err error) {
	defer q.begin(q.pushing)(&err)
	return q.Queue.Answer(ctx, owner, answers)
}

func (q *checkedQueue) Fences(ctx context.Context, uids []string) (fences []store.Fence, now time.Time, err error) {
	defer q.begin(nil)(&err)
	return q.Queue.Fences(ctx, uids)
}

func (q *checkedQueue) Heartbeat(ctx context.Context, owner string) (now time.Time, known bool, err error) {
	defer q.begin(nil)(&err)
	return q.Queue.Heartbeat(ctx, owner)
}
