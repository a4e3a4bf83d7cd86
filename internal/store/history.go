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
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	attempts := make([]model.Attempt, 0, len(entries))
	for _, entry := range entries {
		if attempt, err := model.ParseAttempt(entry); err == nil {
			attempts = append(attempts, attempt)
		}
	}
	return attempts, nil
}

// reasonsRead is among how many of its last attempts the failure of a model is looked for: others may have been cancelled since.
const reasonsRead = 5

// LastReasons reads why models failed last, by their uids; of one of which no failure is known, why its last attempt ended. One that ended
// well, or has none, has no reason.
func (s Report) LastReasons(ctx context.Context, uids []string) (map[string]string, error) {
	if len(uids) == 0 {
		return nil, nil
	}
	pipe := s.Clients.Read.Pipeline()
	newest := SendEach(uids, func(uid string) *redis.StringSliceCmd {
		return pipe.LRange(ctx, s.Keys.History(uid), 0, reasonsRead-1)
	})
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	reasons := make(map[string]string, len(uids))
	for i, uid := range uids {
		reasons[uid] = lastReason(newest[i].Val())
	}
	return reasons, nil
}

func lastReason(entries []string) (reason string) {
	for i, entry := range entries {
		attempt, err := model.ParseAttempt(entry)
		switch {
		case err == nil && (attempt.Outcome == model.EventFailure || attempt.Outcome == model.EventTimeout):
			return attempt.Reason
		case err == nil && i == 0:
			reason = attempt.Reason
		}
	}
	return reason
}

// definitionFields is how many of fieldNames belong to the definition; they stand first.
var definitionFields = func() (n int) {
	c := codec{set: func(string, string) { n++ }, absent: true}
	c.definition(new(model.Model))
	return n
}()

// StateFields are the fields of the hash that transitions write, as they stand there, without rev.
func StateFields(m *model.Model) map[string]string {
	fields := make(map[string]string)
	for i, value := range encode(m) {
		if i >= definitionFields && value != "" {
			fields[fieldNames[i]] = value
		}
	}
	return fields
}

// ReadState reads what StateFields has written, and nothing else. An error is a *document.Error.
func ReadState(value any) (model.State, error) {
	doc, err := document.ReadObject(value, fieldNames[definitionFields:]...)
	if err != nil {
		return model.State{}, err
	}
	v := make(values, len(fieldNames))
	for _, name := range fieldNames[definitionFields:] {
		if v[places[name]], err = doc.Text(name); err != nil {
			return model.State{}, err
		}
	}
	m, place := model.Model{}, definitionFields-1
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
	Record *Record // as Inspect reads it: its policy is not in force
	Past   []string
	// Fault says what of it cannot be read; empty: all can.
	Fault string
}

// Export reads models with their history. One that is not stored is left out.
func (s Report) Export(ctx context.Context, uids []string) (exports []Export, err error) {
	for chunk := range slices.Chunk(uids, AtomicBatch) {
		pipe := s.Clients.Read.TxPipeline()
		hashes := SendEach(chunk, func(uid string) *redis.MapStringStringCmd { return pipe.HGetAll(ctx, s.Keys.Model(uid)) })
		payloads := SendEach(chunk, func(uid string) *redis.StringCmd { return pipe.Get(ctx, s.Keys.Payload(uid)) })
		pasts := SendEach(chunk, func(uid string) *redis.StringSliceCmd { return pipe.LRange(ctx, s.Keys.History(uid), 0, -1) })
		if err := ExecReads(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
		for i, uid := range chunk {
			if one, stored := newExport(uid, hashes[i], payloads[i], pasts[i]); stored {
				exports = append(exports, one)
			}
		}
	}
	return exports, nil
}

func newExport(uid string, hash *redis.MapStringStringCmd, payload *redis.StringCmd, past *redis.StringSliceCmd) (Export, bool) {
	one := Export{Record: NewRecord(uid, hash.Val())}
	one.Fault = one.Record.Fault
	for _, unread := range []error{past.Err(), payload.Err(), hash.Err()} {
		if unread != nil && !Missing(unread) {
			one.Fault = unread.Error()
		}
	}
	one.Record.Payload, one.Past = payload.Val(), canonicalPast(past.Val())
	one.Record.Broken = hash.Err() != nil
	return one, one.Record.Exists || one.Record.Broken
}

// canonicalPast are entries of a history as this release writes them. One that cannot be read is left out.
func canonicalPast(entries []string) []string {
	past := make([]string, 0, len(entries))
	for _, entry := range entries {
		if attempt, err := model.ParseAttempt(entry); err == nil {
			past = append(past, string(attempt.AppendEntry(nil)))
		}
	}
	return past
}

// Past reads the histories of models, by uid: of each all entries, newest first, as this release writes them.
func (s Report) Past(ctx context.Context, uids []string) (map[string][]string, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(uids, func(uid string) *redis.StringSliceCmd { return pipe.LRange(ctx, s.Keys.History(uid), 0, -1) })
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read histories: %w", err)
	}
	pasts := make(map[string][]string, len(uids))
	for i, uid := range uids {
		pasts[uid] = canonicalPast(replies[i].Val())
	}
	return pasts, nil
}

// PoliciesOf reads the names of the policies of models, in their order; empty: the policy default, or there is no such model.
func (s Report) PoliciesOf(ctx context.Context, uids []string) ([]string, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(uids, func(uid string) *redis.StringCmd { return pipe.HGet(ctx, s.Keys.Model(uid), "policy") })
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read the policies of models: %w", err)
	}
	names := make([]string, len(uids))
	for i, reply := range replies {
		names[i] = reply.Val()
	}
	return names, nil
}
