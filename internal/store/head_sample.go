package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

var sampleHead = redis.LoadScript("note-head-sample.lua")

// headSamplesCap bounds the samples of the head. Four come a second, and older ones are thinned out to one a second: they reach back an hour and a
// half or more.
const headSamplesCap = 10_000

// SampleHead notes the ticket of the attempt that stood first in the input list at some time since an instant; 0: the list was empty. An
// attempt that was handed back is not noted, nor twice in a row that the list is empty. Old samples may be thinned out, as long as no attempt
// seems to have been taken later than it was noted by more than apart.
func (s *Store) SampleHead(ctx context.Context, ticket int, since time.Time, apart time.Duration) error {
	keys := []string{s.Keys.Front, s.Keys.Input, s.Keys.Stats}
	noted, err := redis.RunScript(ctx, s.Clients.Write, sampleHead, keys, s.clockArg(), redis.Number(ticket), redis.Millis(since)).Int()
	if err == nil && noted > headSamplesCap {
		var kept []string
		_, err = s.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
			all, err := tx.LRange(ctx, s.Keys.Front, 0, -1).Result()
			if err == nil && len(all) > headSamplesCap {
				kept = thinOut(all, apart)
			}
			return kept != nil, err
		}, func(pipe goredis.Pipeliner) {
			pipe.Del(ctx, s.Keys.Front)
			pipe.RPush(ctx, s.Keys.Front, kept)
		}, s.Keys.Front)
	}
	return redis.Wrap(err, "note the head of the input list")
}

// thinOut drops samples from before the newest eighth: each lies between two that were first seen within apart of each other, and what it was seen to
// hold up counts for the one before it. Then the oldest go until there is room for an eighth.
func thinOut(samples []string, apart time.Duration) []string {
	const eighth = headSamplesCap / 8
	old, newest := samples[:len(samples)-eighth], samples[len(samples)-eighth:]
	var thin []string
	var before model.HeadSample // that was kept last; without LastSeen: there is none, or the list was empty then
	for i, text := range old {
		sample, next := readHeadSample(text), model.HeadSample{}
		if i+1 < len(old) {
			next = readHeadSample(old[i+1])
		}
		between := !before.LastSeen.IsZero() && !next.FirstSeen.IsZero() && next.FirstSeen.Sub(before.FirstSeen) <= apart
		if between && !sample.LastSeen.IsZero() {
			thin[len(thin)-1] = fmt.Sprintf("%d %s %s", before.Ticket, redis.Millis(before.FirstSeen), redis.Millis(sample.LastSeen))
			continue
		}
		before, thin = sample, append(thin, text)
	}
	return append(thin[max(0, len(thin)-headSamplesCap+2*eighth):], newest...)
}

// HeadSamples reads the samples that were noted, and the clock before that. A key of another type holds none.
func (s *Store) HeadSamples(ctx context.Context) (model.HeadSamples, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return model.HeadSamples{}, err
	}
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Front, 0, -1).Result()
	return model.HeadSamples{At: now, Noted: redis.Map(texts, readHeadSample)}, redis.Wrap(redis.IgnoreWrongType(err), "read the heads of the input list")
}

// readHeadSample reads a sample as note-head-sample.lua writes it. What cannot be read is one of nothing.
func readHeadSample(text string) model.HeadSample {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return model.HeadSample{}
	}
	sample := model.HeadSample{Ticket: int(redis.ParseInt(fields[0])), FirstSeen: time.UnixMilli(redis.ParseInt(fields[1])).UTC()}
	if len(fields) > 2 {
		sample.LastSeen = time.UnixMilli(redis.ParseInt(fields[2])).UTC()
	}
	return sample
}

// Queued reads the whole input list at one instant: attempt uid to its entry.
func (s *Store) Queued(ctx context.Context) (map[string]string, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.Input, 0, -1).Result()
	queued := make(map[string]string, len(entries))
	for _, raw := range entries {
		if entry, _ := s.Wire().ParseEntry(raw); entry.AttemptUID != "" {
			queued[entry.AttemptUID] = raw
		}
	}
	return queued, redis.Wrap(err, "read queued attempts")
}

// InputEntry is one entry of the input list.
type InputEntry struct {
	Raw             string
	UID, AttemptUID string // empty: the entry cannot be read
}

// InputPart reads up to n entries of the input list from a place on, oldest first. Entries move while a worker takes others.
func (s *Store) InputPart(ctx context.Context, from, n int64) ([]InputEntry, error) {
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Input, from, from+n-1).Result()
	return redis.Map(texts, func(text string) InputEntry {
		entry, _ := s.Wire().ParseEntry(text)
		return InputEntry{text, entry.UID, entry.AttemptUID}
	}), redis.Wrap(err, "read a part of the input list")
}
