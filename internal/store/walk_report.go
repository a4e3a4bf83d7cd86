package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// EachSelected hands the uids that a selector may pick to visit, in chunks and in no order, each uid once; see WalkModels. It ends early with the
// error of visit.
func (s Report) EachSelected(ctx context.Context, selector model.Selector, visit func(uids []string) error) error {
	seen := newSeen()
	for place := WalkBegins; place != WalkEnds; {
		uids, to, err := s.WalkModels(ctx, selector, place, ScanCount)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(seen.fresh(uids, ""), ScanCount) {
			if err := visit(chunk); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		place = to
	}
	return nil
}

// Behind reads at most limit members of a sorted set, such as Keys.Failing, that stand behind another one, in their order.
func (s Report) Behind(ctx context.Context, key string, after Scored, limit int) (found []Scored, err error) {
	least := "-inf"
	if after.UID != "" {
		least = strconv.FormatInt(after.Score, 10)
	}
	for offset := int64(0); ; offset += int64(limit) {
		members, err := s.Clients.Read.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
			Min: least, Max: "+inf", Offset: offset, Count: int64(limit),
		}).Result()
		if err != nil {
			return nil, fmt.Errorf("read a page of a set: %w", err)
		}
		for _, member := range members {
			uid, _ := member.Member.(string)
			if one := (Scored{uid, int64(member.Score)}); one.Compare(after) > 0 && len(found) < limit {
				found = append(found, one)
			}
		}
		if len(found) == limit || len(members) < limit {
			return found, nil
		}
	}
}
