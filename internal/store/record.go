package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Record is one model as it was read. A transition can notice that it has changed since.
type Record struct {
	model.Model
	// Exists is false for a model that is not stored.
	Exists bool
	// Broken: the key of the model holds no hash; Fault names the type.
	Broken bool

	rev    string
	former string            // rev of the model that was removed on the way to this one; empty: none
	values values            // of its fields, as they are stored or a decision has left them; nil: none are
	labels map[string]string // as they are stored, with the host
	others []string          // fields of its hash that are none of a model: they go with the next transition
}

// NewRecord reads a hash.
func NewRecord(uid string, hash map[string]string) *Record {
	if len(hash) == 0 {
		return &Record{Model: model.Model{UID: uid}}
	}
	r := &Record{Exists: true, rev: hash[fieldRev], values: make(values, len(fieldNames))}
	labels, others := split(hash, r.values)
	r.Model, r.others = decode(uid, r.values), others
	r.Labels, r.labels = labels, labels
	return r
}

// Rev is the revision that was read; empty: none.
func (r *Record) Rev() string { return r.rev }

// Status derives the status at now, see model.State; also if there is no model.
func (r *Record) Status(now time.Time, queued bool) model.Status {
	if r.Broken {
		return model.StatusBroken
	}
	return r.State.Status(now, queued)
}

// RefreshUnreadable reports whether there is a refresh_at that is no time. Without one the model waits for nothing.
func (r *Record) RefreshUnreadable() bool {
	return r.RefreshAt.IsZero() && r.values.of(fieldRefreshAt) != ""
}

// stored are the values of the fields.
func (r *Record) stored() values {
	if r.values == nil {
		return make(values, len(fieldNames))
	}
	return r.values
}

// Uses reports whether the model is stored and uses the policy that is, or was, stored under a name.
func (r *Record) Uses(name string) bool {
	return r.Exists && cmp.Or(r.PolicyName, DefaultPolicyName) == name
}

// Snapshot is the basis of a batch: the models as they were read, each moving on with the decisions about it.
type Snapshot struct {
	// Records are the models by uid, also those that are not stored.
	Records map[string]*Record
	// Policies are those that the commands name, and those that they bring along.
	Policies model.Policies
}

// Read reads the models with these uids, and whatever else the commands about some of them need: only these have their payload.
func (s *Store) Read(ctx context.Context, uids []string, commands []*model.Command) (*Snapshot, error) {
	records, err := s.load(ctx, uids, redis.Map(commands, uidOf))
	if err != nil {
		return nil, err
	}
	var past []*Record
	for _, command := range commands {
		if record := records[command.UID]; (command.Type == model.CommandAccept || command.Type == model.CommandReject) && record.Exists {
			past = append(past, record)
		}
	}
	if len(past) > 0 {
		if err := ReadPast(ctx, s.Report(), past); err != nil {
			return nil, err
		}
	}
	policies, err := s.readPolicies(ctx, commands)
	return &Snapshot{records, policies}, err
}

func uidOf(command *model.Command) string { return command.UID }

// readPolicies reads every policy that a put names, and the policy `default`, which completes those that puts bring along.
func (s *Store) readPolicies(ctx context.Context, commands []*model.Command) (policies model.Policies, err error) {
	var names []string
	var inline []*model.Definition
	for _, command := range commands {
		switch d := &command.Definition; {
		case command.Type != model.CommandPut:
		case d.Inline == nil:
			names = append(names, d.PolicyName)
		default:
			if inline = append(inline, d); d.Partial() {
				names = append(names, "")
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	policies.Compile = s.Schedules.Get
	if policies.ByName, err = s.Policies(ctx, names); err != nil {
		return policies, err
	}
	usual, readable := policies.ByName[""]
	if readable {
		model.CompleteAll(inline, usual)
	}
	for i, d := range inline {
		if i == 0 || d.Inline != inline[i-1].Inline { // models by the thousand bring along the same
			policies.ByName[d.PolicyName] = *d.Inline
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { _, found := policies.ByName[name]; return !found }) {
		policies.Stored, err = s.Report().PolicyNames(ctx)
	}
	return policies, err
}

// Apply turns the decision about a command into the transition to commit.
func (s *Snapshot) Apply(command *model.Command, decision model.Decision, now time.Time) *Transition {
	return s.Records[command.UID].Decide(decision, now)
}

// Load reads models with payload, policy and schedule. A missing model has Exists false; an unreadable one has a Fault.
func (s *Store) Load(ctx context.Context, uids []string) (map[string]*Record, error) {
	return s.load(ctx, uids, uids)
}

// load reads the models with these uids, and the payloads of some of them.
func (s *Store) load(ctx context.Context, uids, whole []string) (map[string]*Record, error) {
	records := make(map[string]*Record, len(uids))
	if len(uids) == 0 {
		return records, nil
	}
	unique := func(uids []string) []string { return slices.Compact(slices.Sorted(slices.Values(uids))) } // a batch often repeats one
	uids, whole = unique(uids), unique(whole)
	pipe := s.Clients.Read.Pipeline()
	hashes := redis.Map(uids, func(uid string) *goredis.MapStringStringCmd { return pipe.HGetAll(ctx, s.Keys.Model(uid)) })
	payloads := redis.Map(whole, func(uid string) *goredis.StringCmd { return pipe.Get(ctx, s.Keys.Payload(uid)) })
	settings := pipe.HMGet(ctx, s.Keys.QueueCircuit, queueCircuitFields...)
	guess := s.policies.guess()
	guessed := pipe.HMGet(ctx, s.Keys.Policies, policyFields(guess)...)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	circuit := ReadQueueCircuit(NamedValues(queueCircuitFields, settings.Val()))
	for i, uid := range uids {
		hash, err := hashes[i].Result()
		record := NewRecord(uid, hash)
		if err != nil {
			record.Exists, record.Broken, record.Fault = true, true, "hash: "+err.Error()
		}
		record.QueueCircuit, record.ReplyTo, record.Wire, record.Traces, record.KeepsLogs = circuit, s.replyTo(), s.Wire(), s.Config.Traces, s.Config.LogCap > 0
		records[uid] = record
	}
	for i, uid := range whole {
		if text, err := payloads[i].Result(); err == nil || redis.Missing(err) {
			records[uid].Payload = text
			model.DeriveHost(&records[uid].Model)
		} else {
			records[uid].Fault = "payload: " + err.Error()
		}
	}
	texts, _ := guessed.Result() // of a key of another type none: it is asked for again, and that is an error
	return records, s.resolve(ctx, maps.Values(records), s.compile(guess, texts))
}

// NamedValues gives the values of HMGET their names.
func NamedValues(names []string, values []any) map[string]string {
	named := make(map[string]string, len(names))
	for i, value := range values {
		named[names[i]], _ = value.(string)
	}
	return named
}

// PolicyNames lists the policies that records name.
func PolicyNames(records iter.Seq[*Record]) (names []string) {
	for record := range records {
		names = append(names, record.PolicyName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolve puts policy and schedule in force; some policies are known already. What cannot be resolved becomes a fault with a safe
// replacement.
func (s *Store) resolve(ctx context.Context, records iter.Seq[*Record], policies map[string]policy.Policy) error {
	names := PolicyNames(records)
	s.policies.mu.Lock()
	s.policies.last = slices.DeleteFunc(slices.Clone(names[:min(len(names), maxGuessed)]), func(name string) bool { return name == "" })
	s.policies.mu.Unlock()
	unknown := slices.DeleteFunc(names, func(name string) bool { _, known := policies[name]; return known })
	more, err := s.Policies(ctx, unknown)
	if err != nil {
		return err
	}
	maps.Copy(policies, more)
	asks := false
	for record := range records {
		p, found := policies[record.PolicyName]
		if !found {
			p = policy.Default()
			record.Fault = fmt.Sprintf("policy: expected the name of a stored policy, found %s", document.Found(record.PolicyName))
		}
		if err := record.Resolve(p, s.Schedules.Get); err != nil {
			record.Fault = err.Error()
		}
		asks = asks || p.AsksQueueDepth()
	}
	if !asks {
		return nil
	}
	depth, err := s.Clients.Read.LLen(ctx, s.Keys.Input).Result()
	for record := range records {
		record.QueueDepth = int(depth)
	}
	return redis.Wrap(err, "read the length of the input list")
}

// Decide turns a decision about the record into a transition and moves the record on to the state that follows, so that the next message
// of the same batch is decided on top of it.
func (r *Record) Decide(decision model.Decision, now time.Time) *Transition {
	stored := r.stored()
	t := &Transition{uid: r.UID, rev: r.rev, attemptUID: stored.of(fieldAttemptUID), decision: decision, queueCircuit: r.QueueCircuit, was: standingOf(&r.State), circuit: r.Policy.Circuit, wasLabels: r.labels, isLabels: model.AllLabels(&r.Model)}
	host := r.Host
	if all := t.isLabels; len(all) > len(r.labels) { // saved before hosts were stored: another process may have done that meanwhile
		t.stray = model.LabelHost + "=" + host
	}
	if decision.TakesBack() {
		t.TakeBack = r.Entry()
	}
	switch decision.Event {
	case model.EventMend: // the rest of the hash stays as it is, also what cannot be read of it
		return t
	case model.EventRemove, model.EventOrphan:
		t.isLabels, t.decision.PriorFreshness = nil, r.Freshness
		*r = Record{Model: model.Model{UID: r.UID}, former: r.rev}
		return t
	}
	r.Watch(&t.decision, now)
	if definition := decision.Definition; definition != nil {
		if definition.Payload != r.Payload || !r.Exists {
			t.payload = definition.Payload
		}
		if policy.IsInline(definition.PolicyName) {
			text := decision.PolicyText
			if text == "" { // it was named, not brought along
				written, _ := json.Marshal(definition.Policy) // it was read
				text = string(written)
			}
			t.policy = []string{definition.PolicyName, text}
		}
		r.Model = *definition
		t.isLabels = model.AllLabels(&r.Model)
	}
	r.labels = t.isLabels
	t.decision.PolicyError, r.RuleError = cmp.Or(t.decision.PolicyError, r.RuleError), ""
	r.State = t.decision.Next
	t.before, t.after, t.others = stored, encode(&r.Model), r.others
	heard := t.after.of(fieldHeardAt) != t.before.of(fieldHeardAt)
	if next := r.nextRev(decision.Event, heard, now); next != r.rev {
		t.newRev, r.rev = next, next
	}
	r.values, r.others, r.Exists = t.after, nil, true
	return t
}

// Mend writes all indexes anew from the state as it was read, for a model that is in one by mistake.
func (r *Record) Mend() *Transition { return r.Decide(r.Model.Mend(), time.Time{}) }

// Leave is Mend or Remove, for a model that is in an index by mistake.
func (r *Record) Leave(index Index) *Transition {
	if !r.Exists {
		return r.Remove().Leaving(index)
	}
	return r.Mend().Leaving(index)
}

// Remove is the transition that removes a model, or the rest of one that is not stored, with its places in all indexes.
func (r *Record) Remove() *Transition {
	event := model.EventRemove
	if !r.Exists {
		event = model.EventOrphan
	}
	return r.Decide(model.Decision{Event: event}, time.Time{})
}

// nextRev counts transitions. A new model starts at the clock, and beyond what the same batch has removed, so that a model removed and put
// again cannot be mistaken for its former self. A status is no transition and must not make one fail, unless something is decided by it: that
// the worker was heard.
func (r *Record) nextRev(event model.Event, heard bool, now time.Time) string {
	rev, err := strconv.ParseInt(r.Rev(), 10, 64)
	switch {
	case err != nil:
		former, _ := strconv.ParseInt(r.former, 10, 64)
		return strconv.FormatInt(max(now.UnixMilli(), former+1), 10)
	case event == model.EventStatus && !heard:
		return r.Rev()
	default:
		return strconv.FormatInt(rev+1, 10)
	}
}
