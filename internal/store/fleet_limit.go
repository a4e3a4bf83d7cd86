package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// PutLimit sets a limit for a key, or for all keys of a template, at run time. What waits for the key is looked at at once.
func (s Fleet) PutLimit(ctx context.Context, l *model.Limit, now time.Time) error {
	_, err := s.changeGate(ctx, s.Keys.Limits(), model.NewGate(model.GateLimit, l.Name), writeLimit(l), now)
	return err
}

// RemoveLimit forgets a limit that was set at run time; false: there was none.
func (s Fleet) RemoveLimit(ctx context.Context, name string, now time.Time) (bool, error) {
	return s.changeGate(ctx, s.Keys.Limits(), model.NewGate(model.GateLimit, name), "", now)
}

// Limits reads the limits that were set at run time, by their names.
func (s Fleet) Limits(ctx context.Context) ([]model.Limit, error) {
	texts, err := s.Clients.Read.HGetAll(ctx, s.Keys.Limits()).Result()
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	limits := make([]model.Limit, 0, len(texts))
	for name, text := range texts {
		if limit, err := ReadLimit(name, text); err == nil { // doctor tells what cannot be read
			limits = append(limits, limit)
		}
	}
	slices.SortFunc(limits, func(a, b model.Limit) int { return cmp.Compare(a.Name, b.Name) })
	return limits, nil
}
