package store

import (
	"context"
	"fmt"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Histories reads the newest attempts that have ended, at most so many, of each of some models, newest first; 0: all. It skips unreadable ones.
func (s Report) Histories(ctx context.Context, uids []string, most int) (map[string][]model.Attempt, error) {
	pasts, err := redis.ReadEach(ctx, s.store.Clients.Read, "read histories", uids, func(pipe goredis.Pipeliner, uid string) *goredis.StringSliceCmd {
		return pipe.LRange(ctx, s.store.Keys.History(uid), 0, int64(most)-1)
	})
	histories := make(map[string][]model.Attempt, len(uids))
	for i, uid := range uids {
		histories[uid] = ParseAttempts(pasts[i])
	}
	return histories, err
}

// ReadPast reads the histories of models whose hashes were read before: the revision shows if somebody adds to them meanwhile.
func ReadPast(ctx context.Context, s Report, records []*Record) error {
	uids := redis.Map(records, func(r *Record) string { return r.UID })
	histories, err := s.Histories(ctx, uids, 0)
	for _, record := range records {
		record.Past = histories[record.UID]
	}
	return err
}

// ParseAttempts reads entries of a history. It skips unreadable ones.
func ParseAttempts(entries []string) []model.Attempt {
	attempts := make([]model.Attempt, 0, len(entries))
	for _, entry := range entries {
		if attempt, err := model.ParseAttempt(entry); err == nil {
			attempts = append(attempts, attempt)
		}
	}
	return attempts
}

// StateFields are the fields of the hash that transitions write, without rev.
func StateFields(m *model.Model) map[string]string {
	fields := make(map[string]string)
	for i, value := range encode(m) {
		if i >= definedFields && value != "" {
			fields[fieldNames[i]] = value
		}
	}
	return fields
}

// ReadState reads what StateFields has written, and nothing else. An error is a *document.Error.
func ReadState(value any) (model.State, error) {
	doc := document.Read(value, fieldNames[definedFields:]...)
	v := make(values, len(fieldNames))
	for _, name := range fieldNames[definedFields:] {
		v[places[name]] = doc.Text(name)
	}
	if doc.Err() != nil {
		return model.State{}, doc.Err()
	}
	m, place := model.Model{}, definedFields-1
	c := codec{get: func(string) string { place++; return v[place] }}
	if c.state(&m); c.fault != nil {
		return model.State{}, c.fault
	}
	for i, value := range encode(&m) {
		if given := v[i]; value != given {
			return model.State{}, document.Refuse(fieldNames[i], "it as the hash of a model has it: "+document.Found(value), document.Found(given))
		}
	}
	return m.State, nil
}

// Export is all that a queue knows of one model, as it was at one instant.
type Export struct {
	Record *Record         // as Inspect reads it: its policy is not in force
	Past   []model.Attempt // newest first
	// Fault names an unreadable part; empty: there is none.
	Fault string
}

// Export reads the stored models with their histories.
func (s Report) Export(ctx context.Context, uids []string) (exports []Export, err error) {
	for chunk := range slices.Chunk(uids, AtomicBatch) {
		pipe := s.store.Clients.Read.TxPipeline()
		hashes := redis.Map(chunk, func(uid string) *goredis.MapStringStringCmd { return pipe.HGetAll(ctx, s.store.Keys.Model(uid)) })
		payloads := redis.Map(chunk, func(uid string) *goredis.StringCmd { return pipe.Get(ctx, s.store.Keys.Payload(uid)) })
		pasts := redis.Map(chunk, func(uid string) *goredis.StringSliceCmd { return pipe.LRange(ctx, s.store.Keys.History(uid), 0, -1) })
		if err := redis.ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
		for i, uid := range chunk {
			one := Export{Record: NewRecord(uid, hashes[i].Val()), Past: ParseAttempts(pasts[i].Val())}
			one.Fault = one.Record.Fault
			for _, unread := range []error{pasts[i].Err(), payloads[i].Err(), hashes[i].Err()} {
				if unread != nil && !redis.Missing(unread) {
					one.Fault = unread.Error()
				}
			}
			one.Record.Payload, one.Record.Broken = payloads[i].Val(), hashes[i].Err() != nil
			model.DeriveHost(&one.Record.Model)
			if one.Record.Exists || one.Record.Broken {
				exports = append(exports, one)
			}
		}
	}
	return exports, nil
}

// PoliciesOf reads the names of the policies of models, in their order; empty: the policy default, or there is no such model.
func (s Report) PoliciesOf(ctx context.Context, uids []string) ([]string, error) {
	return redis.ReadEach(ctx, s.store.Clients.Read, "read the policies of models", uids, func(pipe goredis.Pipeliner, uid string) *goredis.StringCmd {
		return pipe.HGet(ctx, s.store.Keys.Model(uid), "policy")
	})
}
