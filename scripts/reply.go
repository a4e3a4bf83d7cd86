package scripts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// runValues runs a script that answers with n values.
func runValues(ctx context.Context, client redis.UniversalClient, script *redis.Script, n int, keys []string, args ...any) ([]any, error) {
	reply, err := script.Run(ctx, client, keys, args...).Slice()
	if err == nil && len(reply) != n {
		err = fmt.Errorf("expected %d values, found %d", n, len(reply))
	}
	return reply, err
}

// runTimed runs a script that answers with the clock and n more values.
func runTimed(
	ctx context.Context, client redis.UniversalClient, script *redis.Script, n int, keys []string, args ...any,
) (now time.Time, more []any, err error) {
	reply, err := runValues(ctx, client, script, n+1, keys, args...)
	if err != nil {
		return now, nil, err
	}
	now, err = parseMillis(text(reply[0]))
	return now, reply[1:], err
}

// runCodes runs a script that answers with one code per item.
func runCodes(ctx context.Context, client redis.UniversalClient, script *redis.Script, keys []string, args []any) ([]Code, error) {
	replies, err := script.Run(ctx, client, keys, args...).Int64Slice()
	if err != nil {
		return nil, err
	}
	codes := make([]Code, len(replies))
	for i, reply := range replies {
		codes[i] = Code(reply)
	}
	return codes, nil
}

// parseMillis reads the clock as a script answers it.
func parseMillis(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("expected Unix milliseconds, found %q", text)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// parseScore reads a score of the due or running set. A person can write any number there; one that is no whole number, or
// never comes, must not stop the queue.
func parseScore(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("expected a score, found %q", text)
	case ms > maxScore:
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// maxScore is above every instant that a Go program can format.
const maxScore = 253402300799999 // the end of the year 9999

func text(reply any) string {
	value, _ := reply.(string)
	return value
}

func texts(reply any) []string {
	values, _ := reply.([]any)
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = text(value)
	}
	return out
}
