package store

import (
	"context"
	"time"
)

// Fleet is what operators set for many models of a part: policies, orders to worker pools, and the messages that were rejected.
type Fleet struct{ store *Store }

// Fleet sets what holds for many models of the part.
func (s *Store) Fleet() Fleet { return Fleet{s} }

// QueueFleet is Fleet of all parts of a queue.
type QueueFleet struct{ queue *Queue }

// Fleet sets what holds for many models of the queue.
func (q *Queue) Fleet() QueueFleet { return QueueFleet{q} }

// Change changes every part at its instant; true: in one of them there was something to change.
func (q QueueFleet) Change(ctx context.Context, do func(part *Store, now time.Time) (bool, error)) (changed bool, err error) {
	err = q.queue.ChangeEach(func(part *Store) error {
		now, err := part.Now(ctx)
		if err != nil {
			return err
		}
		is, err := do(part, now)
		changed = changed || is
		return err
	})
	return changed, err
}

// Report is what people and programs read of a part: models, policies, heartbeats and histories. It changes nothing.
type Report struct{ store *Store }

// Report reads what is told of the part.
func (s *Store) Report() Report { return Report{s} }

// QueueReport is Report of all parts of a queue.
type QueueReport struct{ queue *Queue }

// Report reads what is told of the queue.
func (q *Queue) Report() QueueReport { return QueueReport{q} }
