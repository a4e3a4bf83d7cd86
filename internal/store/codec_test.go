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

func aText(t *rapid.T, name string) string { return rapid.String().Draw(t, name) }

func aNumber(t *rapid.T, name string) int { return rapid.IntRange(0, 1<<40).Draw(t, name) }

func aModel(t *rapid.T) model.Model {
	deadline := anInstant(t, "deadline")
	return model.Model{
		UID: "m1", Rule: aText(t, "rule"), Timezone: aText(t, "timezone"), Dtstart: aText(t, "dtstart"), PolicyName: aText(t, "policy"),
		State: model.State{
			Phase:     time.Duration(aNumber(t, "phase")%(1<<38)) * time.Millisecond,
			RefreshAt: anInstant(t, "refresh"), Why: aText(t, "why"),
			AttemptUID: aText(t, "attempt"), AttemptNo: aNumber(t, "no"),
			StartedAt: anInstant(t, "started"), DeadlineAt: deadline, EntryDeadlineAt: gocmp.Or(anInstant(t, "entry"), deadline), EntryPlannedAt: anInstant(t, "planned"), ProcessingAt: anInstant(t, "processing"),
			Worker: aText(t, "worker"), Again: rapid.Bool().Draw(t, "again"),
			Disabled: rapid.Bool().Draw(t, "disabled"), DisabledReason: aText(t, "reason"),
			UserFriendlyStatus: aText(t, "status"), Progress: aNumber(t, "progress"),
			LastSuccessAt: anInstant(t, "success"), FailingSince: anInstant(t, "failing"), FinalFailureAt: anInstant(t, "final"),
			LastAttemptUID: aText(t, "last"), Deferrals: aNumber(t, "deferrals"), TryingSince: anInstant(t, "trying"),
			TotalRetries: aNumber(t, "retries"), SuccessfulRetries: aNumber(t, "helped"), RetriedCycles: aNumber(t, "cycles"),
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

func TestAnAbsentValueIsAnAbsentField(t *testing.T) {
	expectEqual(t, "fields of a blank model", hash{}, asHash(encode(&model.Model{UID: "m1"})))
}

func TestTheDeadlineInTheEntryIsAFieldOnlyWhileItIsNotTheDeadline(t *testing.T) {
	m := model.Model{UID: "m1", State: model.State{AttemptUID: "a1", DeadlineAt: time.UnixMilli(1), EntryDeadlineAt: time.UnixMilli(1)}}
	expectEqual(t, "fields", hash{"attempt_uid": "a1", "deadline_at": "1970-01-01T00:00:00.001Z"}, asHash(encode(&m)))
	m.DeadlineAt = time.UnixMilli(2)
	expectEqual(t, "fields", hash{"attempt_uid": "a1", "deadline_at": "1970-01-01T00:00:00.002Z", "entry_deadline_at": "1970-01-01T00:00:00.001Z"}, asHash(encode(&m)))
}

func TestTimesOfOtherZonesAreReadAsUTC(t *testing.T) {
	m := NewRecord("m1", hash{"refresh_at": "2026-11-21T07:00:00.123456+01:00"})
	expectEqual(t, "refresh_at", time.Date(2026, 11, 21, 6, 0, 0, 123_000_000, time.UTC), m.RefreshAt)
}

func TestRevAndFieldsOfNoModelAreToldApart(t *testing.T) {
	rev, v, labels, others := split(hash{"rev": "7", "policy": "p", "colour": "red", "label:tenant": "t1", "label:Status": "x", "label:kind": "a,b"})
	expectEqual(t, "rev", "7", rev)
	expectEqual(t, "fields", hash{"policy": "p"}, asHash(v))
	expectEqual(t, "labels", map[string]string{"tenant": "t1"}, labels)
	slices.Sort(others)
	expectEqual(t, "others", []string{"colour", "label:Status", "label:kind"}, others)
}
