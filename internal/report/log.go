package report

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// logsRead is how many logs are read at once, of at most 64 KiB each.
const logsRead = 20

// Log reads the log of an attempt. It is sought from the newest on; nil: it is not kept, or not any more.
func (r Report) Log(ctx context.Context, attemptUID string) (*model.Log, error) {
	for last := int64(-1); ; last -= logsRead {
		entries, err := r.store.Clients.Read.LRange(ctx, r.store.Keys.Logs, last-logsRead+1, last).Result()
		if err != nil || len(entries) == 0 {
			return nil, redis.Wrap(err, "read logs")
		}
		for _, entry := range slices.Backward(entries) {
			if log, err := model.ParseLog(entry); err == nil && log.AttemptUID == attemptUID {
				return &log, nil
			}
		}
	}
}

// reasonsRead is how many of its last attempts are searched for the failure of a model: some may have been cancelled since.
const reasonsRead = 5

// LastReasons reads the reasons of the last failures of models, by their uids, or why their last attempts ended. A success has no reason.
func (r Report) LastReasons(ctx context.Context, uids []string) (map[string]string, error) {
	histories, err := r.store.Report().Histories(ctx, uids, reasonsRead)
	reasons := make(map[string]string, len(uids))
	for uid, attempts := range histories {
		failed := slices.IndexFunc(attempts, func(a model.Attempt) bool { return a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout })
		if len(attempts) > 0 {
			reasons[uid] = attempts[max(0, failed)].Reason
		}
	}
	return reasons, err
}
