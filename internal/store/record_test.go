package store

import (
	gocmp "cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	miniredis "github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func TestOnlyTheDifferenceBetweenTwoHashesIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := make(values, len(fieldNames)), make(values, len(fieldNames))
		for i := range before {
			before[i] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "before")
			after[i] = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "after")
		}
		before[places[FieldError]], after[places[FieldError]] = "", "" // the script decides it
		e := encoder{instant: "2"}
		fields := steps{encoder: &e, Item: txn.NewBatch(1, false).Item("m", true), t: &Transition{before: before, after: after}}
		fields.compareFields()
		words := func(w txn.Words) []string { return strings.Split(string(w), "\t")[1:] }
		got, told := asHash(before), 0
		for _, name := range append(words(fields.fields), words(fields.del)...) {
			delete(got, name[1:])
			told++
		}
		for _, name := range words(fields.fields) {
			got[name[1:]] = "1" // any value but the instant
		}
		for pair := range slices.Chunk(slices.DeleteFunc(words(fields.set), func(word string) bool { return word == "~" }), 2) {
			got[pair[0][1:]] = pair[1][1:]
			told++
		}
		if !cmp.Equal(asHash(after), got) {
			t.Errorf("%v with %q, %q and %q is %v, want %v", asHash(before), fields.fields, fields.set, fields.del, got, asHash(after))
		}
		if changed := changed(asHash(before), asHash(after)); told != len(changed) {
			t.Errorf("%d fields are told, want those that changed: %v", told, changed)
		}
	})
}

func TestAnUnreadableFieldIsAFaultWithASafeValue(t *testing.T) {
	for _, test := range []struct{ field, value, fault string }{
		{"refresh_at", "tomorrow", `refresh_at: expected an RFC 3339 time, found "tomorrow"`},
		{"deadline_at", "1795240800000", `deadline_at: expected an RFC 3339 time, found "1795240800000"`},
		{"attempt_no", "-1", `attempt_no: expected a whole number, found "-1"`},
		{"attempt_no", "1.5", `attempt_no: expected a whole number, found "1.5"`},
		{"progress", strings.Repeat("9", 99), `progress: expected a whole number, found "` + strings.Repeat("9", 60) + `"…`},
		{"phase", "wide", `phase: expected a duration, found "wide"`},
	} {
		record := NewRecord("m1", hash{"rev": "7", test.field: test.value})
		expectEqual(t, "fault", test.fault, record.Fault)
		failIf(t, !record.Exists || record.AttemptNo != 0 || record.Progress != 0 || !record.RefreshAt.IsZero() || !record.DeadlineAt.IsZero(),
			"%s %q was read as %+v", test.field, test.value, record.State)
	}
}

func TestATransitionHealsAnUnreadableField(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), keys{":model:m1": hash{"rev": "x", "refresh_at": "tomorrow", "progress": "half"}}))
		b.mustApply(b.start("m1", "a1"))
		if record := b.load("m1"); record.Fault != "" || record.AttemptUID != "a1" || record.Rev() != "1795240800000" {
			t.Errorf("fault %q, attempt %q, rev %q; want none, a1, the clock", record.Fault, record.AttemptUID, record.Rev())
		}
	})
}

// A pipeline returns only its first error, and a missing payload is one; the model behind it must not look empty.
func TestAnErrorBehindAMissingPayloadIsAnErrorOfLoad(t *testing.T) {
	b := newBench(t, testkit.Miniredis(t))
	b.seed(keys{":model:m2": dueModel, ":payload:m2": `{"input_url":"u"}`})
	reads := 0
	b.server.Mini.Server().SetPreHook(func(peer *miniredis.Peer, command string, _ ...string) bool {
		if command != "GET" {
			return false
		}
		if reads++; reads == 2 {
			peer.WriteError("MASTERDOWN Link with MASTER is down")
		}
		return reads == 2
	})
	records, err := b.Load(t.Context(), list{"nobody", "m2"})
	failIf(t, err == nil, "Load succeeded: %v", records)
}

func TestWhatOfAModelCannotBeReadIsAFaultOfItAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(waitingKeys(), keys{
			":model:list": list{"x"}, ":model:odd": dueModel, ":payload:odd": list{"x"},
			":model:m2": but(dueModel, "policy", "gone"), ":model:m3": but(dueModel, "policy", "bad"), ":model:m4": but(dueModel, "policy", "good"),
			":model:m5": but(dueModel, "rrule", "FREQ=NEVER", "dtstart", "2026-01-01T00:00:00"),
			":model:m6": but(dueModel, "rrule", "FREQ=DAILY", "dtstart", "2026-01-01T05:00:00", "timezone", "Europe/Berlin"),
			":policies": hash{"bad": "{", "good": `{"timeout":"7m"}`},
		}))
		faults := map[string]string{
			"list": "hash: WRONGTYPE…", "odd": "payload: WRONGTYPE…", "m1": "", "nobody": "", "m4": "", "m5": "rrule FREQ: expected …", "m6": "",
			"m2": `policy: expected the name of a stored policy, found "gone"`, "m3": `policy: expected the name of a stored policy, found "bad"`,
		}
		records, err := b.Load(t.Context(), append(slices.Sorted(maps.Keys(faults)), "m1"))
		must(t, err)
		expectEqual(t, "records", len(faults), len(records))
		for uid, want := range faults {
			r := records[uid]
			beginning, goesOn := strings.CutSuffix(want, "…")
			if !strings.HasPrefix(r.Fault, beginning) || !goesOn && r.Fault != want || r.Exists == (uid == "nobody") || r.Broken != (uid == "list") || r.UID != uid {
				t.Errorf("%s was read as %+v, want the fault %q", uid, r, want)
			}
		}
		if m1 := records["m1"]; m1.Rev() != "7" || m1.Payload != `{"input_url":"u"}` || records["nobody"].Rev() != "" {
			t.Errorf("m1 was read as %+v", m1)
		}
		expectEqual(t, "policy of m2", policy.Default(), records["m2"].Policy)
		expectEqual(t, "timeout of m4", 7*time.Minute, records["m4"].Policy.Timeout)
		expectEqual(t, "schedule of m5", nil, records["m5"].Schedule)
		expectEqual(t, "planned", time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC), records["m6"].Planned(b.now))
	})
}

func TestPoliciesAreReadByName(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":policies": hash{"slow": `{"timeout":"2h"}`, "bad": `{"timeout":-1}`}})
		policies, err := b.Policies(t.Context(), list{"", "default", "slow", "bad", "gone"})
		must(t, err)
		for _, name := range []string{"", "default"} {
			expectEqual(t, "policy "+name, policy.Default(), policies[name])
		}
		failIf(t, len(policies) != 3 || policies["slow"].Timeout != 2*time.Hour, "policies %v, want the default twice and slow", policies)
	})
}

func (b *bench) read(commands ...*model.Command) *Snapshot {
	b.t.Helper()
	var uids list
	for _, command := range commands {
		uids = append(uids, command.UID)
	}
	snapshot, err := b.Read(b.t.Context(), uids, commands)
	must(b.t, err)
	return snapshot
}

// execute decides a command and returns the transition that would carry it out; nil: nothing changes.
func (b *bench) execute(snapshot *Snapshot, command *model.Command) (*Transition, model.Outcome, error) {
	record := snapshot.Records[command.UID]
	decision, outcome, err := record.Execute(command, snapshot.Policies, record.Exists, b.now)
	if err != nil || outcome != model.Applied {
		return nil, outcome, err
	}
	return snapshot.Apply(command, decision, b.now), outcome, nil
}

func commandOf(t testing.TB, text string) *model.Command {
	t.Helper()
	command, err := model.DecodeCommand([]byte(text))
	must(t, err)
	return &command
}

func TestAPutMayUseAPolicyThatAnotherOfItsBatchBringsAlong(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		inline := commandOf(t, `{"type":"put","uid":"m1","policy":{"timeout":"7m"}}`)
		byName := commandOf(t, `{"type":"put","uid":"m2","policy":"`+inline.Definition.PolicyName+`"}`)
		for _, batch := range [][]*model.Command{{inline, byName}, {byName, inline}} {
			b.server.Flush(t)
			snapshot := b.read(batch...)
			for _, command := range batch {
				transition, outcome, err := b.execute(snapshot, command)
				stopIf(t, err != nil || outcome != model.Applied, "%s: %q, %v", command.UID, outcome, err)
				b.mustApply(transition)
			}
			if m2 := b.load("m2"); m2.Fault != "" || m2.Policy.Timeout.Minutes() != 7 {
				t.Errorf("want the policy of the other, got %q, %v", m2.Fault, m2.Policy.Timeout)
			}
		}
	})
}

func TestACommandThatIsRefusedOrChangesNothingMakesNoTransition(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":policies": hash{"nightly": "{}"}})
		b.mustApply(b.put("m1", "{}"))
		const unknown = `policy: expected a policy, or the name of a stored one (default, nightly), found "hourly"`
		for text, want := range map[string]string{
			`{"type":"enable","uid":"m1"}`:                string(model.Unchanged) + " <nil>",
			`{"type":"run","uid":"nobody"}`:               string(model.UnknownModel) + " <nil>",
			`{"type":"put","uid":"m2","policy":"hourly"}`: string(model.Unchanged) + " " + unknown,
		} {
			command := commandOf(t, text)
			transition, outcome, err := b.execute(b.read(command), command)
			got := fmt.Sprint(outcome, " ", err)
			failIf(t, transition != nil || got != want, "%s: got %s, want %s", text, got, want)
		}
	})
}

// A message that changes nothing was decided on top of what the message before it would have made of the model.
func TestWhatWasSettledOnTopOfARefusedDecisionIsRefusedWithIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", `{"n":1}`))
		b.seed(keys{":claimed:control": list{"n1 c1", "n1 c2", "n1 c3"}, ":holder": "p1"})
		stale := b.load("m1")
		b.mustApply(b.put("m1", `{"n":2}`))
		items := []Item{
			{Transition: b.save(stale, `{"n":3}`), Message: Claimed{"n1 c1"}},
			{Message: Claimed{"n1 c2"}, UID: "m1", Counter: "unchanged"},
			{Message: Claimed{"n1 c3"}, UID: "m2", Counter: "unchanged"},
		}
		expectCodes(t, b.commit(items...), CodeConflict, CodeConflict, CodeApplied)
		expectEqual(t, "claimed", any(list{"n1 c1", "n1 c2"}), b.state()[":claimed:control"])
	})
}

// One write per shared key: of two transitions of one model in a batch the sets show the last.
func TestTheSetsShowTheLastTransitionOfABatch(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		record := b.load("m1")
		created := b.save(record, `{"n":1}`)
		started := record.Decide(record.Start(b.now, "a1"), b.now)
		b.mustApply(created, started, b.put("m2", "{}"))
		state := b.state()
		expectEqual(t, "due", any(scores{"m2": six}), state[":due"])
		expectEqual(t, "running", any(scores{"m1": tenPast}), state[":running"])
		record = b.load("m1")
		ended := record.Decide(interrupted(record, b.now), b.now)
		b.mustApply(ended, record.Remove())
		state = b.state()
		expectEqual(t, "due", any(scores{"m2": six}), state[":due"])
		failIf(t, state[":running"] != nil, "running: %v, want nothing", state[":running"])
	})
}

// A batch of many models writes more members than one call of unpack can hold.
func TestABatchOfHundredsIsCommittedAsOne(t *testing.T) {
	models := long.Or(510, 2000) // two members of a set for each: more than one chunk
	everywhere(t, func(t *testing.T, b *bench) {
		var creates, starts []*Transition
		for i := range models {
			record := &Record{Model: model.Model{UID: fmt.Sprintf("m%04d", i), Policy: policy.Default()}}
			creates = append(creates, b.save(record, "{}"))
			starts = append(starts, record.Decide(record.Start(b.now, fmt.Sprint("a", i)), b.now))
		}
		b.mustApply(creates...)
		b.mustApply(starts...)
		state, each := b.state(), strconv.Itoa(models)
		for name, got := range map[string]int{
			"-input": len(state["-input"].(list)), ":running": len(state[":running"].(scores)), ":journal": len(state[":journal"].(events)),
		} {
			expectEqual(t, "entries of "+name, models, got)
		}
		expectEqual(t, "stats", any(hash{"create": each, "start": each}), state[":stats"])
		due := state[":due"]
		failIf(t, due != nil, "due: %v, want nothing", due)
	})
}

func TestAModelWhosePolicyAsksIsToldHowLongTheInputListIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{
			":model:m1": but(dueModel, "policy", "asking"), ":policies": hash{"asking": `{"retries":{"expr":"queue_depth"}}`}, "-input": list{"a", "b", "c"},
		})
		expectEqual(t, "depth", 3, b.load("m1").QueueDepth)
		b.redis.HSet(t.Context(), b.Keys.Policies, "asking", "{}")
		expectEqual(t, "depth nobody asks for", 0, b.load("m1").QueueDepth)
	})
}

// anInstant is absent or any millisecond that a model may hold.
func anInstant(t *rapid.T, name string) time.Time {
	ms := rapid.Int64Range(-1, 253402300799999).Draw(t, name)
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func aModel(t *rapid.T) model.Model {
	instant := func(name string) time.Time { return anInstant(t, name) }
	text := func(name string) string { return rapid.String().Draw(t, name) }
	number := func(name string) int { return rapid.IntRange(0, 1<<40).Draw(t, name) }
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	deadline, started, success := instant("deadline"), instant("started"), instant("success")
	fence := gocmp.Or(started, success, time.UnixMilli(0)).UnixMilli()
	if flag("fenced") {
		fence += int64(number("fence"))
	}
	return model.Model{
		UID: "m1", Rule: text("rule"), Timezone: text("timezone"), Dtstart: text("dtstart"), PolicyName: text("policy"),
		State: model.State{
			Phase: time.Duration(number("phase")%(1<<38)) * time.Millisecond, RefreshAt: instant("refresh"), Why: text("why"),
			AttemptUID: text("attempt"), AttemptNo: number("no"), StartedAt: started, DeadlineAt: deadline,
			EntryDeadlineAt: gocmp.Or(instant("entry"), deadline), EntryPlannedAt: instant("planned"), ProcessingAt: instant("processing"),
			Worker: text("worker"), Again: flag("again"), Disabled: flag("disabled"), DisabledReason: text("reason"),
			UserFriendlyStatus: text("status"), Progress: number("progress"),
			LastSuccessAt: success, EntryDueAt: instant("due"), Fence: fence, FailingSince: instant("failing"), FinalFailureAt: instant("final"),
			LastAttemptUID: text("last"), Deferrals: number("deferrals"), TryingSince: instant("trying"),
			TotalRetries: number("retries"), SuccessfulRetries: number("helped"), RetriedCycles: number("cycles"),
		},
	}
}

// asHash are values as Redis holds them: an absent value is an absent field.
func asHash(v values) hash {
	fields := hash{}
	for i, value := range v {
		if value != "" {
			fields[fieldNames[i]] = value
		}
	}
	return fields
}

func TestEveryStateIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := aModel(t)
		read := NewRecord("m1", asHash(encode(&want)))
		if diff := cmp.Diff(want, read.Model, cmpopts.IgnoreUnexported(schedule.Schedule{})); diff != "" {
			t.Errorf("model (-written +read):\n%s", diff)
		}
	})
}

func TestAnAbsentValueIsAnAbsentFieldAndSoIsTheDeadlineInTheEntryWhileItIsTheDeadline(t *testing.T) {
	m := model.Model{UID: "m1"}
	expectEqual(t, "fields of a blank model", hash{}, asHash(encode(&m)))
	m.State = model.State{AttemptUID: "a1", DeadlineAt: time.UnixMilli(1), EntryDeadlineAt: time.UnixMilli(1)}
	expectEqual(t, "fields", hash{"attempt_uid": "a1", "deadline_at": "1970-01-01T00:00:00.001Z"}, asHash(encode(&m)))
	m.DeadlineAt = time.UnixMilli(2)
	want := hash{"attempt_uid": "a1", "deadline_at": "1970-01-01T00:00:00.002Z", "entry_deadline_at": "1970-01-01T00:00:00.001Z"}
	expectEqual(t, "fields", want, asHash(encode(&m)))
}

func TestAHashIsReadFieldByField(t *testing.T) {
	m := NewRecord("m1", hash{"refresh_at": "2026-11-21T07:00:00.123456+01:00"})
	expectEqual(t, "refresh_at of another zone", time.Date(2026, 11, 21, 6, 0, 0, 123_000_000, time.UTC), m.RefreshAt)
	m = NewRecord("m1", hash{"rev": "7", "policy": "p", "colour": "red", "label:tenant": "t1", "label:Status": "x", "label:kind": "a,b"})
	v, others := m.stored(), m.others
	expectEqual(t, "rev", "7", m.Rev())
	expectEqual(t, "fields", hash{"policy": "p"}, asHash(v))
	expectEqual(t, "labels", map[string]string{"tenant": "t1"}, m.Labels)
	slices.Sort(others)
	expectEqual(t, "others", []string{"colour", "label:Status", "label:kind"}, others)
}

func TestEachFieldOfAnAttemptIsOneOfAModel(t *testing.T) {
	for _, name := range attemptFields {
		if !slices.Contains(fieldNames, name) {
			t.Errorf("got %q, want a field of the hash", name)
		}
	}
}

func TestAFieldThatIsNoneOfAModelGoesWithTheFirstTransition(t *testing.T) {
	m := NewRecord("m1", hash{"rev": "7", "refresh_at": "2026-11-21T06:00:00.000Z", "colour": "red"})
	for i, want := range []list{{"colour"}, nil} {
		if got := m.Decide(m.Start(sixOClock, "a1"), sixOClock).others; !slices.Equal(got, want) {
			t.Errorf("transition %d: got %q, want %q", i+1, got, want)
		}
	}
}

func TestARefreshThatCannotBeReadIsNoneToWaitFor(t *testing.T) {
	for text, want := range map[string]bool{"": false, "tomorrow": true, "2026-11-21T06:00:00.000Z": false} {
		m := NewRecord("m1", hash{"rev": "7", "policy": "p", "refresh_at": text})
		if got := m.RefreshUnreadable(); got != want {
			t.Errorf("refresh_at %q: got %t, want %t", text, got, want)
		}
	}
}

// TestWhatSomebodyHasWrittenIsNoLineOfATransaction starts a model when the counter of holds is a text that would be lines of a template.
func TestWhatSomebodyHasWrittenIsNoLineOfATransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		hostile := "1\ndo\t=DEL\t%0 hash\nhelp\t=HDEL\t%0 hash\t=rev"
		b.seed(keys{":holds": hash{HoldChanges: hostile}})
		codes, err := b.Commit(t.Context(), Batch{Now: b.now, MaxQueued: roomy, HoldChanges: hostile, Items: []Item{{Transition: b.start("m1", "a1")}}})
		must(t, err)
		expectCodes(t, codes, CodeApplied)
		if got := b.load("m1").AttemptUID; got != "a1" {
			t.Errorf("got attempt %q, want a1", got)
		}
	})
}
