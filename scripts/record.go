package scripts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Record is one model as it was read, with what a transition needs to notice that it has changed since.
type Record struct {
	model.Model
	// Exists is false for a model that is not stored.
	Exists bool

	hash map[string]string // the stored fields, "rev" among them
}

// Rev is the revision that was read; empty: none.
func (r *Record) Rev() string { return r.hash[fieldRev] }

// The fields of the hash <queue>:model:<uid>. An absent value is an absent field.
const (
	fieldRev            = "rev"
	fieldRefreshAt      = "refresh_at"
	fieldWhy            = "refresh_why"
	fieldAttemptUID     = "attempt_uid"
	fieldAttemptNo      = "attempt_no"
	fieldStartedAt      = "started_at"
	fieldDeadlineAt     = "deadline_at"
	fieldProcessingAt   = "processing_at"
	fieldWorker         = "worker"
	fieldAgain          = "again"
	fieldDisabled       = "refresh_disabled_until_update"
	fieldDisabledReason = "refresh_disabled_user_friendly_reason"
	fieldStatus         = "user_friendly_status"
	fieldProgress       = "progress"
	fieldLastSuccessAt  = "last_success_at"
	fieldFailingSince   = "failing_since"
	fieldFinalFailureAt = "final_failure_at"
	fieldLastAttempt    = "last_attempt_uid"
	fieldDeferrals      = "deferrals"
	fieldTryingSince    = "trying_since"
	fieldRetries        = "total_retries"
	fieldRetriesHelped  = "successful_retries"
	fieldRetriedCycles  = "retried_cycles"
	fieldRule           = "rrule"
	fieldTimezone       = "timezone"
	fieldDtstart        = "dtstart"
	fieldPolicy         = "policy"
)

// encode renders a model as the fields of its hash, without rev.
func encode(m *model.Model) map[string]string {
	fields := map[string]string{
		fieldRefreshAt: model.FormatTime(m.RefreshAt), fieldWhy: m.Why,
		fieldAttemptUID: m.AttemptUID, fieldAttemptNo: number(m.AttemptNo),
		fieldStartedAt: model.FormatTime(m.StartedAt), fieldDeadlineAt: model.FormatTime(m.DeadlineAt),
		fieldProcessingAt: model.FormatTime(m.ProcessingAt), fieldWorker: m.Worker, fieldAgain: flag(m.Again),
		fieldDisabled: flag(m.Disabled), fieldDisabledReason: m.DisabledReason,
		fieldStatus: m.UserFriendlyStatus, fieldProgress: number(m.Progress),
		fieldLastSuccessAt: model.FormatTime(m.LastSuccessAt), fieldFailingSince: model.FormatTime(m.FailingSince),
		fieldFinalFailureAt: model.FormatTime(m.FinalFailureAt), fieldLastAttempt: m.LastAttemptUID,
		fieldDeferrals: number(m.Deferrals), fieldTryingSince: model.FormatTime(m.TryingSince),
		fieldRetries: number(m.TotalRetries), fieldRetriesHelped: number(m.SuccessfulRetries), fieldRetriedCycles: number(m.RetriedCycles),
		fieldRule: m.Rule, fieldTimezone: m.Timezone, fieldDtstart: m.Dtstart, fieldPolicy: m.PolicyName,
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

// decode reads the fields of a hash. A value that cannot be read is left out and told as a fault: the model then waits with
// safe values instead of stopping its batch.
func decode(uid string, hash map[string]string) model.Model {
	d := decoder{hash: hash}
	m := model.Model{
		UID: uid, Rule: hash[fieldRule], Timezone: hash[fieldTimezone], Dtstart: hash[fieldDtstart], PolicyName: hash[fieldPolicy],
		State: model.State{
			RefreshAt: d.time(fieldRefreshAt), Why: hash[fieldWhy],
			AttemptUID: hash[fieldAttemptUID], AttemptNo: d.number(fieldAttemptNo),
			StartedAt: d.time(fieldStartedAt), DeadlineAt: d.time(fieldDeadlineAt),
			ProcessingAt: d.time(fieldProcessingAt), Worker: hash[fieldWorker], Again: hash[fieldAgain] != "",
			Disabled: hash[fieldDisabled] != "", DisabledReason: hash[fieldDisabledReason],
			UserFriendlyStatus: hash[fieldStatus], Progress: d.number(fieldProgress),
			LastSuccessAt: d.time(fieldLastSuccessAt), FailingSince: d.time(fieldFailingSince),
			FinalFailureAt: d.time(fieldFinalFailureAt), LastAttemptUID: hash[fieldLastAttempt],
			Deferrals: d.number(fieldDeferrals), TryingSince: d.time(fieldTryingSince),
			TotalRetries: d.number(fieldRetries), SuccessfulRetries: d.number(fieldRetriesHelped), RetriedCycles: d.number(fieldRetriedCycles),
		},
	}
	m.Fault = d.fault
	return m
}

type decoder struct {
	hash  map[string]string
	fault string
}

func (d *decoder) time(name string) time.Time {
	text := d.hash[name]
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.fault = fmt.Sprintf("%s: expected an RFC 3339 time, found %s", name, document.Found(text))
	}
	return at.UTC().Truncate(time.Millisecond)
}

func (d *decoder) number(name string) int {
	text := d.hash[name]
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		d.fault = fmt.Sprintf("%s: expected a whole number, found %s", name, document.Found(text))
		return 0
	}
	return n
}

// Load reads the models with these uids, in that order, with policy and schedule resolved. A model that is not stored has
// Exists false; one that cannot be read carries a Fault. Duplicate uids share one record.
func (s *Store) Load(ctx context.Context, uids []string) (map[string]*Record, error) {
	records := make(map[string]*Record, len(uids))
	read, err := s.readStored(ctx, uids)
	if err != nil {
		return nil, err
	}
	for uid, reply := range read.hashes {
		hash, err := reply.Result()
		record := &Record{Model: decode(uid, hash), Exists: len(hash) > 0, hash: hash}
		if err != nil {
			record.Exists, record.hash, record.Fault = true, map[string]string{}, "hash: "+err.Error()
		}
		if record.Payload, err = read.payloads[uid].Result(); err != nil && !missing(err) {
			record.Fault = "payload: " + err.Error()
		}
		record.Brake = read.brake
		records[uid] = record
	}
	return records, s.resolve(ctx, records)
}

// stored is what was read of a batch of models.
type stored struct {
	hashes   map[string]*redis.MapStringStringCmd
	payloads map[string]*redis.StringCmd
	brake    model.Brake
}

// readStored fetches hash and payload of each model, and the brake, in one pipeline; a wrong type harms only its own reply.
func (s *Store) readStored(ctx context.Context, uids []string) (stored, error) {
	read := stored{make(map[string]*redis.MapStringStringCmd, len(uids)), make(map[string]*redis.StringCmd, len(uids)), model.Brake{}}
	if len(uids) == 0 {
		return read, nil
	}
	pipe := s.clients.Read.Pipeline()
	for _, uid := range uids {
		if read.hashes[uid] == nil {
			read.hashes[uid] = pipe.HGetAll(ctx, s.Keys.Model(uid))
			read.payloads[uid] = pipe.Get(ctx, s.Keys.Payload(uid))
		}
	}
	brake := pipe.HMGet(ctx, s.Keys.Brake(), brakeSettings...)
	commands, _ := pipe.Exec(ctx) // its error is the first one only, and may be a harmless one before a lost connection
	for _, command := range commands {
		if err := command.Err(); err != nil && !missing(err) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return stored{}, fmt.Errorf("read models: %w", err)
		}
	}
	settings := make(map[string]string, len(brakeSettings))
	for i, value := range brake.Val() {
		settings[brakeSettings[i]], _ = value.(string)
	}
	read.brake = decodeBrake(settings)
	return read, nil
}

// resolve puts policy and schedule in force. What cannot be resolved becomes a fault with a safe replacement.
func (s *Store) resolve(ctx context.Context, records map[string]*Record) error {
	var names []string
	for _, record := range records {
		names = append(names, record.PolicyName)
	}
	slices.Sort(names)
	policies, err := s.Policies(ctx, slices.Compact(names))
	if err != nil {
		return err
	}
	asks := false
	for _, record := range records {
		s.resolveRecord(record, policies)
		asks = asks || record.Policy.AsksQueueDepth()
	}
	if asks {
		return s.readQueueDepth(ctx, records)
	}
	return nil
}

func (s *Store) resolveRecord(record *Record, policies map[string]policy.Policy) {
	p, found := policies[record.PolicyName]
	if !found {
		p = policy.Default()
		record.Fault = fmt.Sprintf("policy: expected the name of a stored policy, found %s", document.Found(record.PolicyName))
	}
	if err := record.Resolve(p, s.schedules.Get); err != nil {
		record.Fault = err.Error()
	}
}

// readQueueDepth tells the records how long the input list is, for expressions that ask.
func (s *Store) readQueueDepth(ctx context.Context, records map[string]*Record) error {
	depth, err := s.clients.Read.LLen(ctx, s.Keys.Input()).Result()
	if err != nil {
		return fmt.Errorf("read the length of the input list: %w", err)
	}
	for _, record := range records {
		record.QueueDepth = int(depth)
	}
	return nil
}
