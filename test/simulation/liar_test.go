package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// liar is a store that changes the replies of Redis to the daemons, or their requests. Where a function is nil it is honest.
type liar struct {
	fixture.Part
	due      func(*store.Due)
	claim    func(*store.Claim)
	record   func(*store.Record) // that somebody decides about
	read     func(*store.Record, []*model.Command)
	bulk     func(*flow.Bulk)
	limiters func(*model.Limiters)
	waiting  func(*flow.Waiting)
	export   func(*store.Record)
	commit   func(*store.Item) // with a transition
}

// wrap returns the store of a world: the liar of the bug, if any, on top of the honest one.
func (b bug) wrap(s fixture.Part) queue {
	if b.store != nil {
		return b.store(s)
	}
	lie := b.lie
	lie.Part = s
	if b.believed != nil {
		lie.record = func(r *store.Record) { b.believed(&r.Model) }
	}
	return lie
}

// also applies a lie to a value, unless there is none or it could not be read.
func also[T any](lie func(T), of T, err error) {
	if lie != nil && err == nil {
		lie(of)
	}
}

func (s liar) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	also(s.due, &due, err)
	return due, err
}

func (s liar) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, owner, holds, limit, lease)
	also(s.claim, &claim, err)
	return claim, err
}

func (s liar) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	records, err := s.Store.Load(ctx, uids)
	for _, record := range records {
		also(s.record, record, err)
	}
	return records, err
}

func (s liar) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	snapshot, err := s.Store.Read(ctx, uids, commands)
	if err != nil {
		return snapshot, err
	}
	for _, record := range snapshot.Records {
		also(s.record, record, nil)
		if s.read != nil {
			s.read(record, commands)
		}
	}
	return snapshot, nil
}

func (s liar) Bulks(ctx context.Context) ([]flow.Bulk, error) {
	bulks, err := s.Flow.Bulks(ctx)
	for i := range bulks {
		also(s.bulk, &bulks[i], err)
	}
	return bulks, err
}

func (s liar) Limiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	limiters, err := s.Flow.Limiters(ctx, limits, circuits, now)
	also(s.limiters, &limiters, err)
	return limiters, err
}

func (s liar) ReadLimiters(ctx context.Context, limits, circuits []string, now time.Time) (model.Limiters, error) {
	limiters, err := s.Flow.ReadLimiters(ctx, limits, circuits, now)
	also(s.limiters, &limiters, err)
	return limiters, err
}

func (s liar) Waiting(ctx context.Context, places map[string]int, now time.Time) (flow.Waiting, error) {
	waiting, err := s.Flow.Waiting(ctx, places, now)
	also(s.waiting, &waiting, err)
	also(s.limiters, &waiting.Limiters, err)
	return waiting, err
}

func (s liar) Export(ctx context.Context, uids []string) ([]store.Export, error) {
	exports, err := s.Store.Report().Export(ctx, uids)
	for _, one := range exports {
		also(s.export, one.Record, err)
	}
	return exports, err
}

func (s liar) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	for i := range batch.Items {
		if batch.Items[i].Transition != nil {
			also(s.commit, &batch.Items[i], nil)
		}
	}
	return s.Store.Commit(ctx, batch)
}

// knowsNothingRunning leaves it to the script alone that not too much is started.
var knowsNothingRunning = liar{limiters: func(l *model.Limiters) {
	for _, limiter := range l.Keys {
		limiter.Running = 0
	}
}}

// bursting starts who holds a slot though its key is closed.
func bursting(s fixture.Part) queue {
	closed := map[string]time.Time{}
	return liar{Part: s, limiters: func(l *model.Limiters) {
		for name, limiter := range l.Keys {
			if limiter.Closed.After(time.Time{}) {
				closed[name], limiter.Closed = limiter.Closed, time.Time{}
			}
		}
	}, commit: func(item *store.Item) {
		takes := item.Transition.Decision().Acquires
		for i := range takes {
			for _, slots := range []*model.Slots{&takes[i].Before, &takes[i].After} {
				if slots.Closed.IsZero() { // as it is in Redis
					slots.Closed = closed[takes[i].Name]
				}
			}
		}
	}}
}

// hearsay decides about a model as the message about it says.
func hearsay(believe func(*store.Record, model.Message)) func(fixture.Part) queue {
	return func(s fixture.Part) queue {
		var messages []store.Claimed
		return liar{Part: s, claim: func(c *store.Claim) { messages = c.Messages }, read: func(r *store.Record, _ []*model.Command) {
			for _, claimed := range messages {
				if message, err := (model.Wire{}).DecodeMessage([]byte(claimed.Raw())); err == nil && !claimed.FromControl() && message.UID == r.UID {
					believe(r, message)
				}
			}
		}}
	}
}

// believesMessage takes the uid of a message for the running attempt's: a duplicate is of a model that nobody knows.
func believesMessage(r *store.Record, message model.Message) {
	if r.LastAttemptUID == message.AttemptUID {
		r.LastAttemptUID = ""
		*r = store.Record{Model: r.Model}
	}
}

// believesAnyResult believes a result of an idle model, whatever attempt it is of.
func believesAnyResult(r *store.Record, message model.Message) {
	if r.Exists && !r.Running() && r.LastAttemptUID != message.AttemptUID && !r.Disabled {
		r.AttemptUID, r.StartedAt, r.DeadlineAt = message.AttemptUID, r.RefreshAt, model.Never
	}
}

// delaysOutdated forgets that a payload was replaced when the attempt asks to be tried again.
func delaysOutdated(r *store.Record, message model.Message) {
	if r.AttemptUID == message.AttemptUID && (message.Type == model.MessagePostponed || message.Type == model.MessageInterrupted) {
		r.Outdated = false
	}
}

// hasty counts every message as unchanged as soon as it is claimed.
type hasty struct{ fixture.Part }

func (s hasty) Claim(ctx context.Context, owner string, holds store.Holding, limit int, lease time.Duration) (store.Claim, error) {
	claim, err := s.Store.Claim(ctx, owner, holds, limit, lease)
	batch := store.Batch{Now: claim.Now, Owner: owner}
	for _, entry := range claim.Messages {
		batch.Items = append(batch.Items, store.Item{Message: entry, Counter: "unchanged"})
	}
	if _, settleErr := s.Commit(ctx, batch); settleErr != nil {
		return store.Claim{}, settleErr
	}
	return claim, err
}

// hastyHeir takes pollers and worker pools for dead after half their lease.
type hastyHeir struct{ fixture.Part }

func (s hastyHeir) ExpiredPollers(ctx context.Context, now time.Time, lease time.Duration) ([]string, error) {
	return s.Store.ExpiredPollers(ctx, now, lease/2)
}

func (s hastyHeir) Adopt(ctx context.Context, expired, owner string, lease time.Duration, limit int) (int, error) {
	return s.Store.Adopt(ctx, expired, owner, lease/2, limit)
}

func (s hastyHeir) RequeueExpired(ctx context.Context, now, judged time.Time, lease time.Duration) ([]store.ExpiredWorker, error) {
	return s.Store.RequeueExpired(ctx, now, judged, lease/2)
}

// impatient requeues what silent pools had taken without having seen the clock run evenly.
type impatient struct{ fixture.Part }

func (s impatient) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	if err == nil {
		_, err = s.RequeueExpired(ctx, due.Now, due.Judged, lease)
	}
	return due, err
}

// repeating lets a dispatcher look at stale models once more.
type repeating struct{ liar }

func (s repeating) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	if err != nil {
		return due, err
	}
	stale, err := s.Report().Behind(ctx, s.Keys.Stale, store.Scored{}, 1)
	for _, one := range stale {
		due.Ages = append(due.Ages, one.UID)
	}
	return due, err
}

// sparing looks away when some models grow older.
type sparing struct {
	fixture.Part
	spares func(*store.Record) bool
}

func (s sparing) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	if err != nil || len(due.Ages) == 0 {
		return due, err
	}
	records, err := s.Load(ctx, due.Ages)
	due.Ages = slices.DeleteFunc(due.Ages, func(uid string) bool { return err == nil && s.spares(records[uid]) })
	return due, err
}

// halfHearted looks at one model less than there are when a hold takes back what runs.
type halfHearted struct{ fixture.Part }

func (s halfHearted) WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) ([]string, store.Place, error) {
	uids, to, err := s.Store.WalkModels(ctx, selector, from, least)
	if len(uids) > 1 && len(selector.Only(model.SelectStatus)) > 0 {
		uids = uids[1:]
	}
	return uids, to, err
}

// forgetful notes how far a walk is before it has committed.
type forgetful struct {
	fixture.Part
	bulks []flow.Bulk
}

func (s *forgetful) Bulks(ctx context.Context) ([]flow.Bulk, error) {
	bulks, err := s.Flow.Bulks(ctx)
	s.bulks = slices.Clone(bulks)
	return bulks, err
}

func (s *forgetful) WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) ([]string, store.Place, error) {
	uids, to, err := s.Store.WalkModels(ctx, selector, from, least)
	for i := range s.bulks {
		if err == nil {
			s.bulks[i].Place = to
			_, err = s.MoveBulk(ctx, &s.bulks[i], s.bulks[i].Since)
		}
	}
	return uids, to, err
}

// relapsing repeats each step of a bulk: three of four notes of a move are lost.
type relapsing struct {
	liar
	moves *int
}

func (s relapsing) MoveBulk(ctx context.Context, bulk *flow.Bulk, now time.Time) (bool, error) {
	if *s.moves++; *s.moves%4 != 0 {
		return false, errors.New("the connection is lost")
	}
	return s.Flow.MoveBulk(ctx, bulk, now)
}

// premature takes each attempt for taken when the front before it was seen last.
type premature struct{ fixture.Part }

func (s premature) HeadSamples(ctx context.Context) (model.HeadSamples, error) {
	fronts, err := s.Store.HeadSamples(ctx)
	for i, front := range fronts.Noted {
		if i > 0 {
			fronts.Noted[i].FirstSeen = fronts.Noted[i-1].FirstSeen
		}
		fronts.At = front.FirstSeen
	}
	return fronts, err
}

// hollow says of each list with a front that it is empty, too.
type hollow struct{ fixture.Part }

func (s hollow) SampleHead(ctx context.Context, ticket int, since time.Time, patience time.Duration) error {
	return errors.Join(s.Store.SampleHead(ctx, ticket, since, patience), s.Store.SampleHead(ctx, 0, since, patience))
}
