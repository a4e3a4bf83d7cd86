package store

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

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

func firstScore(members []redis.Z) time.Time {
	if len(members) == 0 || members[0].Score > maxScore {
		return time.Time{}
	}
	return time.UnixMilli(int64(members[0].Score)).UTC()
}
