package store

import (
	"context"
	"maps"
	"strings"
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
	// After are daemons of an older release that have lived since it began. It waits for their end: what they write it would have to mend again.
	After []string
}

// fields say what is wished for, but for empty ones.
func (b *BulkWish) fields() map[string]string {
	fields := map[string]string{
		"action": string(b.Action), "selector": b.Selector.String(), "rate": b.Rate.String(), "force": redis.Flag(b.Force), "reason": b.Reason, "by": b.By,
		"since": model.FormatTime(b.Since), "ticket": redis.Number(b.Ticket), "size": redis.Number(int(b.Size)),
		"after": strings.Join(b.After, " "),
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

// MendID is the id of the bulk that mends what daemons of older releases have left out. It is called after Layout.
const MendID = "layout-2"

// mendRate lets a million models be looked at within minutes, and most of the time of Redis to others.
var mendRate = policy.Rate{Count: 2000, Per: time.Second}

// beginMend writes down that all models of the part are to be mended behind the end of some daemons, unless nothing has happened in it yet. It is made
// of commands that dispatchers may give, which begin no other bulk.
func (s *Store) beginMend(ctx context.Context, after []string) error {
	counters, err := s.Clients.Read.HGetAll(ctx, s.Keys.Stats).Result()
	if err != nil || len(counters) == 0 {
		return err
	}
	b := BulkWish{ID: MendID, After: after, Bulk: model.Bulk{Action: model.BulkMend, Rate: mendRate.Share(len(s.AllParts()))}}
	if b.Since, err = s.Now(ctx); err != nil {
		return err
	}
	_, err = s.Clients.Write.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		s.begin(ctx, pipe, &b)
		return nil
	})
	return err
}

// begin begins a bulk, anew if there is one of its id.
func (s *Store) begin(ctx context.Context, pipe goredis.Pipeliner, b *BulkWish) {
	key := s.Keys.Bulk(b.ID)
	pipe.Del(ctx, key)
	pipe.HSet(ctx, key, b.fields())
	pipe.ZAdd(ctx, s.Keys.Bulks, goredis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID})
}
