package model

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/policy"
)

func TestAnEntryOfTheHistoryIsReadAsItWasWritten(t *testing.T) {
	ended := clock("06:10:00.250")
	attempt := func(outcome Event, change func(*Attempt)) Attempt {
		a := Attempt{AttemptUID: "a1", AttemptNo: 2, StartedAt: clock("06:00"), EndedAt: ended, Duration: 10*time.Minute + 250*time.Millisecond, Outcome: outcome}
		change(&a)
		return a
	}
	const begin, hour = `{"at":"2026-01-05T06:10:00.250Z","took":600250,"uid":"a1","no":2,`, `"limit":3600000,`
	retry := func(change func(*Attempt)) Attempt {
		return attempt(EventFailure, func(a *Attempt) {
			a.DeadlineAt, a.Delay, a.RetryAt, a.PlannedAt = clock("07:00"), 20*time.Minute, ended.Add(20*time.Minute), clock("16:00")
			a.Overlap, a.RefreshAt, a.Why = policy.Before, a.RetryAt, "retry 2 of 6 after 20m, ends before planned"
			change(a)
		})
	}
	const planned = `"planned":35399750,`
	for text, want := range map[string]Attempt{
		`{"at":"2026-01-05T06:10:00.250Z","took":600250,"work":540250,"uid":"a1","no":2,"why":"finished: one-shot"}`: attempt(EventSuccess, func(a *Attempt) {
			a.ProcessingAt, a.Why = clock("06:01"), "finished: one-shot"
		}),
		begin + `"is":"interrupted","times":3,"next":0,"why":"interrupted: again at once"}`: attempt(EventInterrupted, func(a *Attempt) {
			a.Times, a.RefreshAt, a.Why = 3, ended, "interrupted: again at once"
		}),
		begin + `"is":"failure","final":true,"reason":"HTTP 404","type":"http","why":"disabled, not retryable"}`: attempt(EventFailure, func(a *Attempt) {
			a.Final, a.Reason, a.ErrorType, a.Why = true, "HTTP 404", "http", "disabled, not retryable"
		}),
		begin + `"changed":false,"next":35399750}`: attempt(EventSuccess, func(a *Attempt) {
			a.Changed, a.RefreshAt, a.Why = ptr(false), clock("16:00"), "planned"
		}),
		begin + `"ignored":["changed","x y"],"why":"finished: one-shot"}`: attempt(EventSuccess, func(a *Attempt) {
			a.Ignored, a.Why = []string{"changed", "x y"}, "finished: one-shot"
		}),
		begin + `"is":"timeout","limit":600000,"exhausted":true,"reason":"a \"b\" é","worker":"w","next":35399750,"why":"waits for planned after 2 failures"}`: attempt(EventTimeout, func(a *Attempt) {
			a.Exhausted, a.Reason, a.Worker, a.Why = true, `a "b" é`, "w", "waits for planned after 2 failures"
			a.DeadlineAt, a.RefreshAt = clock("06:10"), clock("16:00")
		}),
		begin + `"is":"failure",` + hour + `"delay":1200000,` + planned + `"next":1200000,"of":6}`:                         retry(func(*Attempt) {}),
		begin + `"is":"failure",` + hour + `"delay":1200000,` + planned + `"next":1200000,"of":-1}`:                        retry(func(a *Attempt) { a.Why = "retry 2 after 20m, ends before planned" }),
		begin + `"is":"failure",` + hour + `"delay":1200000,` + planned + `"next":1200000,"why":"retry 3 of 6 after 20m"}`: retry(func(a *Attempt) { a.Why = "retry 3 of 6 after 20m" }),
		begin + `"is":"failure",` + hour + `"delay":1200000,"jitter":-1500,` + planned + `"next":1198500,"of":6}`: retry(func(a *Attempt) {
			a.Jitter, a.RetryAt, a.RefreshAt, a.Why = -1500*time.Millisecond, ended.Add(1198500*time.Millisecond), ended.Add(1198500*time.Millisecond), "retry 2 of 6 after about 19m59s, ends before planned"
		}),
		begin + `"is":"failure",` + hour + `"delay":1200000,"retry":7200000,` + planned + `"next":7200000,"why":"retry 2 of 6 when its window opens, ends before planned"}`: retry(func(a *Attempt) {
			a.RetryAt, a.RefreshAt, a.Why = ended.Add(2*time.Hour), ended.Add(2*time.Hour), "retry 2 of 6 when its window opens, ends before planned"
		}),
		// The policy has got another timeout since, so that the overlap does not follow from the limit.
		begin + `"is":"failure",` + hour + `"delay":1200000,` + planned + `"overlap":"overlaps start","next":1200000,"of":6}`: retry(func(a *Attempt) {
			a.Overlap, a.Why = policy.OverlapsStart, "retry 2 of 6 after 20m, may overlap planned"
		}),
		begin + `"is":"failure","delay":0,"next":0,"of":6}`: attempt(EventFailure, func(a *Attempt) {
			a.RetryAt, a.Overlap, a.RefreshAt, a.Why = ended, policy.NonePlanned, ended, "retry 2 of 6 at once"
		}),
		`{"at":"2026-01-05T05:00:00.000Z","took":-3600000,"uid":"a1","no":2,"why":"finished: one-shot"}`: attempt(EventSuccess, func(a *Attempt) {
			a.EndedAt, a.Duration, a.Why = clock("05:00"), 0, "finished: one-shot" // the clock was set back
		}),
	} {
		written := want.Entry()
		failIf(t, written != text, "written\n got %s\nwant %s", written, text)
		read, err := ParseAttempt(text)
		diff := cmp.Diff(want, read)
		failIf(t, err != nil || diff != "", "%s: %v (-want +got)\n%s", text, err, diff)
	}
}

func TestEachAttemptIsReadFromTheHistoryAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := func(name string) time.Time {
			return rapid.SampledFrom([]time.Time{{}, clock("06:00"), clock("06:05"), clock("06:20"), clock("16:00")}).Draw(t, name)
		}
		text := func(name string) string {
			return rapid.SampledFrom([]string{"", "x", "retry 2 of 3 after 5m, ends before planned", "retry 2 at once", "\t\"<é"}).Draw(t, name)
		}
		want := Attempt{
			AttemptUID: "a1", AttemptNo: rapid.IntRange(0, 3).Draw(t, "no"), StartedAt: clock("06:00"), EndedAt: clock("06:05"), Duration: 5 * time.Minute,
			Outcome: EventFailure, Final: rapid.Bool().Draw(t, "final"), Exhausted: rapid.Bool().Draw(t, "exhausted"),
			Reason: text("reason"), ErrorType: text("type"), Worker: text("worker"), Why: text("why"),
			DeadlineAt: instant("deadline"), ProcessingAt: instant("processing"), PlannedAt: instant("planned"), RefreshAt: instant("refresh"),
		}
		if overlap := rapid.SampledFrom([]policy.Overlap{"", policy.NonePlanned, policy.Before, policy.OverlapsStart, policy.Same, policy.OverlapsEnd, policy.After}).Draw(t, "overlap"); overlap != "" {
			want.Overlap, want.Delay, want.Jitter = overlap, 5*time.Minute, time.Duration(rapid.IntRange(-1, 1).Draw(t, "jitter"))*time.Minute
			want.RetryAt = rapid.SampledFrom([]time.Time{want.delayed(), clock("06:20")}).Draw(t, "retry")
		}
		entry := want.Entry()
		read, err := ParseAttempt(entry)
		if diff := cmp.Diff(want, read); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", entry, err, diff)
		}
	})
}

func TestAnEntryOfTheHistoryThatIsHalfBrokenIsReadAsFarAsItGoes(t *testing.T) {
	read, err := ParseAttempt(`{"no":3,"at":"soon","why":"x","colour":"red"}`)
	failIf(t, err != nil || read.AttemptNo != 3 || read.Why != "x", "%v: read %+v", err, read)
	for _, text := range []string{`{"attempt_no":3,"ended_at":"2026-01-05T06:10:00Z","why":"of before"}`, `"no object"`, `{"no":"3"}`, `{"took":"long"}`, `{"next":[]}`, ``} {
		_, err := ParseAttempt(text)
		failIf(t, err == nil, "%s: expected an error", text)
	}
}

func TestTheRecordOfAnAttemptTellsWhatWasAndWhatFollows(t *testing.T) {
	s := tell(t, daily, `06:00 start | 06:00:30 started "worker":"host-1" | 06:10 failure "reason":"HTTP 503","error_type":"Unavailable"`)
	want := Attempt{AttemptUID: "a1", AttemptNo: 1, StartedAt: clock("06:00"), EndedAt: clock("06:10"), Duration: 10 * time.Minute, Outcome: EventFailure,
		Reason: "HTTP 503", ErrorType: "Unavailable", Worker: "host-1", ProcessingAt: clock("06:00:30"),
		DeadlineAt: clock("07:00:30"), // an hour after the work began
		RetryAt:    clock("06:10"), PlannedAt: clock("16:00"), Overlap: policy.Before,
		RefreshAt: clock("06:10"), Why: "retry 1 of 6 at once, ends before planned"}
	equal(t, want, *s.decision.Ended)
	failIf(t, s.m.LastAttemptUID != "a1", "last attempt %q, want a1", s.m.LastAttemptUID)
}

func TestTextsInTheRecordOfAnAttemptAreFitToBeShown(t *testing.T) {
	long := strings.Repeat("x", 600)
	s := tell(t, daily, `06:00 start | 06:01 started "worker":"`+long+`" | 06:10 failure "reason":"a\nb`+long+`","error_type":"`+long+`"`)
	e := s.decision.Ended
	failIf(t, !fit(e.Reason, 500) || !fit(e.ErrorType, 500) || !fit(e.Worker, 60) || !strings.HasPrefix(e.Reason, "a bxxx"), "found %+v", e)
}

func TestTheRecordOfTheLastAttemptHasNoNextTime(t *testing.T) {
	s := tell(t, banner, `00:00 start | 00:00:10 success "changed":false`)
	failIf(t, !s.decision.Ended.RefreshAt.IsZero() || s.decision.Ended.Changed == nil || *s.decision.Ended.Changed, "found %+v", s.decision.Ended)
	s = tell(t, banner, `00:00 start | 00:00:10 failure "retryable":false`)
	failIf(t, !s.decision.Ended.RefreshAt.IsZero() || !s.decision.Ended.Final, "found %+v", s.decision.Ended)
}

func TestAnEntryOfTheHistoryIsReadBackWithAndWithoutItsRetry(t *testing.T) {
	at := func(s int) time.Time { return monday.Add(time.Duration(s) * time.Second) }
	yes := true
	for name, attempt := range map[string]Attempt{
		"a success":             {AttemptNo: 1, Outcome: EventSuccess, Why: whyPlanned, Changed: &yes},
		"a retry without terms": {AttemptNo: 2, Outcome: EventFailure, Why: "retry 2 of 3 at once", RefreshAt: at(70)},
		"deferred many times":   {AttemptNo: 0, Outcome: EventPostponed, Times: 2, Why: "x"},
		"deferred once":         {AttemptNo: 0, Outcome: EventPostponed, Why: "x"},
		"not published":         {AttemptNo: 3, Outcome: EventInterrupted, Unpublished: true, Why: "x"},
		"late":                  {AttemptNo: 1, Outcome: EventTimeout, Late: time.Minute, Why: "x", DeadlineAt: at(60), ProcessingAt: at(5)},
	} {
		attempt.AttemptUID, attempt.StartedAt, attempt.EndedAt, attempt.Duration = "a1", at(0), at(60), time.Minute
		got, err := ParseAttempt(attempt.Entry())
		must(t, err)
		t.Run(name, func(t *testing.T) { equal(t, attempt, got) })
	}
}
