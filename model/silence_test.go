package model

import (
	"slices"
	"testing"
	"time"
)

const silentAfterTwoMinutes = `"policy":{"timeout":"1h","silent_after":"2m","retries":["1m"],"on_exhausted":"give_up"}`

func TestAnAttemptExpiresWhenItsWorkerIsSilentOrItsDeadlineHasPassed(t *testing.T) {
	const announced = `06:00 run | 06:00 start | 06:01 started "signs_every":30`
	for _, test := range []struct{ definition, steps, want string }{
		{silentAfterTwoMinutes, `06:00 run | 06:00 start`, "07:00"},
		{silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started`, "07:01"},
		{banner, `06:00 run | 06:00 start | 06:00 started "signs_every":30`, "06:01"}, // its policy says nothing of silence
		{silentAfterTwoMinutes, announced, "06:03"},
		{silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started "signs_every":"soon"`, "07:01"},
		{silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started "signs_every":0`, "07:01"},
		{silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started "signs_every":"90s"`, "06:04"}, // two signs fit in

		// Any message is a sign, also one that says nothing
		{silentAfterTwoMinutes, announced + ` | 06:02 user_friendly_status`, "06:04"},
		{silentAfterTwoMinutes, announced + ` | 06:02 user_friendly_status "progress":50`, "06:04"},
		{silentAfterTwoMinutes, announced + ` | 06:02 started "signs_every":30`, "06:04"},
		{silentAfterTwoMinutes, announced + ` | 07:00:30 user_friendly_status`, "07:01"}, // never beyond the deadline
		{silentAfterTwoMinutes, announced + ` | 06:02 user_friendly_status "refresh_attempt_uid":"a0"`, "06:03"},

		// The worker has died, and who has its attempt now has other habits
		{silentAfterTwoMinutes, announced + ` | 06:02 started`, "07:01"},
		{silentAfterTwoMinutes, announced + ` | 06:02 started "signs_every":"5m"`, "06:12"},

		// The clock was set back: the worker gets that time too
		{silentAfterTwoMinutes, announced + ` | 05:30 user_friendly_status`, "06:03"},

		// A changed policy counts from the next attempt, as of the timeout
		{silentAfterTwoMinutes, announced + ` | 06:01 policy "timeout":"1h" | 06:02 user_friendly_status`, "06:04"},
		{silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started | 06:02 failure | 06:03 start | 06:03 started`, "07:03"},
		{silentAfterTwoMinutes, announced + ` | 06:03 timeout | 06:04 start`, "07:04"},
	} {
		got := clockText(tell(t, test.definition, test.steps).m.ExpiresAt())
		failIf(t, got != test.want, "%s: expires at %s, want %s", test.steps, got, test.want)
	}
}

func TestASilentWorkerIsAFailureOfItsOwnType(t *testing.T) {
	s := tell(t, silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started "signs_every":"90s" | 06:04 timeout`)
	ended := s.decision.Ended
	failIf(t, s.decision.Event != EventTimeout || ended.ErrorType != "silent" || ended.Reason != "silent for 3m", "found %+v", ended)
	s.expect("#1, next 06:05: retry 1 of 1 after 1m")
	s.then(`06:05 start | 06:05 started "signs_every":30 | 07:04 user_friendly_status | 07:05 timeout`)
	failIf(t, s.decision.Ended.ErrorType != "timeout", "its deadline has passed, found %+v", s.decision.Ended)
}

func TestWithoutATimeoutASilentWorkerIsRetriedAndReplacesNoPlannedRefresh(t *testing.T) {
	const none = atSixAnd16 + `"policy":{"timeout":"none","silent_after":"2m","retries":["1m"]}`
	tell(t, none, `06:00 start | 06:01 started "signs_every":30 | 06:03 timeout`).expect("#1, next 06:04: retry 1 of 1 after 1m, ends before planned")
}

func TestOnlyASignThatCountsIsDecidedUponAndAPlainSecondStartedStaysADuplicate(t *testing.T) {
	s := tell(t, silentAfterTwoMinutes, `06:00 run | 06:00 start | 06:01 started | 06:02 started`)
	failIf(t, s.outcome != Duplicate, "found %q", s.outcome)
	s.then(`06:02 user_friendly_status`)
	failIf(t, !s.m.HeardAt.IsZero(), "nobody listens, heard at %s", s.m.HeardAt)
	s.then(`06:03 started "signs_every":30`)
	failIf(t, s.decision.Event != EventStarted || !s.m.ProcessingAt.Equal(clock("06:01")), "found %s: %+v", s.decision.Event, s.m.State)
	s.then(`06:04 started "signs_every":30`)
	failIf(t, s.decision.Event != EventStatus, "found %s", s.decision.Event)
}

func TestABadAnnouncementIsIgnoredAndTheRestOfStartedCounts(t *testing.T) {
	for value, want := range map[string]time.Duration{
		`30`: 30 * time.Second, `"30s"`: 30 * time.Second, `"PT1M"`: time.Minute, `null`: 0,
		`0`: -1, `-5`: -1, `"often"`: -1, `true`: -1, `[]`: -1, `"20 years"`: -1,
	} {
		m, err := Wire{}.DecodeMessage([]byte(`{"type":"started","uid":"m","attempt_uid":"a","worker":"w","signs_every":` + value + `}`))
		ignored := slices.Equal(m.Ignored, []string{"signs_every"})
		failIf(t, err != nil || m.Worker != "w" || ignored != (want < 0) || m.SignsEvery != max(0, want), "%s: %+v, %v", value, m, err)
	}
}
