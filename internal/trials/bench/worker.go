package bench

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// popped is how many attempts a worker takes at once.
const popped = 500

// work pops attempts and says of each that it has succeeded, until ctx ends. It tells when it got the first.
func (b *Bench) work(ctx context.Context, began chan<- time.Time) error {
	keys := b.Store.Keys
	for first := true; ctx.Err() == nil; {
		entries, err := b.Redis.LPopCount(ctx, keys.Input, popped).Result()
		switch {
		case errors.Is(err, redis.Nil):
			_, err = b.Store.Pool().WaitInput(context.WithoutCancel(ctx))
		case err == nil:
			if first {
				first = false
				began <- b.Now()
			}
			err = b.Redis.RPush(ctx, keys.Output, results(entries)...).Err()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// results are messages that say of each attempt that it has succeeded.
func results(entries []string) []any {
	messages := make([]any, len(entries))
	for i, text := range entries {
		uid, attempt := uidsOf(text)
		messages[i] = `{"type":"success","big_table_uid":"` + uid + `","refresh_attempt_uid":"` + attempt + `"}`
	}
	return messages
}

func numberOf(uid string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(uid, uidPrefix)) // written by fill
	return n
}

func uidsOf(text string) (uid, attempt string) {
	var entry struct {
		UID     string `json:"big_table_uid"`
		Attempt string `json:"refresh_attempt_uid"`
	}
	_ = json.Unmarshal([]byte(text), &entry) // written by the dispatcher
	return entry.UID, entry.Attempt
}
