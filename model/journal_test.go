package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestTheJournalNamesTheAttemptThatADecisionIsAbout(t *testing.T) {
	changed := true
	ended := &Attempt{
		AttemptUID: "x", AttemptNo: 3, StartedAt: monday, ProcessingAt: monday.Add(2), EndedAt: monday.Add(7), Worker: "w",
		Reason: "down", ErrorType: "timeout", Changed: &changed,
	}
	unheard := *ended
	unheard.ProcessingAt = time.Time{}
	at := monday.Add(7)
	const reason = "too often"
	for name, test := range map[string]struct {
		decision Decision
		want     JournalEntry
	}{
		"of a start": {
			Decision{Event: EventStart, Next: State{AttemptUID: "x", AttemptNo: 2, RefreshAt: at, DeadlineAt: at, Why: "w", DisabledReason: reason}, By: "ann"},
			JournalEntry{Event: EventStart, AttemptUID: "x", AttemptNo: 2, RefreshAt: at, DeadlineAt: at, Why: "w", By: "ann"},
		},
		"of an end": {
			Decision{Event: EventFailure, Next: State{AttemptNo: 4, LastAttemptUID: "x", DisabledReason: reason}, Ended: ended, PolicyError: "p", Held: true},
			JournalEntry{
				Event: EventFailure, AttemptUID: "x", AttemptNo: 3, EndedNo: 3, Reason: "down", ErrorType: "timeout", Changed: &changed, Wait: 2, Work: 5, Who: "w",
				PolicyError: "p", Held: true,
			},
		},
		"of an end for good": {
			Decision{Event: EventFailure, Final: true, Next: State{LastAttemptUID: "x", DisabledReason: reason}, Ended: &unheard},
			JournalEntry{
				Event: EventFailure, AttemptUID: "x", AttemptNo: 3, EndedNo: 3, Reason: "down", ErrorType: "timeout", Changed: &changed, Final: true, DisabledReason: reason,
			},
		},
		"of a superseded attempt": {
			Decision{Event: EventRun, Next: State{LastAttemptUID: "before"}, Ended: &unheard},
			JournalEntry{Event: EventRun, AttemptUID: "x", AttemptNo: 3, EndedNo: 3, EndedUID: "x", Reason: "down", ErrorType: "timeout", Changed: &changed},
		},
		"of a withdrawn attempt": {
			Decision{Event: EventWithdrawn, Next: State{LastAttemptUID: "x", AttemptNo: 2}}, JournalEntry{Event: EventWithdrawn, AttemptUID: "x", AttemptNo: 3, EndedNo: 3},
		},
		"of a new freshness": {
			Decision{Event: EventWatch, PriorFreshness: FreshnessLate, Next: State{Freshness: FreshnessStale}},
			JournalEntry{Event: EventWatch, Freshness: FreshnessStale, PriorFreshness: FreshnessLate},
		},
		"of the same freshness": {
			Decision{Event: EventWatch, PriorFreshness: FreshnessLate, Next: State{Freshness: FreshnessLate}}, JournalEntry{Event: EventWatch},
		},
	} {
		got, is := test.decision.Journal("a", at)
		test.want.UID, test.want.At = "a", at
		failIf(t, !is, "%s: no transition", name)
		equal(t, test.want, got)
	}
	for _, event := range []Event{EventStatus, EventMend} {
		_, is := (&Decision{Event: event}).Journal("a", at)
		failIf(t, is, "%s is a transition", event)
	}
}

func TestADispatcherIsWokenForWhatItWouldMeetTooLate(t *testing.T) {
	soon, late := monday.Add(wakeWithin-1), monday.Add(wakeWithin)
	for name, test := range map[string]struct {
		decision Decision
		want     bool
	}{
		"a start soon":             {Decision{Next: State{RefreshAt: soon}}, true},
		"a start later":            {Decision{Next: State{RefreshAt: late}}, false},
		"a wait for a blocker":     {Decision{Next: State{RefreshAt: soon, ParkedBy: "hold:h"}}, false},
		"nothing to wait for":      {Decision{}, false},
		"disabled":                 {Decision{Next: State{RefreshAt: soon, Disabled: true}}, false},
		"a deadline soon":          {Decision{Event: EventStarted, Next: State{AttemptUID: "x", DeadlineAt: soon, RefreshAt: late}}, true},
		"a deadline later":         {Decision{Event: EventStarted, Next: State{AttemptUID: "x", DeadlineAt: late, RefreshAt: soon}}, false},
		"a deadline of a start":    {Decision{Event: EventStart, Next: State{AttemptUID: "x", DeadlineAt: soon}}, false},
		"a deadline that has gone": {Decision{Event: EventStarted, Next: State{AttemptUID: "x", DeadlineAt: monday.Add(-1)}}, true},
	} {
		got := test.decision.NotifiesDispatcher(monday)
		failIf(t, got != test.want, "%s: woken: %t", name, got)
	}
}

func TestEachNoticeOfADecisionSaysWhatItIsAbout(t *testing.T) {
	next := State{AttemptNo: 4, DisabledReason: "too often", Why: "disabled", LastSuccessAt: monday.Add(-1)}
	ended := &Attempt{AttemptNo: 3, Reason: "down", ErrorType: "timeout", Suspect: "no rows"}
	for name, test := range map[string]struct {
		decision Decision
		want     []Notification
	}{
		"none":      {Decision{}, nil},
		"muted":     {Decision{Notice: policy.NoticeDisabled, Muted: true}, nil},
		"disabled":  {Decision{Notice: policy.NoticeDisabled, Ended: ended}, []Notification{{Notice: policy.NoticeDisabled, AttemptNo: 3, Reason: "too often", Why: "disabled"}}},
		"given up":  {Decision{Notice: policy.NoticeDisabled}, []Notification{{Notice: policy.NoticeDisabled, AttemptNo: 4, Reason: "too often", Why: "disabled"}}},
		"recovered": {Decision{Notice: policy.NoticeRecovered, Ended: ended}, []Notification{{Notice: policy.NoticeRecovered, AttemptNo: 3}}},
		"stale":     {Decision{Notice: policy.NoticeStale}, []Notification{{Notice: policy.NoticeStale, AttemptNo: 4, LastSuccessAt: monday.Add(-1)}}},
		"fresh":     {Decision{NotifiesFresh: true, Ended: ended}, []Notification{{Notice: policy.NoticeFresh, AttemptNo: 3}}},
		"failing":   {Decision{NotifiesFailing: true, Ended: ended}, []Notification{{Notice: policy.NoticeFailing, AttemptNo: 3, Reason: "down", ErrorType: "timeout", Why: "disabled"}}},
		"suspect":   {Decision{NotifiesSuspect: true, Ended: ended}, []Notification{{Notice: policy.NoticeSuspect, AttemptNo: 3, Reason: "no rows", Why: "disabled"}}},
		"two":       {Decision{Notice: policy.NoticeRecovered, NotifiesFresh: true, Ended: ended}, []Notification{{Notice: policy.NoticeRecovered, AttemptNo: 3}, {Notice: policy.NoticeFresh, AttemptNo: 3}}},
	} {
		test.decision.Next = next
		for i := range test.want {
			test.want[i].UID, test.want[i].At = "a", monday
		}
		t.Run(name, func(t *testing.T) { equal(t, test.want, test.decision.Notifications("a", monday)) })
	}
}

func TestAnAddressIsReadWhereItsRecipientSays(t *testing.T) {
	m := &Model{Payload: `{"owner":"o@example.com","n":7}`, Labels: map[string]string{"mail": "l@example.com", "team": "red"}}
	for name, test := range map[string]struct {
		to   policy.Recipient
		want string
	}{
		"itself":              {policy.Recipient{Address: "a@example.com"}, "a@example.com"},
		"a label":             {policy.Recipient{Label: "mail"}, "l@example.com"},
		"no such label":       {policy.Recipient{Label: "none"}, ""},
		"a label of another":  {policy.Recipient{Label: "team"}, ""},
		"the payload":         {policy.Recipient{Payload: "owner"}, "o@example.com"},
		"no such field":       {policy.Recipient{Payload: "none"}, ""},
		"a field of a number": {policy.Recipient{Payload: "n"}, ""},
	} {
		got := m.AddressOf(test.to)
		failIf(t, got != test.want, "%s: got %q, want %q", name, got, test.want)
	}
	got := (&Model{Payload: "broken"}).AddressOf(policy.Recipient{Payload: "owner", Address: "a@example.com"})
	failIf(t, got != "", "of a payload that cannot be read: %q", got)
}
