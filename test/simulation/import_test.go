package simulation

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// mover is the part of the store for export and import. *store.Store is one.
type mover interface {
	Now(ctx context.Context) (time.Time, error)
	Export(ctx context.Context, uids []string) ([]store.Export, error)
	Policies(ctx context.Context, names []string) (map[string]policy.Policy, error)
	Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error)
	Histories(ctx context.Context, uids []string, most int) (map[string][]model.Attempt, error)
	Commit(ctx context.Context, batch store.Batch) ([]store.Code, error)
}

// luggage is an exported model: its line, and its state in Redis then.
type luggage struct {
	moved    model.Moved
	hash     map[string]string
	payload  string
	past     []string
	policies map[string]string
}

// moving moves models, and reads them as the daemons do: a planted bug may alter that.
type moving struct {
	*store.Store
	daemons queue
}

func (m moving) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	return m.daemons.Read(ctx, uids, commands)
}

// Export exports what the daemons would: a planted bug may alter that, too.
func (m moving) Export(ctx context.Context, uids []string) ([]store.Export, error) {
	if lie, is := m.daemons.(interface {
		Export(ctx context.Context, uids []string) ([]store.Export, error)
	}); is {
		return lie.Export(ctx, uids)
	}
	return m.Store.Report().Export(ctx, uids)
}

func (m moving) Histories(ctx context.Context, uids []string, most int) (map[string][]model.Attempt, error) {
	return m.Store.Report().Histories(ctx, uids, most)
}

// mover lets an operator move models.
func (w *world) mover() mover { return moving{w.server.store, w.queue} }

// move does what `refreshd model export --state` and `model import --replace` do.
func (o *operatorRole) move(ctx context.Context) error {
	if lines := o.packed; len(lines) > 0 && o.rng.IntN(3) > 0 {
		return o.bring(ctx, lines[o.rng.IntN(len(lines))])
	}
	return o.pack(ctx, o.uids[o.rng.IntN(len(o.uids))])
}

func (o *operatorRole) pack(ctx context.Context, uid string) error {
	exports, err := o.mover().Export(ctx, []string{uid})
	if err != nil || len(exports) == 0 {
		return err
	}
	s, m := o.before, &exports[0].Record.Model
	line := luggage{hash: s.models[uid], payload: s.payloads[uid], past: s.histories[uid], policies: s.policies}
	var own map[string]policy.Policy
	if policy.IsInline(m.PolicyName) {
		if own, err = o.mover().Policies(ctx, []string{m.PolicyName}); err != nil {
			return err
		}
	}
	definition := map[string]any{"uid": uid, "payload": json.RawMessage(m.Payload), "rrule": m.Rule, "timezone": m.Timezone, "dtstart": m.Dtstart, "labels": m.Labels}
	if p, found := own[m.PolicyName]; found {
		definition["policy"] = p.Explicit()
	} else if m.PolicyName != "" {
		return nil // its last model has changed meanwhile: an export names a policy that nobody has
	}
	if line.moved, err = unpack(definition, store.StateFields(m)); err != nil {
		return err
	}
	line.moved.Past = entriesOf(exports[0].Past)
	o.packed = append(o.packed, line)
	return nil
}

func entriesOf(attempts []model.Attempt) []string {
	entries := make([]string, len(attempts))
	for i := range attempts {
		entries[i] = attempts[i].Entry()
	}
	return entries
}

func unpack(definition map[string]any, state map[string]string) (moved model.Moved, err error) {
	text, err := json.Marshal(map[string]any{"definition": definition, "state": state})
	if err != nil {
		return moved, err
	}
	var line map[string]any
	if err := json.Unmarshal(text, &line); err != nil {
		return moved, err
	}
	maps.DeleteFunc(line["definition"].(map[string]any), func(_ string, value any) bool { return value == nil || value == "" })
	if moved.Definition, err = model.ParseDefinition(line["definition"]); err != nil {
		return moved, err
	}
	moved.State, err = store.ReadState(line["state"])
	return moved, err
}

// bring imports a model, again while others are faster.
func (o *operatorRole) bring(ctx context.Context, line luggage) error {
	o.brought = append(o.brought, line)
	for {
		code, err := o.tryToBring(ctx, line)
		if err != nil || code == store.CodeApplied {
			return err
		}
	}
}

func (o *operatorRole) tryToBring(ctx context.Context, line luggage) (store.Code, error) {
	now, err := o.mover().Now(ctx)
	if err != nil {
		return 0, err
	}
	uid := line.moved.UID
	put := &model.Command{Type: model.CommandPut, UID: uid, Definition: line.moved.Definition}
	snapshot, err := o.mover().Read(ctx, []string{uid}, []*model.Command{put})
	if err != nil {
		return 0, err
	}
	record, past := snapshot.Records[uid], map[string][]model.Attempt{}
	if record.Exists {
		if past, err = o.mover().Histories(ctx, []string{uid}, 0); err != nil {
			return 0, err
		}
	}
	moved := line.moved
	moved.Definition = put.Definition
	p, err := snapshot.Policies.Find(&moved.Definition)
	if err != nil {
		return 0, err
	}
	decision, outcome, err := record.Import(moved, p, record.Exists, entriesOf(past[uid]), now)
	if err != nil || outcome != model.Applied {
		return store.CodeApplied, err
	}
	codes, err := o.mover().Commit(ctx, store.Batch{Now: now, Items: []store.Item{{Transition: snapshot.Apply(put, decision, now)}}})
	if err != nil {
		return 0, err
	}
	return codes[0], nil
}

// imported finds what an entry has imported: a model becomes what was exported of it.
func (p *replay) imported(uid string, m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	failIf(p.brought == nil, "nobody imports")
	var decisions []model.Decision
	var places []int
	for i, line := range *p.brought {
		if line.moved.UID != uid {
			continue
		}
		before := m
		if m == nil {
			before = &model.Model{UID: uid}
		}
		was := parse(uid, line.hash, line.payload)
		moved := model.Moved{Definition: line.moved.Definition, State: was.State, Past: line.past}
		moved.PolicyName, moved.Labels = was.PolicyName, was.Labels
		text := line.policies[was.PolicyName]
		decision, outcome, err := before.Import(moved, p.compiled(text), m != nil, p.before.histories[uid], at)
		if err == nil && outcome == model.Applied && says(decision, event, entry) {
			decisions, places = append(decisions, decision), append(places, i)
		}
	}
	failIf(len(decisions) == 0, "nothing that was exported says so")
	chosen := p.choose(len(decisions))
	p.luggage = &(*p.brought)[places[chosen]]
	return decisions[chosen]
}

// leftBehind are the fields of a model that has an attempt, or waits for a blocker or a slot: none of that can be moved. What follows from it is
// another time to start, and a give-up window that ends later.
var leftBehind = []string{
	"attempt_uid", "attempt_no", "started_at", "deadline_at", "entry_deadline_at", "entry_times", "taken_at", "processing_at", "worker", "silent_after", "heard_at", "again", "outdated",
	"traced", "guarded", "counted_by", "refresh_at", "refresh_why", "refresh_for", "planned_for", "last_attempt_uid", "parked_by", "parked_since", "reserved", "trying_since", "not_before",
	"rev", "error", // another fingerprint may replace it here
}

// arrive checks that a model which was imported is as it was exported, and notes what follows.
func (p *replay) arrive(uid string) {
	line, m := p.luggage, p.models[uid]
	want, got := maps.Clone(line.hash), fields(m)
	ages := []string{"freshness", "stale_at", "fresh_since"}
	for _, name := range slices.Concat(told, []string{"rev", "error", "fence"}) {
		delete(want, name)
		delete(got, name)
	}
	held := want["parked_by"] == string(model.BySuspect)
	moving := want["attempt_uid"] != "" || want["parked_by"] != "" && !held || want["reserved"] != ""
	for _, name := range slices.Concat(leftBehind, ages) {
		if moving && !slices.Contains(ages, name) || p.setBack && slices.Contains(ages, name) {
			delete(want, name)
			delete(got, name)
		}
	}
	failIf(m.Fence < fenceOf(line.hash), "the fence falls from %d to %d", fenceOf(line.hash), m.Fence)
	failIf(!maps.Equal(want, got) || m.Payload != line.payload || (m.FingerprintID == "") != (line.hash["error"] == ""),
		"%s is imported as %v, and was exported as %v", uid, got, want)
	p.records[uid], p.forgotten[uid], p.replaced[uid] = nil, true, false
	p.arrived[uid], p.pasts[uid] = line.past, nil
	if delete(p.usual, uid); line.hash["usual"] != "" {
		p.usual[uid] = usualRows(line.hash["usual"])
	}
	for _, entry := range line.past {
		p.pasts[uid] = append(p.pasts[uid], endingOf(entry))
	}
	if status := line.hash["user_friendly_status"]; p.oracle.stated[uid] <= p.since || p.after.models[uid]["user_friendly_status"] == status {
		p.newest[uid] = status // otherwise one that came since the import has read the model may stay
	}
	p.begun[uid] = false
	p.tried[uid] = effort{since: m.TryingSince}
	if m.TryingSince.IsZero() {
		p.tried[uid] = effort{since: m.LastSuccessAt}
	}
	if held {
		p.tried[uid] = effort{since: p.tried[uid].since, parked: m.ParkedSince}
	}
	p.promises[uid] = promise{stopped: m.Disabled && m.DisabledBy == model.StoppedByHand}
}
