package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

// The models of the tests. Their stories begin on Monday, 5 January 2026, at midnight UTC.
const (
	sixRetries = `"policy":{"timeout":"1h","retries":[0,"1m","5m","15m","30m","1h"],"on_exhausted":"give_up"}`
	sixThenGo  = `"policy":{"timeout":"1h","retries":[0,"1m","5m","15m","30m","1h"],"on_exhausted":"next_planned"}`
	oneThenGo  = `"policy":{"timeout":"1h","retries":[0],"on_exhausted":"next_planned"}`
	thumbnail  = `"policy":{"timeout":"1m","retries":[0,"1m","5m"],"on_exhausted":"give_up"}`
	atSixAnd16 = `"rrule":"FREQ=DAILY;BYHOUR=6,16","dtstart":"2026-01-01",`

	daily    = atSixAnd16 + sixRetries // give up after the seventh failure
	lenient  = atSixAnd16 + sixThenGo  // go on with the schedule instead
	banner   = thumbnail               // one-shot: refreshed when it is saved
	lastDay  = `"rrule":"FREQ=DAILY;BYHOUR=6,16;UNTIL=20260105T160000Z","dtstart":"2026-01-01",` + sixRetries
	halfHour = `"rrule":"FREQ=MINUTELY;INTERVAL=30","dtstart":"2026-01-05",` + sixRetries
)

var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// clock reads "06:00", "06:00:30" or, as a timetable writes the next day, "06:00+1".
func clock(text string) time.Time {
	hours, day, _ := strings.Cut(text, "+")
	for _, layout := range []string{"15:04", "15:04:05", "15:04:05.000"} {
		if at, err := time.Parse(layout, hours); err == nil {
			days := 0
			_, _ = fmt.Sscan(day, &days)
			return monday.AddDate(0, 0, days).Add(at.Sub(at.Truncate(24 * time.Hour)))
		}
	}
	panic("expected a clock, found " + text)
}

// clockText writes what clock reads.
func clockText(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	text := strings.TrimSuffix(at.Format("15:04:05.999"), ":00")
	if days := int(at.Sub(monday) / (24 * time.Hour)); days != 0 {
		text += fmt.Sprintf("+%d", days)
	}
	return text
}

// story is the life of one model, in steps such as "06:10 failure", and checked for the invariants after each. The steps:
//
//	wake               what the dispatcher does to a due model: a start, the end of a give-up window, or a missed refresh
//	start              the same, but it must be a start
//	timeout, withdraw  what the dispatcher does at a deadline
//	put, remove, run, enable, disable        what an application wants
//	taken                                    a worker has the attempt
//	level                                    it gets a phase, such as "level 3m20s"
//	policy                                   its stored policy becomes the one of the fields
//	success, failure, started, postponed, …  what a worker says of the attempt that started last
//
// What follows the verb are further JSON fields of the message.
type story struct {
	t          testing.TB
	definition string // JSON fields of a put
	m          Model
	exists     bool
	starts     int    // attempts so far; their uids are a1, a2, …
	taken      string // the attempt that a worker has taken

	decision Decision // of the last step
	outcome  Outcome
}

// tell puts a model at midnight and walks through the steps, which are separated by "|".
func tell(t testing.TB, definition, steps string) *story {
	t.Helper()
	s := begin(t, definition)
	s.do(monday, "put", "")
	return s.then(steps)
}

func begin(t testing.TB, definition string) *story {
	return &story{t: t, definition: definition, m: Model{UID: "tbl_1"}}
}

func (s *story) then(steps string) *story {
	s.t.Helper()
	for step := range strings.SplitSeq(steps, "|") {
		if words := strings.SplitN(strings.TrimSpace(step), " ", 3); len(words) > 1 {
			s.do(clock(words[0]), words[1], strings.Join(words[2:], ""))
		}
	}
	return s
}

// do takes one step. extra holds further JSON fields.
func (s *story) do(now time.Time, verb, extra string) {
	s.t.Helper()
	switch verb {
	case "wake", "start", "timeout", "withdraw":
		s.dispatch(now, verb)
	case "put", "remove", "run", "enable", "disable":
		s.command(now, verb, extra)
	case "taken":
		s.taken, s.outcome = s.m.AttemptUID, Unchanged
	case "policy":
		s.changePolicy(now, extra)
	case "level":
		s.level(now, extra)
	default:
		s.say(now, verb, extra)
	}
	if s.outcome == Applied {
		s.apply()
	}
	s.check(now)
}

// dispatch refuses steps that the dispatcher would not do, so that no table has an impossible story.
func (s *story) dispatch(now time.Time, verb string) {
	s.t.Helper()
	s.outcome = Applied
	switch waking := verb == "wake" || verb == "start"; {
	case waking && s.m.Due(now):
		s.decision = s.m.StartOrSkip(now, fmt.Sprintf("a%d", s.starts+1))
		if s.decision.Event == EventStart {
			s.starts++
		} else if verb == "start" {
			s.t.Fatalf("%s: expected a start, found %s: %s", clockText(now), s.decision.Event, s)
		}
	case !waking && !s.expired(now), verb == "withdraw" && s.isTaken(), waking:
		s.t.Fatalf("%s: impossible to %s: %s", clockText(now), verb, s)
	case verb == "timeout":
		s.decision = s.m.Expire(now)
	default:
		s.decision = s.m.Withdraw(now)
	}
}

func (s *story) isTaken() bool { return s.m.Running() && s.taken == s.m.AttemptUID }

// expired reports whether the deadline of a running attempt has passed.
func (s *story) expired(now time.Time) bool { return s.m.Running() && !s.m.ExpiresAt().After(now) }

// next is when the dispatcher has to do something: at the start, or at the deadline; zero: never.
func (s *story) next() time.Time {
	if s.m.Running() {
		return s.m.ExpiresAt()
	}
	return s.m.RefreshAt
}

func (s *story) say(now time.Time, kind, extra string) {
	s.t.Helper()
	fields := []string{fmt.Sprintf(`"type":%q,"big_table_uid":"tbl_1"`, kind)}
	if !strings.Contains(extra, "_attempt_uid") {
		fields = append(fields, fmt.Sprintf(`"refresh_attempt_uid":"a%d"`, s.starts))
	}
	message, err := Wire{}.DecodeMessage([]byte(objectOf(append(fields, extra))))
	must(s.t, err)
	s.decision, s.outcome = s.m.Handle(message, now)
}

func (s *story) command(now time.Time, kind, extra string) {
	s.t.Helper()
	fields := []string{fmt.Sprintf(`"type":%q,"uid":"tbl_1"`, kind), extra}
	if kind == "put" {
		fields = append([]string{s.definition}, fields...) // first, so that extra can overrule it
	}
	command, err := DecodeCommand([]byte(objectOf(fields)))
	must(s.t, err)
	s.m.Taken = s.isTaken()
	s.decision, s.outcome, err = s.m.Execute(&command, anyPolicy(&command), s.exists, now)
	must(s.t, err)
}

// changePolicy gives a model another stored policy from now on.
func (s *story) changePolicy(now time.Time, fields string) {
	s.t.Helper()
	var value any
	must(s.t, json.Unmarshal([]byte("{"+fields+"}"), &value))
	changed, err := policy.Parse(value)
	if err == nil {
		err = s.m.Resolve(changed, schedule.Parse)
	}
	must(s.t, err)
	s.decision, s.outcome = s.m.Replan(now)
}

// level gives a model a phase.
func (s *story) level(now time.Time, phase string) {
	s.t.Helper()
	by, err := document.ParseDuration(phase)
	must(s.t, err)
	s.decision, s.outcome = s.m.Level(by, now)
}

// anyPolicy is a store in which every policy that a command names is the default one.
func anyPolicy(c *Command) Policies {
	return Policies{ByName: map[string]policy.Policy{c.Definition.PolicyName: policy.Default()}}
}

func objectOf(fields []string) string {
	text := strings.Join(fields, ",")
	return "{" + strings.Trim(strings.ReplaceAll(text, ",,", ","), ",") + "}"
}

func (s *story) apply() {
	if s.decision.Event == EventRemove {
		s.m, s.exists = Model{UID: "tbl_1"}, false
		return
	}
	if s.decision.Definition != nil {
		s.m = *s.decision.Definition
	}
	s.m.State, s.exists = s.decision.Next, true
}

// String renders the state in one line: "#1 a1 until 07:00, next 07:00: on timeout: retry 1 of 6 at once".
func (s *story) String() string {
	text := fmt.Sprintf("#%d", s.m.AttemptNo)
	if s.m.Running() {
		text += fmt.Sprintf(" %s until %s", s.m.AttemptUID, clockText(s.m.DeadlineAt))
	}
	if s.m.Again {
		text += " again"
	}
	if s.m.Outdated {
		text += " outdated"
	}
	if s.m.Deferrals > 0 {
		text += fmt.Sprintf(" deferred %d", s.m.Deferrals)
	}
	if s.m.Disabled {
		return text + fmt.Sprintf(" disabled (%s): %s", s.m.DisabledReason, s.m.Why)
	}
	return text + fmt.Sprintf(", next %s: %s", clockText(s.m.RefreshAt), s.m.Why)
}

func (s *story) expect(want string) {
	s.t.Helper()
	got := s.String()
	failIf(s.t, got != want, "\n got %s\nwant %s", got, want)
}

// check holds after every step of every story.
func (s *story) check(now time.Time) {
	s.t.Helper()
	for broken, is := range s.broken(now) {
		failIf(s.t, is, "%s after %s: %s: %s", clockText(now), s.decision.Event, broken, s)
	}
}

func (s *story) broken(now time.Time) map[string]bool {
	m := &s.m
	_, plannable := m.planned(now)
	return map[string]bool{
		"an attempt has no deadline or a deadline no attempt": m.Running() == m.DeadlineAt.IsZero(),
		"an attempt has no start or a start no attempt":       m.Running() == m.StartedAt.IsZero(),
		"a disabled model has something to do":                m.Disabled && (m.Running() || !m.RefreshAt.IsZero()),
		"an enabled recurring model is stuck":                 s.exists && plannable && !m.Disabled && !m.Running() && m.RefreshAt.IsZero(),
		"the next attempt may start before the deadline":      m.Running() && !m.RefreshAt.IsZero() && m.RefreshAt.Before(m.DeadlineAt),
		"an attempt has no number":                            m.Running() && m.AttemptNo < 1,
		"more attempts than retries and one":                  m.Policy.MaxRetries() != policy.Unlimited && m.AttemptNo > m.Policy.MaxRetries()+1,
		"again without an attempt":                            (m.Again || m.Outdated) && !m.Running(),
		"a floor without a wait":                              !m.NotBefore.IsZero() && !m.Waiting(),
		"disabled by nobody":                                  m.Disabled == (m.DisabledBy == ""),
		"what began without an attempt":                       !m.Running() && (!m.ProcessingAt.IsZero() || m.Worker != "" || m.SilentAfter != 0 || !m.HeardAt.IsZero()),
		"an attempt expires after its deadline":               m.ExpiresAt().After(m.DeadlineAt),
		"too many deferrals":                                  m.Deferrals > maxDeferrals, "why is too long for a compact hash": len(m.Why) > 60,
		"a text is not fit to be shown":     !fit(m.Why, 60) || !fit(m.DisabledReason, 500) || !fit(m.UserFriendlyStatus, 500) || !fit(m.Worker, 60),
		"progress out of range":             m.Progress < 0 || m.Progress > 100,
		"a time has more than milliseconds": m.RefreshAt.Nanosecond()%1e6 != 0 || m.DeadlineAt.Nanosecond()%1e6 != 0,
	}
}

func fit(text string, limit int) bool {
	invalid := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u202e' }
	return len(text) <= limit && strings.ToValidUTF8(text, "") == text && !strings.ContainsFunc(text, invalid)
}

// storyTest is one line of a table: a model, what happens to it, and the state after the last step.
type storyTest struct{ definition, steps, want string }

func runStories(t *testing.T, tests []storyTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.steps, func(t *testing.T) { tell(t, test.definition, test.steps).expect(test.want) })
	}
}

// policyOf reads a policy that must be good.
func policyOf(t testing.TB, text string) policy.Policy {
	t.Helper()
	policy, err := policy.Parse(jsonOf(t, text))
	stopIf(t, err != nil, "%s: %v", text, err)
	return policy
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}

func jsonOf(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	stopIf(t, err != nil, "%s: %v", text, err)
	return value
}
