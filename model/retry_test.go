package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// heldFriday has a retry that is due on Friday at 16:35, inside its window. The next opening is on Monday, and six planned refreshes come before that.
func heldFriday(t *testing.T, more string) *story {
	t.Helper()
	s := tell(t, atSixAnd16+`"policy":{"timeout":"1h","retries":["30m","30m"],"retry_window":"`+officeHours+`"`+more+`}`, "16:00+4 wake | 16:05+4 failure")
	stopIf(t, s.m.Trigger != TriggerRetry || !s.m.RefreshAt.Equal(clock("16:35+4")), "want a retry at 16:35 on Friday, got %s", s)
	return s
}

// holdUps may hold a retry up past its window, and return the decision then.
var holdUps = map[string]func(m *Model) Decision{
	"nobody takes it": func(m *Model) Decision { return m.StartOrSkip(clock("17:05+4"), "a2") },
	"a hold": func(m *Model) Decision {
		blockers := Blockers{Holds: []Hold{{ID: "h1", Until: clock("17:30+4")}}}
		held := *m
		held.State = m.Park(blockers.Holds[0].Blocker(), clock("17:30+4"), clock("16:35+4")).Next
		decision, _ := blockers.Pass(&held, new(Limiters), "a2", clock("17:30+4"))
		return decision
	},
	"a limit": func(m *Model) Decision {
		limited := *m
		limited.State = m.Park("limit:p", clock("17:05+4"), clock("16:35+4")).Next
		return new(Blockers).StartOrPark(&limited, new(Limiters), "a2", clock("17:05+4"))
	},
	"its turn": func(m *Model) Decision {
		blockers := Blockers{QueueLimits: []QueueLimit{{Key: keyOf("{policy}"), Limit: Limit{Rate: policy.Rate{Count: 1, Per: time.Hour}}}}}
		free := Slots{Free: clock("17:10+4"), Closed: clock("17:10+4")}
		return blockers.StartOrPark(m, &Limiters{Keys: map[string]*LimiterState{"policy=" + m.PolicyKey(): {Slots: free}}, Circuits: map[string]*CircuitState{}, Limits: map[string][]Limit{}}, "a2", clock("16:40+4"))
	},
}

func keyOf(template string) policy.Key {
	key, err := policy.ParseKey(template)
	if err != nil {
		panic(err)
	}
	return key
}

func TestARetryThatIsHeldPastItsWindowIsJoinedWithTheScheduleAnew(t *testing.T) {
	const (
		planned = "#1, next 06:00+5: retry window closed: waits for planned"
		opens   = "#1, next 09:00+7: retry window closed: waits until it opens"
	)
	for more, want := range map[string]string{
		``: planned, `,"alignment":"whichever_first"`: planned, `,"alignment":"until_success"`: opens,
		`,"alignment":"between_planned"`: "#0" + planned[2:],
		`,"alignment":{"expr":"k > 1 || retry_at + timeout <= planned_at + 5m ? retry_at : planned_at"}`: planned,
		`,"alignment":{"expr":"retry_at"}`:                                    opens,
		`,"alignment":{"expr":"retry_at > planned_at ? now + 2h : retry_at"}`: opens, // a time of its own needs the window too
	} {
		for name, decide := range holdUps {
			s := heldFriday(t, more)
			s.decision = decide(&s.m)
			s.apply()
			s.check(clock("17:05+4"))
			got := s.String()
			failIf(t, got != want, "%s, %s:\n got %s\nwant %s", more, name, got, want)
			failIf(t, s.decision.PolicyError != "" || s.m.Reserved != "" || s.m.Parked(), "%s, %s: left are %q, %q, %q", more, name, s.decision.PolicyError, s.m.Reserved, s.m.ParkedBy)
		}
	}
	s := heldFriday(t, "")
	s.m.Policy.Alignment = policy.PlannedOnly // changed since
	s.then("17:05+4 wake").expect(planned)
	s = heldFriday(t, `,"alignment":{"expr":"retry_at > planned_at ? now - 1s : retry_at"}`)
	s.then("17:05+4 wake").expect(planned)
	failIf(t, s.decision.PolicyError == "", "want the error of the expression, got none")
}

// A retry decides inside its window; outside of it what would be decided for a failure at that instant is decided for a retry that was held up.
func TestWhatIsDecidedForAHeldRetryIsDecidedForAFailureAtThatInstant(t *testing.T) {
	for _, alignment := range []policy.Alignment{policy.AlignPlanned, policy.UntilSuccess, policy.PlannedOnly, policy.WhicheverFirst, policy.BetweenPlanned} {
		for hour := 17; hour < 24*3; hour += 5 {
			now := clock("00:30+4").Add(time.Duration(hour) * time.Hour)
			held := heldFriday(t, `,"alignment":"align_planned"`)
			held.m.Policy.Alignment, held.m.RefreshAt = alignment, now
			held.do(now, "wake", "")
			failed := tell(t, atSixAnd16+`"policy":{"timeout":"1h","retries":[0,0],"retry_window":"`+officeHours+`","alignment":"`+string(alignment)+`"}`, "")
			failed.do(now.Add(-time.Second), "run", "")
			failed.do(now.Add(-time.Second), "start", "")
			failed.do(now, "failure", "")
			got, want := held.m.RefreshAt, failed.m.RefreshAt
			failIf(t, got != want || held.m.AttemptNo != failed.m.AttemptNo || held.m.Trigger != failed.m.Trigger,
				"%s at %s: held: %s\nfailed: %s", alignment, clockText(now), held, failed)
		}
	}
}

func TestAPlannedRefreshThatCameWhileARetryWasHeldIsMadeUpForOnce(t *testing.T) {
	noon := clock("12:00+5")
	s := heldFriday(t, "")
	s.then("12:00+5 wake").expect("#1, next 12:00+5: retry window closed: waits for planned")
	s.then("12:00+5 wake").expect("#2 a2 until 13:00+5, next 16:00+5: on timeout: retry 2 of 2 waits for planned")
	s.then("12:10+5 success").expect("#0, next 16:00+5: planned")

	// It is missed as any other: by the time at which it was planned, but for what was held
	s = heldFriday(t, `,"misfire":"skip"`)
	s.then("12:00+5 wake | 12:00+5 wake").expect("#1, next 16:00+5: skipped, late by 6h: waits for planned")
	s = heldFriday(t, `,"misfire":"skip"`)
	s.m.State = s.m.Park("hold:h1", noon, clock("16:35+4")).Next
	s.m.State = s.m.Release(noon, noon).Next
	s.then("12:00+5 wake").expect("#2 a2 until 13:00+5, next 16:00+5: on timeout: retry 2 of 2 waits for planned")

	// Over its own time nothing is made up for: the retry replaces what passes
	heldFriday(t, `,"alignment":"until_success"`).then("12:00+5 wake").expect("#1, next 09:00+7: retry window closed: waits until it opens")
}

const giving = `"policy":{"timeout":"1h","retries":["10m","10m","1h"],"retry_window":"` + officeHours + `","give_up_after":"26h"`

func TestTheWaitForAWindowDoesNotCountTowardsGivingUp(t *testing.T) {
	const failed = "18:00+4 wake | 18:01+4 failure"
	for name, row := range map[string]struct {
		definition, steps, next, ends string
	}{
		"a failure outside":        {giving + `}`, failed, "09:00+7", "10:49+8"}, // 26h after 18:00, and 62h49m after 18:11
		"and the next one inside":  {giving + `}`, failed + " | 09:00+7 wake | 09:05+7 failure", "09:15+7", "10:49+8"},
		"until the next window":    {giving + `}`, failed + " | 09:00+7 wake | 09:05+7 failure | 17:00+7 wake", "09:00+8", "10:34+9"}, // 23h45m since 09:15
		"a failure inside":         {giving + `}`, "10:00+4 wake | 10:01+4 failure", "10:11+4", "12:00+5"},
		"held past it":             {giving + `}`, "16:00+4 wake | 16:35+4 failure | 17:05+4 wake", "09:00+7", "10:15+8"}, // 64h15m since 16:45
		"planned comes in between": {atSixAnd16 + giving + `}`, "16:00+4 wake | 18:01+4 timeout", "06:00+5", "05:49+6"},   // 11h49m since 18:11
		"planned comes anyway":     {atSixAnd16 + giving + `}`, "05:00+5 run | 05:00+5 wake | 05:30+5 failure", "06:00+5", "07:00+6"},
		"over planned":             {atSixAnd16 + giving + `,"alignment":"until_success"}`, "16:00+4 wake | 18:01+4 timeout", "09:00+7", "08:49+8"},
		"cut short by a run":       {giving + `}`, failed + " | 10:00+5 run | 10:00+5 wake | 10:01+5 failure", "09:00+7", "10:49+8"},
	} {
		s := tell(t, row.definition, row.steps)
		failIf(t, !s.m.RefreshAt.Equal(clock(row.next)) || !s.m.GivesUpAt().Equal(clock(row.ends)),
			"%s: %s, and gives up at %s: want %s and %s", name, s, clockText(s.m.GivesUpAt()), row.next, row.ends)
	}
}

// A window does not count for the circuit of the queue either, nor behind a hold.
func TestTheWaitForAWindowCountsNotTowardsGivingUpWhoeverMakesTheModelWait(t *testing.T) {
	s := withOpenCircuit(t, `"policy":{"timeout":"1h","retries":[],"retry_window":"`+officeHours+`","give_up_after":"26h"}`, "")
	s.m.RefreshAt = clock("18:00+4")
	s.then("18:00+4 wake | 18:01+4 failure")
	waits := s.m.RefreshAt.Sub(clock("18:01+4").Add(policy.Vary(heldDelay, heldSpread, "a1")))
	if got, want := s.m.GivesUpAt(), clock("20:00+5").Add(waits); !s.decision.Held || !got.Equal(want) {
		t.Errorf("held by the circuit of the queue: %s, and gives up at %s, want %s", s, clockText(got), clockText(want))
	}
	s = tell(t, giving+`}`, "16:00+4 wake | 16:05+4 failure")
	s.m.State = s.m.Park("hold:h1", clock("17:30+4"), clock("16:15+4")).Next
	s.m.State = s.m.Release(clock("17:45+4"), clock("17:30+4")).Next
	if got, want := s.m.GivesUpAt(), clock("18:00+5").Add(clock("09:00+7").Sub(clock("16:15+4"))); !got.Equal(want) {
		t.Errorf("held by a hold: it gives up at %s, want %s", clockText(got), clockText(want))
	}
}

func TestWhatAServerAsksForIsBoundedByThePolicyAndWhatAWorkerAsksForIsNot(t *testing.T) {
	with := func(policy string) string {
		return atSixAnd16 + `"policy":{"timeout":"1h","retries":["1m","1m"],"alignment":"until_success"` + policy + `}`
	}
	const server, day = `,"retry_after_by":"server"`, "#1, next 06:10+1: retry 1 of 2 after 1d"
	runStories(t, []storyTest{
		{with(""), `06:00 start | 06:10 failure "retry_after":3600` + server, "#1, next 07:10: retry 1 of 2 after 1h, as the worker asked"},
		{with(""), `06:00 start | 06:10 failure "retry_after":86400` + server, day + ", as the worker asked"},
		{with(""), `06:00 start | 06:10 failure "retry_after":172800` + server, day + ", a server asked for 2d"},
		{with(""), `06:00 start | 06:10 failure "retry_after":31536000` + server, day + ", a server asked for 365d"},
		{with(""), `06:00 start | 06:10 failure "retry_after":1e15` + server, day + ", a server asked for 365d"},
		{with(""), `06:00 start | 06:10 failure "retry_after":"2026-01-08T06:10:00Z"` + server, day + ", a server asked for 3d"},
		{with(""), `06:00 start | 06:10 failure "retry_after":"9999-01-01T00:00:00Z"` + server, day + ", a server asked for 106751d23h"},
		{with(""), `06:00 start | 06:10 failure "retry_after":"2025-01-05T06:10:00Z"` + server, "#1, next 06:11: retry 1 of 2 after 1m, ends before planned"},
		{with(`,"max_retry_after":"2h"`), `06:00 start | 06:10 failure "retry_after":10800` + server, "#1, next 08:10: retry 1 of 2 after 2h, a server asked for 3h"},
		{with(`,"max_retry_after":"2d"`), `06:00 start | 06:10 failure "retry_after":172800` + server, "#1, next 06:10+2: retry 1 of 2 after 2d, as the worker asked"},

		// What a worker asks for itself keeps its floor
		{with(`,"max_retry_after":"2h"`), `06:00 start | 06:10 failure "retry_after":172800`, "#1, next 06:10+2: retry 1 of 2 after 2d, as the worker asked"},
		{with(`,"max_retry_after":"2h"`), `06:00 start | 06:10 failure "retry_after":172800,"retry_after_by":"me"`, "#1, next 06:10+2: retry 1 of 2 after 2d, as the worker asked"},
		{with(`,"max_retry_after":"2h"`), `06:00 start | 06:10 postponed "retry_after":172800`, "#0 deferred 1, next 06:10+2: postponed by the worker: again after 2d"},

		// A wish says nothing about whether there is a retry
		{with(`,"never_retry":["http_403"]`), `06:00 start | 06:10 failure "error_type":"http_403","retry_after":60` + server,
			"#1 disabled (Cannot refresh after 1 attempt): disabled, never retry http_403"},
	})
}
