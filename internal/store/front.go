package store

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

var noteFront = Load("note-front.lua")

// frontCap is how many fronts are kept: at four a second, thinned out to one a second as they age, those of more than an hour and a half,
// and of longer where the list moves slowly.
const frontCap = 10_000

// NoteFront notes the ticket of the attempt that stood first in the input list at some time since an instant; 0: the list was empty. An
// attempt that was handed back is not noted, nor twice in a row that the list is empty. Old fronts may be thinned out, as long as no attempt
// seems to have been taken later than it was noted by more than apart.
func (s *Store) NoteFront(ctx context.Context, ticket int, since time.Time, apart time.Duration) error {
	keys := []string{s.Keys.Front(), s.Keys.Input(), s.Keys.Stats()}
	err := Run(ctx, s.Clients.Write, noteFront, keys, s.clockArg(), number(ticket), Millis(since), frontCap, apart.Milliseconds()).Err()
	return Wrap(err, "note the front of the input list")
}

// Fronts reads the fronts that were noted, and the clock before that. A key of another type holds none.
func (s *Store) Fronts(ctx context.Context) (model.Fronts, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return model.Fronts{}, err
	}
	fronts := model.Fronts{At: now}
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Front(), 0, -1).Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return fronts, nil
	}
	for _, text := range texts {
		fronts.Noted = append(fronts.Noted, readFront(text))
	}
	return fronts, Wrap(err, "read the fronts of the input list")
}

// readFront reads a front as note-front.lua writes it. What cannot be read is no front of anything.
func readFront(text string) model.Front {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return model.Front{}
	}
	front := model.Front{Ticket: int(whole(fields[0])), FirstSeen: time.UnixMilli(whole(fields[1])).UTC()}
	if len(fields) > 2 {
		front.LastSeen = time.UnixMilli(whole(fields[2])).UTC()
	}
	return front
}
