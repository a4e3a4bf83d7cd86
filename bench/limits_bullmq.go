package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// bullmqLimits runs its script twice, as bullmqCycles does. The script says what its way costs.
func bullmqLimits(dir string) keep {
	return func(ctx context.Context, s *server, l limits, n int) (seen, result, error) {
		how := []string{strconv.Itoa(l.hosts), strconv.Itoa(l.atATime), strconv.FormatInt(l.work.Milliseconds(), 10), strconv.FormatBool(l.slow)}
		output, r, err := addAndWork(ctx, s, dir, "bullmq-limits.mjs", n, how...)
		if err != nil {
			return seen{}, r, err
		}
		var told struct {
			Took, Others float64 // milliseconds
			Most         int
		}
		if err := json.Unmarshal(output, &told); err != nil {
			return seen{}, r, fmt.Errorf("read what BullMQ tells: %w", err)
		}
		ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
		return seen{took: ms(told.Took), others: ms(told.Others), most: told.Most}, r, nil
	}
}
