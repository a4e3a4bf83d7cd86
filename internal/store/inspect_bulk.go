package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// FindBulk reads a bulk at one instant with whether it stands among those that are not over.
func (s *Store) FindBulk(ctx context.Context, id string) (b Bulk, there, open bool, err error) {
	pipe := s.Clients.Read.TxPipeline()
	hash, score := pipe.HGetAll(ctx, s.Keys.Bulk(id)), pipe.ZScore(ctx, s.Keys.Bulks(), id)
	if err := ExecReads(ctx, pipe); err != nil {
		return b, false, false, fmt.Errorf("look for a bulk: %w", err)
	}
	return readBulk(id, hash.Val()), len(hash.Val()) > 0, score.Err() == nil, nil
}

// ListBulk makes a bulk known that nobody would carry out.
func (s *Store) ListBulk(ctx context.Context, b Bulk) error {
	err := s.Clients.Write.ZAddNX(ctx, s.Keys.Bulks(), redis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID}).Err()
	return Wrap(err, "list a bulk again")
}
