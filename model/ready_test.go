package model

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// say hands a message about the running attempt to the model, with so many rows.
func say(t *testing.T, m *Model, message Message, rows float64) Decision {
	t.Helper()
	message.AttemptUID, message.Metrics = m.AttemptUID, map[string]float64{"rows": rows}
	decision, outcome := m.Handle(message, monday.Add(time.Minute))
	failIf(t, outcome != Applied, "outcome %q", outcome)
	return decision
}

func TestTheVerdictBeforeASuccessIsWhatBecomesOfItAndChangesNothing(t *testing.T) {
	const doubt = "rows 0: expected at least 1"
	for name, test := range map[string]struct {
		on      policy.OnSuspect
		rows    float64
		change  func(*Model)
		verdict Verdict
		doubt   string
	}{
		"well":                         {policy.SuspectHold, 1, func(*Model) {}, VerdictPublish, ""},
		"tell":                         {"", 0, func(*Model) {}, VerdictPublish, doubt},
		"hold":                         {policy.SuspectHold, 0, func(*Model) {}, VerdictHold, doubt},
		"fail":                         {policy.SuspectFail, 0, func(*Model) {}, VerdictFail, doubt},
		"to run again":                 {policy.SuspectHold, 0, func(m *Model) { m.Again = true }, VerdictFail, "rows 0: expected at least 1"},
		"accepted before":              {policy.SuspectHold, 0, func(m *Model) { m.Unpublished = true }, VerdictPublish, ""},
		"past its deadline, unnoticed": {policy.SuspectHold, 1, func(m *Model) { m.DeadlineAt = monday }, VerdictPublish, ""},
	} {
		m := guarded(t, test.on)
		test.change(&m)
		d := say(t, &m, Message{Type: MessageReady}, test.rows)
		failIf(t, d.Verdict != test.verdict || d.Doubt != test.doubt || d.Next != m.State || d.Event != EventStatus || d.Ended != nil, "%s: %q %q %+v", name, d.Verdict, d.Doubt, d)
	}
}

func TestAReadyIsASignOfLifeAndMovesNoDeadline(t *testing.T) {
	m := guarded(t, policy.SuspectHold)
	m.Policy.SilentAfter = 2 * time.Minute
	d, _ := m.Handle(Message{Type: MessageStarted, AttemptUID: "a1", SignsEvery: time.Second}, monday)
	m.State = d.Next
	d = say(t, &m, Message{Type: MessageReady}, 0)
	m.HeardAt = monday.Add(time.Minute)
	failIf(t, d.Next != m.State, "%+v, want %+v", d.Next, m.State)
}

func TestAReadyOfAReplacedPayloadEndsTheAttemptAsItsResultWould(t *testing.T) {
	m := guarded(t, policy.SuspectHold)
	m.Outdated, m.Again = true, true
	d := say(t, &m, Message{Type: MessageReady}, 1)
	failIf(t, d.Verdict != VerdictStale || d.Event != EventOutdated || d.Ended == nil || !d.Next.Due(monday.Add(time.Minute)), "%+v", d)
	m.State = d.Next
	_, outcome := m.Handle(Message{Type: MessageReady, AttemptUID: "a1"}, monday)
	failIf(t, outcome != Duplicate, "asked again: %q", outcome)
}

func TestTheReplyToAReadyIsCalledAsTheQueueCallsThings(t *testing.T) {
	m := Message{UID: `tbl_"1`, AttemptUID: "a1"}
	for want, got := range map[string]string{
		`{"big_table_uid":"tbl_\"1","refresh_attempt_uid":"a1","verdict":"stale"}`:      m.Reply(Wire{}, "", ""),
		`{"banner_uid":"tbl_\"1","run":"a1","verdict":"hold","reason":"rows \u003c 1"}`: m.Reply(Wire{ModelName: "banner_uid", AttemptName: "run"}, VerdictHold, "rows < 1"),
		`{"big_table_uid":"tbl_\"1","refresh_attempt_uid":"a1","verdict":"publish"}`:    m.Reply(Wire{}, VerdictPublish, ""),
	} {
		failIf(t, got != want, "got %s, want %s", got, want)
	}
}

// unpublished is a model that is held by a success without rows, which its worker has not published.
func unpublished(t *testing.T) Model {
	t.Helper()
	m := guarded(t, policy.SuspectHold)
	d := say(t, &m, Message{Type: MessageSuccess, Unpublished: true}, 0)
	failIf(t, !d.Next.Held() || !d.Next.Unpublished || !d.Ended.Unpublished || d.Ended.Suspect == "", "%+v", d)
	m.State, m.Past = d.Next, []Attempt{*d.Ended}
	return m
}

func TestAnAcceptedResultThatIsNotPublishedRunsAtOnceAndNoGuardDoubtsItUntilASuccess(t *testing.T) {
	at := monday.Add(3 * time.Hour)
	m := unpublished(t)
	d, outcome := m.accept(at)
	failIf(t, outcome != Applied || d.Event != EventAccept || d.Next.Held() || !d.Next.Urgent() || !d.Next.Due(at) || !d.Next.Unpublished || !d.Replaces ||
		!d.Ended.Accepted || !d.Ended.Good() || d.Ended.Outcome != EventSuspect || !d.Next.LastSuccessAt.Equal(m.LastSuccessAt), "accept: %+v", d)
	m.State, m.Past = d.Next, []Attempt{*d.Ended}
	_, outcome = m.accept(at)
	failIf(t, outcome != Unchanged, "accepted twice: %q", outcome)

	m.State = m.Start(at, "a2").Next
	failed := m
	failed.State = failed.Fail(policy.Failure{}, at).Next
	failIf(t, !failed.Unpublished, "a failure ends what was accepted")
	d = say(t, &m, Message{Type: MessageSuccess}, 0)
	failIf(t, d.Event != EventSuccess || d.Next.Unpublished || d.Ended.Suspect != "" || d.NotifiesSuspect, "its success: %+v", d)
	m.State = d.Next
	m.State = m.Start(at, "a3").Next
	d = say(t, &m, Message{Type: MessageReady}, 0)
	failIf(t, d.Verdict != VerdictHold, "the guards are skipped more than once: %+v", d)

	forgetful := unpublished(t)
	forgetful.Past = nil // a queue without histories
	d, outcome = forgetful.accept(at)
	failIf(t, outcome != Applied || d.Event != EventAccept || d.Ended != nil || !d.Next.Due(at) || !d.Next.Unpublished, "accept without a record: %+v", d)
}

func TestWhatElseEndsTheHoldOfAnUnpublishedResultSkipsNoGuard(t *testing.T) {
	at := monday.Add(3 * time.Hour)
	m := unpublished(t)
	rejected, _ := m.reject(at)
	failIf(t, rejected.Event != EventFailure || !rejected.Ended.Unpublished || rejected.Ended.ErrorType != "suspect", "reject: %+v", rejected)
	run, _ := m.Run(false, at)
	disabled, _ := m.Disable("", "", at)
	saved, _, err := m.Put(Definition{UID: "tbl_1", Rule: m.Rule, Dtstart: m.Dtstart, Payload: `{"a":1}`}, m.Policy, true, at)
	for name, d := range map[string]Decision{"reject": rejected, "run": run, "disable": disabled, "save": saved} {
		failIf(t, err != nil || d.Next.Held() || d.Next.Unpublished, "%s: %+v", name, d.Next)
	}
	accepted, _ := m.accept(at)
	m.State = accepted.Next
	saved, _, err = m.Put(Definition{UID: "tbl_1", Rule: m.Rule, Dtstart: m.Dtstart, Payload: `{"a":1}`}, m.Policy, true, at)
	failIf(t, err != nil || saved.Next.Unpublished, "another payload is accepted too: %+v", saved.Next)
}

func TestWhatIsNotPublishedIsNeverARefresh(t *testing.T) {
	at := monday.Add(time.Minute)
	for name, test := range map[string]struct {
		on   policy.OnSuspect
		rows float64
	}{"well": {policy.SuspectHold, 1}, "tell": {"", 0}} {
		m := guarded(t, test.on)
		before := m.LastSuccessAt
		d := say(t, &m, Message{Type: MessageSuccess, Unpublished: true}, test.rows)
		failIf(t, d.Event != EventInterrupted || !d.Next.Due(at) || d.Next.AttemptNo != 0 || !d.Next.LastSuccessAt.Equal(before) || !d.Ended.Unpublished || d.Ended.Good() ||
			d.NotifiesSuspect, "%s: %+v", name, d)
	}
	fails := guarded(t, policy.SuspectFail)
	d := say(t, &fails, Message{Type: MessageSuccess, Unpublished: true}, 0)
	failIf(t, d.Event != EventFailure || d.Ended.ErrorType != "suspect" || !d.Ended.Unpublished || d.Next.Unpublished, "fail: %+v", d)
	endless := guarded(t, "")
	endless.Deferrals = maxDeferrals
	d = say(t, &endless, Message{Type: MessageSuccess, Unpublished: true}, 1)
	failIf(t, d.Event != EventFailure, "a worker that never publishes goes on for ever: %+v", d)
	again := guarded(t, policy.SuspectHold)
	again.Again = true
	d = say(t, &again, Message{Type: MessageSuccess, Unpublished: true}, 0)
	failIf(t, d.Event != EventFailure || !d.Next.Urgent() || !d.Next.Due(at), "again: %+v", d)
}

func TestTheHistorySaysWhatIsNotPublished(t *testing.T) {
	m := unpublished(t)
	read, err := ParseAttempt(m.Past[0].Entry())
	failIf(t, err != nil || !read.Unpublished || read.Note() != "doubted: rows 0: expected at least 1; rows 0; not published", "%+v %v %q", read, err, read.Note())
	failIf(t, !strings.Contains(m.Past[0].Entry(), `"published":false`), "%s", m.Past[0].Entry())
	m.Past[0].Unpublished = false
	failIf(t, strings.Contains(m.Past[0].Entry(), "published"), "%s", m.Past[0].Entry())
}
