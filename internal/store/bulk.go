package store

import (
	"context"
	"maps"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// BulkWish is a wish about many models, as it is written down when it begins in one part of the queue.
type BulkWish struct {
	model.Bulk
	ID string
	// Size is about how many models the walk will meet, as it was when the bulk began; 0: nobody has counted.
	Size int64
}

// fields are the fields of the hash, without empty ones.
func (b *BulkWish) fields() map[string]string {
	fields := map[string]string{
		"action": string(b.Action), "selector": b.Selector.String(), "rate": b.Rate.String(), "force": redis.Flag(b.Force), "reason": b.Reason, "by": b.By,
		"since": model.FormatTime(b.Since), "ticket": redis.Number(b.Ticket), "size": redis.Number(int(b.Size)),
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

// ReplanID is the id of the bulk that plans the models of a policy anew.
func ReplanID(policy string) string { return string(model.BulkReplan) + "-" + policy }

// Policy is the policy whose models are planned anew; empty: the bulk does something else.
func (b *BulkWish) Policy() string {
	if names := b.Selector.Only(model.SelectPolicy); b.Action == model.BulkReplan && len(names) == 1 {
		return names[0]
	}
	return ""
}

// walkRate lets a walk visit a million models within minutes, and leaves most of the time of Redis to others.
var walkRate = policy.Rate{Count: 2000, Per: time.Second}

// begin begins a bulk, anew if there is one of its id.
func (s *Store) begin(ctx context.Context, pipe goredis.Pipeliner, b *BulkWish) {
	key := s.Keys.Bulk(b.ID)
	pipe.Del(ctx, key)
	pipe.HSet(ctx, key, b.fields())
	pipe.ZAdd(ctx, s.Keys.Bulks, goredis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID})
}
