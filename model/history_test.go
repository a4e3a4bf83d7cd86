package model

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"
)

func TestTheRecordOfAnAttemptIsWrittenLikeEverythingElse(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:10:00.500 failure "reason":"HTTP 503"`)
	want := `{"started_at":"2026-01-05T06:00:00.000Z","ended_at":"2026-01-05T06:10:00.500Z","attempt_uid":"a1","attempt_no":1,"duration_ms":600500,` +
		`"outcome":"failure","reason":"HTTP 503","deadline_at":"2026-01-05T07:00:00.000Z","delay_ms":0,"retry_at":"2026-01-05T06:10:00.500Z",` +
		`"planned_at":"2026-01-05T16:00:00.000Z","overlap":"before","refresh_at":"2026-01-05T06:10:00.500Z","refresh_why":"retry 1/6 at once, before planned"}`
	written, err := json.Marshal(s.decision.Ended)
	if err != nil || string(written) != want {
		t.Errorf("%v\n got %s\nwant %s", err, written, want)
	}
	var read Attempt
	if err := json.Unmarshal(written, &read); err != nil || !reflect.DeepEqual(read, *s.decision.Ended) {
		t.Errorf("%v\nread %+v\nwant %+v", err, read, *s.decision.Ended)
	}
}

// A history outlives many versions: what older ones wrote is read, and written again byte for byte.
func TestAnEntryOfTheHistoryIsReadAndWrittenByteForByte(t *testing.T) {
	at := clock("06:00")
	begin := `{"started_at":"2026-01-05T06:00:00.000Z","ended_at":"2026-01-05T06:10:00.250Z","attempt_uid":"a1","attempt_no":2,"duration_ms":600250,`
	attempt := func(outcome Event, change func(*Attempt)) Attempt {
		a := Attempt{AttemptUID: "a1", AttemptNo: 2, StartedAt: at, EndedAt: clock("06:10:00.250"), Duration: 10*time.Minute + 250*time.Millisecond, Outcome: outcome}
		change(&a)
		return a
	}
	for text, want := range map[string]Attempt{
		// Before deadline, delay and overlap were recorded
		begin + `"outcome":"failure","final":true,"reason":"HTTP 404","error_type":"http","refresh_at":null,"refresh_why":"final: not retryable"}`: attempt(EventFailure, func(a *Attempt) {
			a.Final, a.Reason, a.ErrorType, a.Why = true, "HTTP 404", "http", "final: not retryable"
		}),
		begin + `"outcome":"success","changed":false,"refresh_at":"2026-01-05T16:00:00.000Z","refresh_why":"planned"}`: attempt(EventSuccess, func(a *Attempt) {
			a.Changed, a.RefreshAt, a.Why = ptr(false), clock("16:00"), "planned"
		}),

		begin + `"outcome":"timeout","retries_exhausted":true,"reason":"timeout","error_type":"timeout","worker":"w","deadline_at":"2026-01-05T06:10:00.000Z",` +
			`"refresh_at":"2026-01-05T16:00:00.000Z","refresh_why":"exhausted after 2, planned"}`: attempt(EventTimeout, func(a *Attempt) {
			a.Exhausted, a.Reason, a.ErrorType, a.Worker, a.Why = true, "timeout", "timeout", "w", "exhausted after 2, planned"
			a.DeadlineAt, a.RefreshAt = clock("06:10"), clock("16:00")
		}),
		begin + `"outcome":"failure","deadline_at":"2026-01-05T07:00:00.000Z","delay_ms":1200000,"jitter_ms":-1500,"retry_at":"2026-01-05T06:29:58.750Z",` +
			`"planned_at":"2026-01-05T06:30:00.000Z","overlap":"overlaps start","refresh_at":"2026-01-05T06:30:00.000Z","refresh_why":"retry 2/6 ~20m"}`: attempt(EventFailure, func(a *Attempt) {
			a.DeadlineAt, a.Delay, a.Jitter, a.Why = clock("07:00"), 20*time.Minute, -1500*time.Millisecond, "retry 2/6 ~20m"
			a.RetryAt, a.PlannedAt, a.Overlap, a.RefreshAt = clock("06:29:58.750"), clock("06:30"), policy.OverlapsStart, clock("06:30")
		}),
		begin + `"outcome":"failure","delay_ms":0,"retry_at":"2026-01-05T06:10:00.250Z","overlap":"none planned","refresh_at":"2026-01-05T06:10:00.250Z",` +
			`"refresh_why":"retry 2/6 at once, none planned"}`: attempt(EventFailure, func(a *Attempt) {
			a.RetryAt, a.Overlap, a.RefreshAt, a.Why = clock("06:10:00.250"), policy.NonePlanned, clock("06:10:00.250"), "retry 2/6 at once, none planned"
		}),
		// Waited for the planned refresh from the beginning
		begin + `"outcome":"failure","planned_at":"2026-01-05T16:00:00.000Z","refresh_at":"2026-01-05T16:00:00.000Z","refresh_why":"retry 2/6 when planned"}`: attempt(EventFailure, func(a *Attempt) {
			a.PlannedAt, a.RefreshAt, a.Why = clock("16:00"), clock("16:00"), "retry 2/6 when planned"
		}),
	} {
		var read Attempt
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
		if written, err := json.Marshal(read); err != nil || string(written) != text {
			t.Errorf("%v\n got %s\nwant %s", err, written, text)
		}
	}
}

func TestAnEntryOfTheHistoryThatIsHalfBrokenIsReadAsFarAsItGoes(t *testing.T) {
	var read Attempt
	if err := json.Unmarshal([]byte(`{"attempt_no":3,"deadline_at":"soon","refresh_at":"","retry_at":null}`), &read); err != nil || !reflect.DeepEqual(read, Attempt{AttemptNo: 3}) {
		t.Errorf("%v: read %+v", err, read)
	}
	for _, text := range []string{`"no object"`, `{"started_at":"soon"}`, `{"ended_at":"yesterday"}`, `{"attempt_no":"3"}`, `{"deadline_at":7}`} {
		if err := json.Unmarshal([]byte(text), &read); err == nil {
			t.Errorf("%s: expected an error", text)
		}
	}
}

func TestTheRecordOfAnAttemptTellsWhatWasAndWhatFollows(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:00:30 started "worker":"host-1" | 06:10 failure "reason":"HTTP 503","error_type":"Unavailable"`)
	want := Attempt{AttemptUID: "a1", AttemptNo: 1, StartedAt: clock("06:00"), EndedAt: clock("06:10"), Duration: 10 * time.Minute, Outcome: EventFailure,
		Reason: "HTTP 503", ErrorType: "Unavailable", Worker: "host-1",
		DeadlineAt: clock("07:00:30"), // an hour after the work began
		RetryAt:    clock("06:10"), PlannedAt: clock("16:00"), Overlap: policy.Before,
		RefreshAt: clock("06:10"), Why: "retry 1/6 at once, before planned"}
	if diff := cmp.Diff(want, *s.decision.Ended); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s.m.LastAttemptUID != "a1" {
		t.Errorf("last attempt %q, want a1", s.m.LastAttemptUID)
	}
}

func TestAnAttemptThatEndsBeforeItBeganBecauseTheClockWasSetBackTookNoTime(t *testing.T) {
	s := tell(t, daily, `06:00 start | 05:00 success`)
	if ended := s.decision.Ended; ended.Duration != 0 || !ended.StartedAt.Equal(clock("06:00")) || !ended.EndedAt.Equal(clock("05:00")) {
		t.Errorf("found %+v", ended)
	}
}

func TestTheRecordOfTheLastAttemptHasNoNextTime(t *testing.T) {
	s := tell(t, banner, `00:00 start | 00:00:10 success "changed":false`)
	if !s.decision.Ended.RefreshAt.IsZero() || s.decision.Ended.Changed == nil || *s.decision.Ended.Changed {
		t.Errorf("found %+v", s.decision.Ended)
	}
	s = tell(t, banner, `00:00 start | 00:00:10 failure "retryable":false`)
	if !s.decision.Ended.RefreshAt.IsZero() || !s.decision.Ended.Final {
		t.Errorf("found %+v", s.decision.Ended)
	}
}

func TestTextsInTheRecordOfAnAttemptAreFitToBeShown(t *testing.T) {
	long := strings.Repeat("x", 600)
	s := tell(t, daily, `06:00 start | 06:01 started "worker":"`+long+`" | 06:10 failure "reason":"a\nb`+long+`","error_type":"`+long+`"`)
	if e := s.decision.Ended; !fit(e.Reason, 500) || !fit(e.ErrorType, 500) || !fit(e.Worker, 60) || !strings.HasPrefix(e.Reason, "a bxxx") {
		t.Errorf("found %+v", e)
	}
}
