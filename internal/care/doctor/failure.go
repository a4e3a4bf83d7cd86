package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/internal/store/inspect"
)

// signatures notes of which signatures something is known, so that they are counted.
func (c *checker) signatures(_ context.Context, ids []string) error {
	for _, id := range ids {
		c.failing[id] += 0
	}
	return nil
}

// errorCounts checks that as many models are counted for each signature as are failing by it. What the walk has seen of models that changed
// meanwhile is doubtful: it is counted again, exactly.
func (c *checker) errorCounts(ctx context.Context) error {
	key := c.store.Keys.Errors
	if c.wrongType[key] || c.wrongType[c.store.Keys.PastErrors] {
		return nil
	}
	err := inspect.Of(c.store).EachMember(ctx, key, func(ids []string) error { return c.signatures(ctx, ids) })
	if err != nil {
		return err
	}
	before, err := inspect.Of(c.store).ErrorCounts(ctx, slices.Sorted(maps.Keys(c.failing)))
	doubtful := slices.DeleteFunc(before, func(is inspect.ErrorCount) bool { return is.Agrees(c.failing[is.ID]) })
	if err != nil || len(doubtful) == 0 {
		return err
	}
	return c.recountErrors(ctx, doubtful)
}

func (c *checker) recountErrors(ctx context.Context, doubtful []inspect.ErrorCount) error {
	models, err := inspect.Of(c.store).CountErrors(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(doubtful))
	for i, is := range doubtful {
		ids[i] = is.ID
	}
	after, err := inspect.Of(c.store).ErrorCounts(ctx, ids)
	if err != nil {
		return err
	}
	for i, was := range doubtful {
		if was != after[i] || was.Agrees(models[was.ID]) { // it changes while it is counted
			continue
		}
		f := errorCount.wanting(strconv.FormatInt(models[was.ID], 10)).at(c.store.Keys.Error(was.ID), fmt.Sprintf("%d counted", was.Counted))
		err := c.repairUnless("a model began or ceased to fail by it", f, func() (bool, error) {
			return inspect.Of(c.store).RecountError(ctx, was, models[was.ID], c.now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
