package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

const uidPrefix = "tbl_"

const policyName = "bench"

// putPolicy stores the policy of all models: hourly, ten retries. It removes the bulk that would plan models anew, as its walk would be measured.
func (b *Bench) putPolicy(ctx context.Context) error {
	p, err := policy.Parse(map[string]any{
		"name": policyName, "rrule": "FREQ=HOURLY", "timeout": "30m", "retries": []any{"1m", "2m", "5m", "5m", "10m", "10m", "10m", "20m", "20m", "30m"},
	})
	if err != nil {
		return fmt.Errorf("make a policy: %w", err)
	}
	if err := b.Store.Fleet().PutPolicy(ctx, p); err != nil {
		return err
	}
	return b.Redis.Del(ctx, b.Store.Keys.Bulks).Err()
}

// AtOnce makes all models due at once.
func AtOnce(_ int, now time.Time) time.Time { return now }

const fillBatch = 500

// Fill saves count models from number first on, each with a payload of a 100-byte URL. when returns the time at which a model becomes due.
func (b *Bench) Fill(ctx context.Context, first, count int, when func(i int, now time.Time) time.Time) error {
	now, err := b.Store.Now(ctx)
	if err != nil {
		return err
	}
	for end := first + count; first < end && err == nil; first += fillBatch {
		err = b.save(ctx, first, min(fillBatch, end-first), now, when)
	}
	return err
}

func (b *Bench) save(ctx context.Context, first, count int, now time.Time, when func(i int, now time.Time) time.Time) error {
	uids, commands := make([]string, count), make([]*model.Command, count)
	for i := range count {
		uids[i] = fmt.Sprintf(uidPrefix+"%09d", first+i)
		url := fmt.Sprintf("https://feeds.example.com/%s/", uids[i])
		url += strings.Repeat("x", 100-len(url))
		commands[i] = &model.Command{Type: model.CommandPut, UID: uids[i], Definition: model.Definition{
			UID: uids[i], Payload: `{"input_url":"` + url + `"}`, PolicyName: policyName, Refresh: model.RefreshPlanned,
		}}
	}
	snapshot, err := b.Store.Read(ctx, uids, commands)
	if err != nil {
		return err
	}
	batch := store.Batch{Now: now}
	for i, command := range commands {
		record := snapshot.Records[uids[i]]
		decision, outcome, err := record.Execute(command, snapshot.Policies, record.Exists, now)
		if err != nil {
			return fmt.Errorf("save %s: %w", uids[i], err)
		}
		if outcome != model.Applied {
			return fmt.Errorf("save %s: expected it to be applied, found %s", uids[i], outcome)
		}
		decision.Next.RefreshAt = when(first+i, now)
		batch.Items = append(batch.Items, store.Item{Transition: snapshot.Apply(command, decision, now)})
	}
	codes, err := b.Store.Commit(ctx, batch)
	if err == nil && slices.ContainsFunc(codes, func(code store.Code) bool { return code != store.CodeApplied }) {
		err = fmt.Errorf("save models: expected all to be applied, found %v", codes)
	}
	return err
}
