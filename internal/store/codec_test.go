package store

import (
	gocmp "cmp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

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
	deadline := instant("deadline")
	return model.Model{
		UID: "m1", Rule: text("rule"), Timezone: text("timezone"), Dtstart: text("dtstart"), PolicyName: text("policy"),
		State: model.State{
			Phase: time.Duration(number("phase")%(1<<38)) * time.Millisecond, RefreshAt: instant("refresh"), Why: text("why"),
			AttemptUID: text("attempt"), AttemptNo: number("no"), StartedAt: instant("started"), DeadlineAt: deadline,
			EntryDeadlineAt: gocmp.Or(instant("entry"), deadline), EntryPlannedAt: instant("planned"), ProcessingAt: instant("processing"),
			Worker: text("worker"), Again: flag("again"), Disabled: flag("disabled"), DisabledReason: text("reason"),
			UserFriendlyStatus: text("status"), Progress: number("progress"),
			LastSuccessAt: instant("success"), FailingSince: instant("failing"), FinalFailureAt: instant("final"),
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
	rev, v, labels, others := split(hash{"rev": "7", "policy": "p", "colour": "red", "label:tenant": "t1", "label:Status": "x", "label:kind": "a,b"})
	expectEqual(t, "rev", "7", rev)
	expectEqual(t, "fields", hash{"policy": "p"}, asHash(v))
	expectEqual(t, "labels", map[string]string{"tenant": "t1"}, labels)
	slices.Sort(others)
	expectEqual(t, "others", []string{"colour", "label:Status", "label:kind"}, others)
}
