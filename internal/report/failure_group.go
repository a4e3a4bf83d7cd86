package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
)

// FailureGroup is a fingerprint of models that are failing, or were within a day.
type FailureGroup struct {
	Models    int64     `json:"models"`    // that are failing by it now
	FirstAt   time.Time `json:"since"`     // of the failures
	LastAt    time.Time `json:"last"`      // of the failures
	PastAt    time.Time `json:"past_at"`   // when the last model has ceased to fail by it; zero: some are failing
	ID        string    `json:"error"`     // of the fingerprint
	Text      string    `json:"signature"` // empty: only the number of models is known
	Reason    string    `json:"reason"`    // of the last failure
	ErrorType string    `json:"error_type"`
	UIDs      []string  `json:"uids"` // of three of the models

	UID          string // of the last failure
	Failures     int64
	Began, Ended int64 // how often a model began and ceased to fail by it
}

func newFailureGroup(id string, models int64, hash map[string]string) FailureGroup {
	first, _ := store.ReadStoredTime(hash["first_at"]) // a text that is no time counts as none
	last, _ := store.ReadStoredTime(hash["last_at"])
	return FailureGroup{
		ID: id, Text: hash["signature"], Reason: hash["reason"], ErrorType: hash["error_type"], UID: hash["uid"], UIDs: strings.Fields(hash["uids"]),
		FirstAt: first, LastAt: last, Models: models, Failures: redis.ParseInt(hash["failures"]), Began: redis.ParseInt(hash["began"]), Ended: redis.ParseInt(hash["ended"]),
	}
}

// FailureGroups reads the fingerprints of failing models, the one with most models first. UIDs has only models that are still failing.
func (r Report) FailureGroups(ctx context.Context) ([]FailureGroup, error) {
	all, _, err := r.readFailureGroups(ctx, r.store.Keys.Errors)
	if err != nil {
		return nil, err
	}
	pipe := r.store.Clients.Read.Pipeline()
	ids := redis.Map(all, func(one FailureGroup) []*goredis.StringCmd {
		return redis.Map(one.UIDs, func(uid string) *goredis.StringCmd { return pipe.HGet(ctx, r.store.Keys.Model(uid), store.FieldError) })
	})
	err = redis.ExecReads(ctx, pipe)
	for i := range all {
		var failing []string
		for j, uid := range all[i].UIDs {
			if ids[i][j].Val() == all[i].ID {
				failing = append(failing, uid)
			}
		}
		all[i].UIDs = failing
	}
	return all, redis.Wrap(err, "read models of fingerprints")
}

// PastFailureGroups reads groups that had failing models within a day and have none now, the last one first.
func (r Report) PastFailureGroups(ctx context.Context) ([]FailureGroup, error) {
	all, scores, err := r.readFailureGroups(ctx, r.store.Keys.PastErrors)
	for i := range all {
		all[i].Models, all[i].PastAt = 0, time.UnixMilli(int64(scores[i].Score)).UTC()
	}
	return slices.DeleteFunc(all, func(one FailureGroup) bool { return one.Text == "" }), err
}

// readFailureGroups reads the groups of a set, with their scores.
func (r Report) readFailureGroups(ctx context.Context, key string) ([]FailureGroup, []goredis.Z, error) {
	members, err := r.store.Clients.Read.ZRevRangeWithScores(ctx, key, 0, -1).Result()
	if err != nil {
		return nil, nil, fmt.Errorf("read fingerprints: %w", err)
	}
	hashes, err := redis.ReadEach(ctx, r.store.Clients.Read, "read fingerprints", members, func(pipe goredis.Pipeliner, member goredis.Z) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, r.store.Keys.Error(fmt.Sprint(member.Member)))
	})
	all := make([]FailureGroup, len(members))
	for i, hash := range hashes {
		all[i] = newFailureGroup(fmt.Sprint(members[i].Member), int64(members[i].Score), hash)
	}
	return all, members, err
}

// FailureGroup reads one fingerprint; false: nothing is known of it.
func (r Report) FailureGroup(ctx context.Context, id string) (one FailureGroup, known bool, err error) {
	pipe := r.store.Clients.Read.Pipeline()
	models, hash := pipe.ZScore(ctx, r.store.Keys.Errors, id), pipe.HGetAll(ctx, r.store.Keys.Error(id))
	err = redis.ExecReads(ctx, pipe)
	return newFailureGroup(id, int64(models.Val()), hash.Val()), len(hash.Val()) > 0 || models.Val() > 0, redis.Wrap(err, "read a fingerprint")
}

// FailingAlike reads a fingerprint in all parts of the queue.
func (r Report) FailingAlike(ctx context.Context, id string) (sum FailureGroup, err error) {
	for _, part := range r.store.AllParts() {
		one, known, err := Of(part).FailureGroup(ctx, id)
		if err != nil {
			return sum, err
		}
		if known {
			sum.Add(&one)
		}
	}
	return sum, nil
}

// Add adds the group of another part or fingerprint. The sample is the later failure.
func (one *FailureGroup) Add(other *FailureGroup) {
	if other.LastAt.After(one.LastAt) {
		one.Text, one.Reason, one.ErrorType, one.UID, one.LastAt = other.Text, other.Reason, other.ErrorType, other.UID, other.LastAt
	}
	if one.FirstAt.IsZero() || !other.FirstAt.IsZero() && other.FirstAt.Before(one.FirstAt) {
		one.FirstAt = other.FirstAt
	}
	if one.Models == 0 && other.PastAt.After(one.PastAt) {
		one.PastAt = other.PastAt
	}
	if one.Models += other.Models; one.Models > 0 {
		one.PastAt = time.Time{}
	}
	one.ID = cmp.Or(one.ID, other.ID)
	one.Failures, one.Began, one.Ended = one.Failures+other.Failures, one.Began+other.Began, one.Ended+other.Ended
	uids := append(slices.Clone(one.UIDs), other.UIDs...)
	one.UIDs = uids[:min(len(uids), 3)]
}

// FailureGroups adds up the parts of a queue, the group with most models first.
func (q Queue) FailureGroups(read func(*store.Store) ([]FailureGroup, error)) ([]FailureGroup, error) {
	return store.SumOf(q.queue, read, func(s *FailureGroup) string { return s.ID }, (*FailureGroup).Add, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Models, a.Models), b.PastAt.Compare(a.PastAt), b.LastAt.Compare(a.LastAt), cmp.Compare(a.ID, b.ID))
	})
}
