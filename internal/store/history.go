package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// History reads the attempts of one model that ended last, newest first. An entry that cannot be read is left out.
func (s Report) History(ctx context.Context, uid string) ([]model.Attempt, error) {
	entries, err := s.Clients.Read.LRange(ctx, s.Keys.History(uid), 0, -1).Result()
	return parseAttempts(entries), Wrap(err, "read history")
}

// Histories reads the newest attempts that have ended, at most so many, of each of some models, newest first; 0: all. What cannot be read is left out.
func (s Report) Histories(ctx context.Context, uids []string, most int) (map[string][]model.Attempt, error) {
	pasts, err := ReadEach(ctx, s.Clients.Read, "read histories", uids, func(pipe redis.Pipeliner, uid string) *redis.StringSliceCmd {
		return pipe.LRange(ctx, s.Keys.History(uid), 0, int64(most)-1)
	})
	histories := make(map[string][]model.Attempt, len(uids))
	for i, uid := range uids {
		histories[uid] = parseAttempts(pasts[i])
	}
	return histories, err
}

// ReadPast reads the histories of models whose hashes were read before: whoever adds to them meanwhile is noticed by the revision.
func ReadPast(ctx context.Context, s Report, records []*Record) error {
	uids := Map(records, func(r *Record) string { return r.UID })
	histories, err := s.Histories(ctx, uids, 0)
	for _, record := range records {
		record.Past = histories[record.UID]
	}
	return err
}

func parseAttempts(entries []string) []model.Attempt {
	attempts := make([]model.Attempt, 0, len(entries))
	for _, entry := range entries {
		if attempt, err := model.ParseAttempt(entry); err == nil {
			attempts = append(attempts, attempt)
		}
	}
	return attempts
}

// logsRead is how many logs are read at once, of at most 64 KiB each.
const logsRead = 20

// ReadLog reads the log of an attempt. It is sought from the newest on; nil: it is not kept, or not any more.
func ReadLog(ctx context.Context, s Report, attemptUID string) (*model.Log, error) {
	for last := int64(-1); ; last -= logsRead {
		entries, err := s.Clients.Read.LRange(ctx, s.Keys.Logs, last-logsRead+1, last).Result()
		if err != nil || len(entries) == 0 {
			return nil, Wrap(err, "read logs")
		}
		for _, entry := range slices.Backward(entries) {
			if log, err := model.ParseLog(entry); err == nil && log.AttemptUID == attemptUID {
				return &log, nil
			}
		}
	}
}

// reasonsRead is among how many of its last attempts the failure of a model is looked for: others may have been cancelled since.
const reasonsRead = 5

// LastReasons reads why models failed last, by their uids; of one of which no failure is known, why its last attempt ended. One that ended
// well, or has none, has no reason.
func (s Report) LastReasons(ctx context.Context, uids []string) (map[string]string, error) {
	histories, err := s.Histories(ctx, uids, reasonsRead)
	reasons := make(map[string]string, len(uids))
	for uid, attempts := range histories {
		failed := slices.IndexFunc(attempts, func(a model.Attempt) bool { return a.Outcome == model.EventFailure || a.Outcome == model.EventTimeout })
		if len(attempts) > 0 {
			reasons[uid] = attempts[max(0, failed)].Reason
		}
	}
	return reasons, err
}

// StateFields are the fields of the hash that transitions write, as they stand there, without rev.
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
	// Fault says what of it cannot be read; empty: all can.
	Fault string
}

// Export reads models with their history. One that is not stored is left out.
func (s Report) Export(ctx context.Context, uids []string) (exports []Export, err error) {
	for chunk := range slices.Chunk(uids, AtomicBatch) {
		pipe := s.Clients.Read.TxPipeline()
		hashes := Map(chunk, func(uid string) *redis.MapStringStringCmd { return pipe.HGetAll(ctx, s.Keys.Model(uid)) })
		payloads := Map(chunk, func(uid string) *redis.StringCmd { return pipe.Get(ctx, s.Keys.Payload(uid)) })
		pasts := Map(chunk, func(uid string) *redis.StringSliceCmd { return pipe.LRange(ctx, s.Keys.History(uid), 0, -1) })
		if err := ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
		for i, uid := range chunk {
			one := Export{Record: NewRecord(uid, hashes[i].Val()), Past: parseAttempts(pasts[i].Val())}
			one.Fault = one.Record.Fault
			for _, unread := range []error{pasts[i].Err(), payloads[i].Err(), hashes[i].Err()} {
				if unread != nil && !Missing(unread) {
					one.Fault = unread.Error()
				}
			}
			one.Record.Payload, one.Record.Broken = payloads[i].Val(), hashes[i].Err() != nil
			if one.Record.Exists || one.Record.Broken {
				exports = append(exports, one)
			}
		}
	}
	return exports, nil
}

// PoliciesOf reads the names of the policies of models, in their order; empty: the policy default, or there is no such model.
func (s Report) PoliciesOf(ctx context.Context, uids []string) ([]string, error) {
	return ReadEach(ctx, s.Clients.Read, "read the policies of models", uids, func(pipe redis.Pipeliner, uid string) *redis.StringCmd {
		return pipe.HGet(ctx, s.Keys.Model(uid), "policy")
	})
}
