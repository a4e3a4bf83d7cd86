package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// ahead is the queue of a poller whose rounds overlap: the concurrent read is done at once, before the batch in front is decided. A model must
// be in one batch at a time, and the batch in front must be committed first.
type ahead struct {
	queue
	fail func(format string, args ...any)

	last, front []string        // what was claimed last, and what was before it
	beside      bool            // something is read beside
	early       map[string]bool // models that were
	begun       bool            // the batch in front was committed, or there is none
}

func (s *ahead) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.queue.Claim(ctx, owner, holds, limit, lease)
	s.front, s.last, s.early, s.begun = s.last, nil, nil, holds.InHand == 0
	for _, message := range claim.Messages {
		s.last = append(s.last, message.Entry)
	}
	return claim, err
}

func (s *ahead) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	if s.beside {
		s.early = map[string]bool{}
		for _, uid := range uids {
			s.early[uid] = true
		}
	}
	return s.queue.Read(ctx, uids, commands)
}

func (s *ahead) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	behind := slices.ContainsFunc(batch.Items, func(i store.Item) bool {
		return i.Message != (store.Claimed{}) && !slices.Contains(s.front, i.Message.Entry) // others start in places that these give back
	})
	switch {
	case len(batch.Items) == 0, batch.Items[0].Message == (store.Claimed{}): // of a bulk
	case !behind:
		s.begun = true
		for _, item := range batch.Items {
			if t := item.Transition; t != nil && s.early[t.UID()] {
				s.fail("%s is in two batches at a time", t.UID())
			}
		}
	case !s.begun:
		s.fail("a batch is committed before the one in front")
	default:
		s.early = nil
	}
	return s.queue.Commit(ctx, batch)
}

func (s *ahead) read(read func()) (wait func()) {
	s.beside = true
	read()
	s.beside = false
	return func() {}
}

// aheadRole is a poller whose rounds overlap as long as there is something to do.
type aheadRole struct {
	pollerRole
	ahead *ahead
}

func (p aheadRole) round(ctx context.Context) error {
	_, err := p.RunPipelined(ctx, func() bool { return true }, p.ahead.read)
	return err
}

// newAhead returns a poller whose rounds overlap; a bug may be planted in it.
func (w *world) newAhead(owner string, batch int) (role, error) {
	queue := &ahead{queue: w.queue, fail: func(format string, args ...any) {
		if w.broken == nil {
			w.broken = fmt.Errorf(format, args...)
		}
	}}
	top := poller.Store(queue)
	if w.over != nil {
		top = w.over(queue)
	}
	p, err := poller.New(poller.Rooms{Store: noNotes{top}, Flow: queue}, poller.Config{Owner: owner, Batch: batch, Lease: lease, NewUID: w.newUID})
	return aheadRole{pollerRole{p, w.queue, owner}, queue}, err
}

// rash reads every batch ahead, also models that the batch in front may change, and throws away what it reads: it plants the order of the calls, not the
// harm, and only ahead itself finds it. A status that is said again is what would be lost; a test of the poller shows that.
type rash struct{ *ahead }

func (s rash) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.ahead.Claim(ctx, owner, holds, limit, lease)
	if err != nil || holds.InHand == 0 {
		return claim, err
	}
	var uids []string
	for _, message := range claim.Messages {
		if said, err := s.Wire().DecodeMessage([]byte(message.Raw())); err == nil {
			uids = append(uids, said.UID)
		}
	}
	s.read(func() { _, err = s.Read(ctx, uids, nil) })
	return claim, err
}

// tardy commits a batch behind the next; ahead finds it by the order of the calls.
type tardy struct {
	*ahead
	late store.Batch
}

func (s *tardy) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	if !s.begun && len(s.late.Items) == 0 {
		s.late = batch
		return slices.Repeat([]store.Code{store.CodeApplied}, len(batch.Items)), nil
	}
	codes, err := s.ahead.Commit(ctx, batch)
	if len(s.late.Items) > 0 {
		_, late := s.ahead.Commit(ctx, s.late)
		s.late.Items = nil
		return codes, late
	}
	return codes, err
}

// aheadBugs are bugs of rounds that overlap.
var aheadBugs = []bug{
	{name: "a batch is read ahead whose models the one in front changes", first: 13, over: func(s *ahead) poller.Store { return rash{s} }},
	{name: "a batch is committed before the one in front", first: 13, over: func(s *ahead) poller.Store { return &tardy{ahead: s} }},
}
