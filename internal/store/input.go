package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

var sampleHead = Load("note-front.lua")

// headSamplesCap is how many samples of the head are kept: at four a second, thinned out to one a second as they age, those of more than an hour and a half,
// and of longer where the list moves slowly.
const headSamplesCap = 10_000

// SampleHead notes the ticket of the attempt that stood first in the input list at some time since an instant; 0: the list was empty. An
// attempt that was handed back is not noted, nor twice in a row that the list is empty. Old samples may be thinned out, as long as no attempt
// seems to have been taken later than it was noted by more than apart.
func (s *Store) SampleHead(ctx context.Context, ticket int, since time.Time, apart time.Duration) error {
	keys := []string{s.Keys.Front, s.Keys.Input, s.Keys.Stats}
	noted, err := Run(ctx, s.Clients.Write, sampleHead, keys, s.clockArg(), number(ticket), Millis(since)).Int()
	if err == nil && noted > headSamplesCap {
		var kept []string
		_, err = s.Clients.WriteIf(ctx, func(tx *redis.Tx) (bool, error) {
			all, err := tx.LRange(ctx, s.Keys.Front, 0, -1).Result()
			if err == nil && len(all) > headSamplesCap {
				kept = thinOut(all, apart)
			}
			return kept != nil, err
		}, func(pipe redis.Pipeliner) {
			pipe.Del(ctx, s.Keys.Front)
			pipe.RPush(ctx, s.Keys.Front, kept)
		}, s.Keys.Front)
	}
	return Wrap(err, "note the head of the input list")
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
			thin[len(thin)-1] = fmt.Sprintf("%d %s %s", before.Ticket, Millis(before.FirstSeen), Millis(sample.LastSeen))
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
	samples := model.HeadSamples{At: now}
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Front, 0, -1).Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return samples, nil
	}
	for _, text := range texts {
		samples.Noted = append(samples.Noted, readHeadSample(text))
	}
	return samples, Wrap(err, "read the heads of the input list")
}

// readHeadSample reads a sample as note-front.lua writes it. What cannot be read is one of nothing.
func readHeadSample(text string) model.HeadSample {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return model.HeadSample{}
	}
	sample := model.HeadSample{Ticket: int(parseInt(fields[0])), FirstSeen: time.UnixMilli(parseInt(fields[1])).UTC()}
	if len(fields) > 2 {
		sample.LastSeen = time.UnixMilli(parseInt(fields[2])).UTC()
	}
	return sample
}

// QueuePosition is where a model stands in the line of those that workers take next.
type QueuePosition struct {
	No   int     // 1 is the first; 0: it does not stand there
	Rate float64 // how many attempts a second have left the list of late; 0: not known
}

// Wait is how long it takes at the present rate until its attempt is taken; 0: not known.
func (p QueuePosition) Wait() time.Duration {
	if p.No == 0 || p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.No) / p.Rate * float64(time.Second))
}

// QueuePosition tells the place of a model: that of its attempt in the input list, or behind all of these what it will be if nothing is asked for
// meanwhile. It reads the whole list, so it is for people, not for loops.
func (s Report) QueuePosition(ctx context.Context, m *Record) (QueuePosition, error) {
	pipe, k := s.Clients.Read.Pipeline(), &s.Keys
	now, err := s.Now(ctx)
	if err != nil {
		return QueuePosition{}, err
	}
	entries, urgent := pipe.LRange(ctx, k.Input, 0, -1), pipe.ZCard(ctx, k.Urgent)
	calm := pipe.ZCount(ctx, k.Due, "-inf", Millis(now))
	hurried, due := pipe.ZRank(ctx, k.Urgent, m.UID), pipe.ZRank(ctx, k.Due, m.UID)
	if err := ExecReads(ctx, pipe); err != nil {
		return QueuePosition{}, fmt.Errorf("read the input list: %w", err)
	}
	samples, err := s.HeadSamples(ctx)
	place, waiting := QueuePosition{Rate: samples.Rate()}, len(entries.Val())
	switch {
	case m.Running():
		for i, raw := range entries.Val() {
			if entry, _ := s.Wire().ParseEntry(raw); entry.AttemptUID == m.AttemptUID {
				place.No = i + 1
			}
		}
	case hurried.Err() == nil: // urgent ones and others take turns
		place.No = waiting + int(hurried.Val()+min(hurried.Val(), calm.Val())) + 1
	case due.Err() == nil:
		place.No = waiting + int(due.Val()+min(due.Val()+1, urgent.Val())) + 1
	}
	return place, err
}

// InputEntry is one entry of the input list.
type InputEntry struct {
	Raw             string
	UID, AttemptUID string // empty: the entry cannot be read
}

// InputPart reads up to n entries of the input list from a place on, oldest first. Only what stands at one place is told; entries move
// while a worker takes others.
func (s *Store) InputPart(ctx context.Context, from, n int64) ([]InputEntry, error) {
	texts, err := s.Clients.Read.LRange(ctx, s.Keys.Input, from, from+n-1).Result()
	if err != nil {
		return nil, fmt.Errorf("read a part of the input list: %w", err)
	}
	entries := make([]InputEntry, len(texts))
	for i, text := range texts {
		entry, _ := s.Wire().ParseEntry(text)
		entries[i] = InputEntry{text, entry.UID, entry.AttemptUID}
	}
	return entries, nil
}
