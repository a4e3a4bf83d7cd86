package transfer

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// now is the clock of all queues: a Saturday.
var now = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

type queue struct {
	*store.Queue
	t      *testing.T
	server *testkit.Server
	client goredis.UniversalClient
}

func open(t *testing.T, server *testkit.Server, name string, parts int) *queue {
	t.Helper()
	client := server.Client(t)
	clients := &redis.Clients{Read: client, Write: client, Block: client}
	config := store.Config{Queue: name, Clock: func() time.Time { return now }}
	if parts > 1 {
		must(t, store.Create(t.Context(), clients, config, parts))
	}
	q := check.Got(store.Open(t.Context(), clients, config))(t)
	return &queue{q, t, server, client}
}

func (q *queue) ok(err error) {
	q.t.Helper()
	must(q.t, err)
}

func (q *queue) export(state bool) string {
	q.t.Helper()
	var out bytes.Buffer
	e := Export{Queue: q.Queue, State: state, Fault: func(text string) { q.t.Errorf("expected no fault, found %s", text) }}
	q.ok(e.Write(q.t.Context(), &out))
	return out.String()
}

// read imports lines and returns what became of them, and why some were refused.
func (q *queue) read(lines string, replace bool) (i Import, refused []string) {
	q.t.Helper()
	i = Import{Queue: q.Queue, Replace: replace, By: "ann", Refused: func(r Refusal) { refused = append(refused, r.Error) }}
	q.ok(i.Read(q.t.Context(), "fleet.jsonl", strings.NewReader(lines)))
	return i, refused
}

func (q *queue) must(lines string) Import {
	q.t.Helper()
	i, refused := q.read(lines, false)
	stopIf(q.t, len(refused) > 0, "expected nothing refused, found %q", refused)
	return i
}

// put saves a model with a state and a history, as it is.
func (q *queue) put(m model.Model, past ...string) {
	q.t.Helper()
	part := q.Of(m.UID)
	records, err := part.Load(q.t.Context(), []string{m.UID})
	q.ok(err)
	decision := model.Decision{Event: model.EventImport, Next: m.State, Definition: &m, Past: append([]string{}, past...)}
	codes, err := part.Commit(q.t.Context(), store.Batch{Now: now, Items: []store.Item{{Transition: records[m.UID].Decide(decision, now)}}})
	stopIf(q.t, err != nil || codes[0] != store.CodeApplied, "%v %v", codes, err)
}

// hash reads the hash of a model, without its revision.
func (q *queue) hash(uid string) map[string]string {
	q.t.Helper()
	hash, err := q.server.Client(q.t).HGetAll(context.Background(), q.Of(uid).Keys.Model(uid)).Result()
	q.ok(err)
	delete(hash, "rev")
	return hash
}

// fill sets every field of a struct to a value that is not the zero value, all of them different.
func fill(t *testing.T, structure reflect.Value) {
	t.Helper()
	for i := range structure.NumField() {
		field, n := structure.Field(i), len(structure.Type().Field(i).Name)+100*i
		switch value := field.Addr().Interface().(type) {
		case *time.Time:
			*value = now.Add(time.Duration(n)*time.Second + 7*time.Millisecond)
		case *time.Duration:
			*value = time.Duration(n) * time.Second
		default:
			switch field.Kind() {
			case reflect.String:
				field.SetString(fmt.Sprint("text-", n))
			case reflect.Int:
				field.SetInt(int64(n))
			case reflect.Int64: // the fence, which is left out if it is not behind the last start
				field.SetInt(2_000_000_000_000 + int64(n))
			case reflect.Bool:
				field.SetBool(true)
			default:
				t.Fatalf("%s: expected a field of a known kind, found a %s: teach export, import and this test of it", structure.Type().Field(i).Name, field.Kind())
			}
		}
	}
}

// inForce are the fields of a model that are none of its hash.
var inForce = strings.Fields("Policy Schedule Window Fault RuleError QueueCircuit QueueDepth Past Taken ReplyTo Wire Traces KeepsLogs")

// full is a model with every field that there is. Its state makes no sense.
func full(t *testing.T) model.Model {
	t.Helper()
	m := model.Model{
		UID: "m1", Payload: `{"input_url":"https://example.com/?a=1&b=<2>","n":1.50}`, Rule: "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0",
		Timezone: "Europe/Berlin", Dtstart: "2026-01-01T00:00:00", Labels: map[string]string{"tenant": "t1", "kind": "feed"},
		Host: "example.com", Policy: policy.Default(),
	}
	m.Policy.GiveUpAfter, m.Policy.DisabledReason = 48*time.Hour, "Feed <gone>"
	m.PolicyName = m.Policy.ContentName()
	fill(t, reflect.ValueOf(&m.State).Elem())
	all := reflect.ValueOf(m)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		stopIf(t, all.Field(i).IsZero() && !slices.Contains(inForce, name),
			"%s: expected a value of every field: teach export, import and this test of it", name)
	}
	return m
}

// idle takes from a state what only a running attempt, a disabled or a parked model has.
func idle(m model.Model) model.Model {
	s := &m.State
	m.Trigger = model.TriggerRetry
	s.AttemptUID, s.Worker, s.Again, s.Outdated, s.Traced, s.Guarded, s.Counted, s.Reserved = "", "", false, false, false, false, "", ""
	s.StartedAt, s.DeadlineAt, s.EntryDeadlineAt, s.EntryPlannedAt, s.EntryDueAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	s.TakenAt, s.ProcessingAt = time.Time{}, time.Time{}
	s.Disabled, s.DisabledAt, s.DisabledBy, s.DisabledReason, s.DisabledWho = false, time.Time{}, "", "", ""
	s.ParkedBy, s.ParkedSince = "", time.Time{}
	return m
}

// fleet are models that wait, are disabled, share a policy, and have hardly anything.
func fleet(t *testing.T) []model.Model {
	waiting, disabled, shared := idle(full(t)), idle(full(t)), idle(full(t))
	stopped := full(t).State
	disabled.UID, disabled.Labels, disabled.RefreshAt = "m2", nil, time.Time{}
	disabled.Disabled, disabled.DisabledAt, disabled.DisabledReason = true, stopped.DisabledAt, stopped.DisabledReason
	disabled.DisabledBy, disabled.DisabledWho = model.StoppedByHand, stopped.DisabledWho
	shared.UID, shared.PolicyName, shared.Rule, shared.Dtstart = "m3", "nightly", "", ""
	shared.Trigger = model.TriggerHand
	return []model.Model{waiting, disabled, shared, {UID: "m0", Payload: "{}"}}
}

var past = []string{
	`{"at":"2026-01-05T06:10:00.250Z","took":600250,"uid":"a2","no":2,"is":"failure","limit":3600000,"reason":"\u003c503\u003e","delay":1200000,"planned":35399750,"next":1200000,"of":6}`,
	`{"at":"2026-01-05T05:10:00.250Z","took":600250,"uid":"a1","changed":false,"ignored":["x y"],"why":"finished: one-shot"}`,
}

func (q *queue) settle() *queue {
	q.t.Helper()
	nightly := policy.Default()
	nightly.Name, nightly.Spread, nightly.Rule = "nightly", time.Hour, "FREQ=DAILY;BYHOUR=2"
	q.ok(q.Fleet().PutPolicy(q.t.Context(), nightly))
	for _, m := range fleet(q.t) {
		q.put(m, past...)
	}
	return q
}

func TestEachFieldOfAStateIsReadAsItWasWritten(t *testing.T) {
	m := full(t)
	fields := map[string]any{}
	for name, value := range store.StateFields(&m) {
		fields[name] = value
	}
	state, err := store.ReadState(fields)
	diff := cmp.Diff(m.State, state)
	failIf(t, err != nil || diff != "", "%v (-written +read):\n%s", err, diff)
}

func TestAnExportOfAnImportIsTheSameToTheByteAndAnImportRepeatedChangesNothing(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		for name, parts := range map[string][2]int{"one": {1, 1}, "divided": {1, 3}, "joined": {2, 1}} {
			from, to := open(t, server, name+"-from", parts[0]).settle().steer(), open(t, server, name+"-to", parts[1])
			lines, alone := from.export(true), from.export(false)
			failIf(t, !strings.HasPrefix(lines, steering+`{"kind":"policy"`) || strings.Contains(lines, "moves house") || strings.Contains(alone, `nightly","rrule`),
				"%s: expected calendars and limits with a state alone, before the policies, and no hold, found\n%s\n%s", name, lines, alone)
			var before map[string]testkit.Value
			for _, want := range []Import{
				{Models: Count{Created: 4}, Policies: Count{Created: 1, Unchanged: 1}, Calendars: Count{Created: 2}, Limits: Count{Created: 2}},
				{Models: Count{Unchanged: 4}, Policies: Count{Unchanged: 2}, Calendars: Count{Unchanged: 2}, Limits: Count{Unchanged: 2}},
			} {
				i := to.must(lines)
				i.Queue, i.By, i.Refused = nil, "", nil
				equal(t, want, i)
				equal(t, lines, to.export(true))
				if want.Models.Unchanged > 0 {
					equal(t, before, to.server.Dump(t))
				}
				before = to.server.Dump(t)
			}
			for _, m := range fleet(t) {
				equal(t, from.hash(m.UID), to.hash(m.UID))
			}
			equal(t, from.indexes(), to.indexes())
			holds, _, err := flow.Of(to.Parts[0]).Holds(t.Context())
			failIf(t, len(holds) != 0 || err != nil, "%s: expected no hold, found %v, %v", name, holds, err)
		}
	})
}

// indexes are the sets and lists of all parts together, without the name of the queue, and without keys that are not moved or are in each part.
func (q *queue) indexes() map[string][]string {
	q.t.Helper()
	all := map[string][]string{}
	for key, value := range q.server.Dump(q.t) {
		for _, part := range q.Parts {
			name, own := strings.CutPrefix(key, part.Keys.Queue+":")
			if !own || strings.HasPrefix(name, "error") || slices.Contains([]string{"stats", "journal", "wake", "policy_uses", "forwarded", "gates", "holds", "limits"}, name) || strings.HasPrefix(name, "model:") {
				continue
			}
			found := []string{fmt.Sprint(value.Data)}
			if fields := reflect.ValueOf(value.Data); fields.Kind() == reflect.Map {
				found = nil
				for _, field := range fields.MapKeys() {
					found = append(found, fmt.Sprint(field, " ", fields.MapIndex(field)))
				}
			}
			for _, text := range found {
				if !slices.Contains(all[name], text) { // each part has its policies
					all[name] = append(all[name], text)
				}
			}
			slices.Sort(all[name])
		}
	}
	return all
}

func TestDefinitionsAloneMakeModelsThatBeginAnew(t *testing.T) {
	from, to := open(t, testkit.Miniredis(t), "from", 1).settle(), open(t, testkit.Miniredis(t), "to", 1)
	lines := from.export(false)
	failIf(t, strings.Contains(lines, "state") || strings.Contains(lines, `"kind":"policy"`), "expected definitions alone, found %s", lines)
	_, refused := to.read(lines, false)
	if len(refused) != 1 || !strings.Contains(refused[0], `fleet.jsonl line 4: policy: expected a policy, or the name of a stored one (default), found "nightly"`) {
		t.Errorf("expected the model without its policy refused, found %q", refused)
	}
	hash := to.hash("m1")
	failIf(t, hash["attempt_no"] != "" || hash["refresh_at"] != "2026-11-21T15:00:00.000Z" || hash["label:tenant"] != "t1",
		"expected a model that begins anew, found %v", hash)
}

func TestASelectorPicksWhatIsExportedAndItsPolicies(t *testing.T) {
	from := open(t, testkit.Miniredis(t), "from", 2).settle().steer()
	for text, want := range map[string]string{ // behind the calendars, and without limits
		"tenant=t1":       "policy nightly,model m1,model m3",
		"status=disabled": "model m2",
		"policy=nightly":  "policy nightly,model m3",
		"uid=m0":          "policy default,model m0",
		"uid=x*":          "",
	} {
		selector := check.Got(model.ParseSelector(text))(t)
		var out bytes.Buffer
		from.ok((&Export{Queue: from.Queue, Selector: selector, State: true}).Write(t.Context(), &out))
		var found []string
		for line := range strings.Lines(out.String()) {
			words := strings.Split(line, `"`) // kind, a kind, uid or name, a value
			found = append(found, words[3]+" "+words[7])
		}
		got := strings.Join(found, ",")
		failIf(t, got != strings.TrimSuffix("calendar name,calendar name,"+want, ","), "%s: expected %s, found %s", text, want, got)
	}
}
