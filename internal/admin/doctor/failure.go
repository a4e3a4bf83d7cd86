package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store/inspect"
)

// fingerprints notes known fingerprints, so that they are counted.
func (c *checker) fingerprints(_ context.Context, ids []string) error {
	for _, id := range ids {
		c.failing[id] += 0
	}
	return nil
}

// errorCounts checks the count of failing models of each fingerprint. Models may have changed during the walk: it counts again, exactly, where the
// counts differ.
func (c *checker) errorCounts(ctx context.Context) error {
	if err := c.in.EachMember(ctx, c.store.Keys.Errors, true, func(ids []string) error { return c.fingerprints(ctx, ids) }); err != nil {
		return err
	}
	before, err := c.in.ErrorCounts(ctx, slices.Sorted(maps.Keys(c.failing)))
	doubtful := slices.DeleteFunc(before, func(is inspect.ErrorCount) bool { return is.Agrees(c.failing[is.ID]) })
	if err != nil || len(doubtful) == 0 {
		return err
	}
	models, err := c.in.CountErrors(ctx)
	if err != nil {
		return err
	}
	after, err := c.in.ErrorCounts(ctx, redis.Map(doubtful, func(is inspect.ErrorCount) string { return is.ID }))
	if err != nil {
		return err
	}
	for i, was := range doubtful {
		if was != after[i] || was.Agrees(models[was.ID]) { // it changes while it is counted
			continue
		}
		f := errorCount.wanting(strconv.FormatInt(models[was.ID], 10)).at(c.store.Keys.Error(was.ID), fmt.Sprintf("%d counted", was.Counted))
		err := c.repairUnless("a model began or ceased to fail by it", f, func() (bool, error) {
			return c.in.RecountError(ctx, was, models[was.ID], c.now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
