package model

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func TestACommandIsReadAsTheWireContractSays(t *testing.T) {
	for raw, want := range map[string]Command{
		`{"type":"remove","uid":"tbl_1"}`:                      {Type: CommandRemove, UID: "tbl_1"},
		`{"type":"enable","uid":"tbl_1"}`:                      {Type: CommandEnable, UID: "tbl_1"},
		`{"type":"run","uid":"tbl_1"}`:                         {Type: CommandRun, UID: "tbl_1"},
		`{"type":"run","uid":"tbl_1","force":true}`:            {Type: CommandRun, UID: "tbl_1", Force: true},
		`{"type":"disable","uid":"tbl_1","reason":"paused"}`:   {Type: CommandDisable, UID: "tbl_1", Reason: "paused"},
		`{"type":"put","uid":"tbl_1","policy":"fast"}`:         {Type: CommandPut, UID: "tbl_1", Definition: Definition{UID: "tbl_1", Payload: "{}", PolicyName: "fast"}},
		`{"uid":"tbl_1","refresh":"now","type":"put"}`:         {Type: CommandPut, UID: "tbl_1", Definition: Definition{UID: "tbl_1", Payload: "{}", Refresh: RefreshNow}},
		`{"type":"put","uid":"tbl_1","payload":{"b":1,"a":2}}`: {Type: CommandPut, UID: "tbl_1", Definition: Definition{UID: "tbl_1", Payload: `{"a":2,"b":1}`}},
	} {
		got, err := DecodeCommand([]byte(raw))
		failIf(t, err != nil || !reflect.DeepEqual(got, want), "%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
	}
}

func TestACommandThatCannotBeAppliedIsRejectedWithItsReason(t *testing.T) {
	for _, test := range []struct{ raw, counter, reason string }{
		{`run tbl_1`, CounterMalformed, `expected a JSON object, found "run tbl_1"`},
		{`{}`, counterUnknownType, `type: expected put, remove, run, enable, disable, accept, reject, hold, release, requeue, open_limit, found ""`},
		{`{"type":[]}`, CounterMalformed, "type: expected a text, found a list"},

		{`{"type":"run"}`, counterNoUID, "uid: expected the uid of a model, found nothing"},
		{`{"type":"run","uid":7}`, CounterMalformed, "uid: expected a text, found 7"},
		{`{"type":"run","uid":"tbl_1","force":"yes"}`, CounterMalformed, `force: expected true or false, found "yes"`},
		{`{"type":"run","uid":"tbl_1","forse":true}`, CounterMalformed, "forse: expected one of uid, force, found an unknown field"},
		{`{"type":"enable","uid":"tbl_1","force":true}`, CounterMalformed, "force: expected one of uid, found an unknown field"},

		// Fields that nobody knows, or that belong to another command, are named: the first by the alphabet
		{`{"type":"remove","uid":"tbl_1","c":1,"b":2,"d":3,"a":4}`, CounterMalformed, "a: expected one of uid, found an unknown field"},
		{`{"type":"remove","uid":"tbl_1","` + strings.Repeat("x", 99) + `\u001b\n":1}`, CounterMalformed, strings.Repeat("x", 57) + "…: expected one of uid, found an unknown field"},
		{`{"type":"put","uid":"tbl_1","input_url":"x"}`, CounterMalformed, "input_url: expected one of uid, payload, rrule, timezone, dtstart, refresh, policy, labels, found an unknown field"},
		{`{"type":"put","uid":"tbl_1","policy":{"retries":[0,"soon"]}}`, CounterMalformed, `policy.retries[1]: expected a duration such as `},
	} {
		_, err := DecodeCommand([]byte(test.raw))
		var rejection *Rejection
		failIf(t, !errors.As(err, &rejection) || rejection.Counter != test.counter || !strings.HasPrefix(err.Error(), test.reason),
			"%s:\n got %+v %v\nwant %s %s", test.raw, rejection, err, test.counter, test.reason)
	}
}

// At once, unless an attempt is queued or running; replaces what was scheduled.
func TestARunStartsAnIdleModelAtOnce(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "05:00 run", "#0, next 05:00: run by hand"},
		{daily, "06:00 start | 06:10 failure | 06:10 start | 06:20 failure | 06:20:30 run", "#2, next 06:20:30: run by hand"},
		{banner, "00:00 start | 00:00:30 success | 09:00 run", "#0, next 09:00: run by hand"},
		// A disabled model begins anew
		{daily, `06:00 start | 06:10 failure "retryable":false | 09:00 run`, "#0, next 09:00: run by hand"},
		{daily, `06:00 disable | 09:00 run "force":true | 09:00 start`, "#1 a1 until 10:00, next 10:00: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, `06:00 start | 06:10 run "force":true`, "#0, next 06:10: run by hand"},

		// By force: the attempt in flight counts for nothing
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:20 run "force":true | 06:20 start`, "#2 a3 until 07:20, next 07:21: on timeout: retry 2 of 6 after 1m, ends before planned"},
	})
	s := tell(t, daily, "06:00 start | 06:10 run")
	failIf(t, s.outcome != Busy || !s.m.Running(), "a run over a running attempt: outcome %q, %s", s.outcome, s)
	s.then(`06:20 run "force":true`)
	e := s.decision.Ended
	failIf(t, e == nil || e.Outcome != EventRun || e.Reason != "superseded: run by hand" || e.AttemptUID != "a1",
		"the superseded attempt was recorded as %+v", e)
}

func TestADisabledModelDoesNothingUntilItIsUpdated(t *testing.T) {
	runStories(t, []storyTest{
		{daily, `05:00 disable "reason":"paused by the owner"`, "#0 disabled (paused by the owner): disabled by hand"},
		{daily, `06:00 start | 06:10 disable`, "#0 disabled (): disabled by hand"},
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:20 disable`, "#1 disabled (): disabled by hand"},
		{daily, `06:00 start | 06:10 failure "retryable":false | 07:00 disable "reason":"moved away"`, "#1 disabled (moved away): disabled by hand"},
		{daily, "05:00 disable | 09:00 enable", "#0, next 16:00: planned"},
		{daily, "06:00 start | 06:10 failure | 06:10 disable | 09:00 enable", "#0, next 16:00: planned"},
		{banner, "00:00 disable | 09:00 enable", "#0, next 09:00: enabled: nothing planned, starts now"},
		{lastDay, "05:00 disable | 16:00 enable", "#0, next 16:00: enabled: nothing planned, starts now"},
	})
	s := tell(t, daily, `06:00 start | 06:10 disable "reason":"paused"`)
	e := s.decision.Ended
	failIf(t, e == nil || e.Outcome != EventDisable || e.Reason != "superseded: disabled by hand", "the superseded attempt was recorded as %+v", e)
	failIf(t, s.decision.Notice != policy.NoticeNone || !s.m.FinalFailureAt.IsZero(), "a model disabled by hand alarms nobody: %+v", s.decision)
}

func TestACommandThatChangesNothingSaysSo(t *testing.T) {
	for steps, want := range map[string]Outcome{
		"05:00 enable": Unchanged, "05:00 disable | 05:01 disable": Unchanged, "06:00 start | 06:10 run": Busy,
		"05:00 put":                    Unchanged,
		"05:00 remove | 05:01 run":     UnknownModel,
		"05:00 remove | 05:01 put":     Applied,
		"05:00 disable | 05:01 remove": Applied,
		"05:00 disable | 05:01 put":    Unchanged, // a nightly import of everything does not enable what was disabled
		"06:00 start | 06:10 put":      Unchanged, "05:00 disable | 05:01 run": Stopped, `05:00 put "dtstart":"20260101T000000"`: Unchanged,
		`05:00 put "refresh":"now"`: Applied,
	} {
		s := tell(t, daily, steps)
		failIf(t, s.outcome != want, "%s: outcome %q, want %q", steps, s.outcome, want)
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, seed := range []string{
		`{"type":"put","uid":"tbl_1",` + daily + `,"payload":{"a":1e9},"refresh":"now"}`, `{"type":"put","uid":"a","timezone":"Europe/Berlin","rrule":"FREQ=DAILY"}`,
		`{"type":"run","uid":"tbl_1","force":true}`, `{"type":"disable","uid":"tbl_1","reason":"\u2028"}`, `{"type":"enable","uid":""}`, `{"type":"remove"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		command, err := DecodeCommand(raw)
		if err != nil {
			checkRejection(t, err)
			return
		}
		s := tell(t, daily, "06:00 start | 06:10 failure")
		if s.decision, s.outcome, err = s.m.Execute(&command, anyPolicy(&command), true, clock("06:10")); err == nil && s.outcome == Applied {
			s.apply()
			s.check(clock("06:10"))
		}
	})
}

func TestACommandMaySayWhoWantsItByWhichNameAndWhereToAnswer(t *testing.T) {
	long := strings.Repeat("x", 200)
	for raw, want := range map[string]Command{
		`{"type":"run","uid":"a","command_id":"c1","reply_to":"q:reply:x","by":"ann"}`: {Type: CommandRun, UID: "a", ID: "c1", ReplyTo: "q:reply:x", By: "ann"},
		`{"type":"put","uid":"a","command_id":"c1","reply_to":"q:reply:x","by":"ann"}`: {
			Type: CommandPut, UID: "a", ID: "c1", ReplyTo: "q:reply:x", By: "ann", Definition: Definition{UID: "a", Payload: "{}"},
		},
		`{"type":"remove","uid":"a","command_id":"` + long + `"}`:              {Type: CommandRemove, UID: "a", ID: long},
		`{"type":"enable","uid":"a","by":" a\n\u001b[1mb "}`:                   {Type: CommandEnable, UID: "a", By: "a  [1mb"},
		`{"type":"run","uid":"a","command_id":null,"reply_to":null,"by":null}`: {Type: CommandRun, UID: "a"},
	} {
		got, err := DecodeCommand([]byte(raw))
		failIf(t, err != nil || !reflect.DeepEqual(got, want), "%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
	}
}

func TestOfACommandThatIsRefusedTheRestIsStillKnown(t *testing.T) {
	id := "1-200 letters, digits or _.:@/+=~- (first a letter or digit), found "
	for raw, want := range map[string]struct {
		command Command
		reason  string
	}{
		`{"type":"dance","uid":"a","command_id":"c1","reply_to":"x","by":"ann"}`: {Command{Type: "dance", UID: "a", ID: "c1", ReplyTo: "x", By: "ann"}, "type: expected "},
		`{"type":7,"uid":"a","command_id":"c1"}`:                                 {Command{UID: "a", ID: "c1"}, "type: expected a text, found 7"},
		`{"type":"run","uid":"a","forse":1,"command_id":"c1"}`:                   {Command{Type: CommandRun, UID: "a", ID: "c1"}, "forse: expected one of uid, force, found an unknown field"},
		`{"type":"run","uid":7,"command_id":"c1"}`:                               {Command{Type: CommandRun, ID: "c1"}, "uid: expected a text, found 7"},
		`{"type":"put","uid":"a b","command_id":"c1"}`:                           {Command{Type: CommandPut, UID: "a b", ID: "c1"}, "uid: expected "},
		`{"type":"run","uid":"a","command_id":"","reply_to":"x"}`:                {Command{Type: CommandRun, UID: "a", ReplyTo: "x"}, "command_id: expected " + id + `""`},
		`{"type":"run","uid":"a","command_id":7}`:                                {Command{Type: CommandRun, UID: "a"}, "command_id: expected a text, found 7"},
		`{"type":"run","uid":"a","command_id":"c1","reply_to":[]}`:               {Command{Type: CommandRun, UID: "a", ID: "c1"}, "reply_to: expected a text, found a list"},
	} {
		got, err := DecodeCommand([]byte(raw))
		got.Definition = Definition{}
		failIf(t, err == nil || !strings.HasPrefix(err.Error(), want.reason) || !reflect.DeepEqual(got, want.command),
			"%s:\n got %+v, %v\nwant %+v, %s", raw, got, err, want.command, want.reason)
	}
}

func TestAReplyNamesTheOutcomeAndWhatWasRefused(t *testing.T) {
	full, bare := Command{Type: CommandRun, UID: "a", ID: "c1"}, Command{Type: CommandType("\x1b" + strings.Repeat("x", 99)), UID: "no uid"}
	at := `"at":"` + FormatTime(monday) + `"}`
	for _, test := range []struct {
		command Command
		outcome Outcome
		reason  error
		want    string
	}{
		{full, Applied, nil, `{"command_id":"c1","uid":"a","type":"run","outcome":"applied",`},
		{full, Busy, document.Refuse("run", "x", `"y"`), `{"command_id":"c1","uid":"a","type":"run","outcome":"refused","counter":"busy","reason":"run: expected x, found \"y\"","field":"run","expected":"x","found":"\"y\"",`},
		{full, CounterMalformed, errors.New("bad"), `{"command_id":"c1","uid":"a","type":"run","outcome":"refused","counter":"malformed","reason":"bad",`},
		{bare, counterUnknownType, document.Refuse("", "x", "y"), `{"type":"` + strings.Repeat("x", 57) + `…","outcome":"refused","counter":"unknown_type","reason":"expected x, found y","expected":"x","found":"y",`},
		{full, CounterMalformed, document.Refuse(strings.Repeat("f", 9999), strings.Repeat("w", 9999), "y"), `{"command_id":"c1","uid":"a","type":"run","outcome":"refused","counter":"malformed","reason":"` +
			strings.Repeat("f", 997) + `…","field":"` + strings.Repeat("f", 997) + `…","expected":"` + strings.Repeat("w", 997) + `…","found":"y",`},
	} {
		got := test.command.Reply(test.outcome, test.reason, monday)
		failIf(t, got != test.want+at, "\n got %s\nwant %s", got, test.want+at)
	}
}

func TestABulkRunStartsWhatWasNotStartedSinceItBegan(t *testing.T) {
	began := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	before, now := began.Add(-time.Minute), began.Add(time.Minute)
	waits := Model{UID: "a", Policy: policy.Default(), State: State{RefreshAt: now.Add(time.Hour), Ticket: 7}}
	for name, c := range map[string]struct {
		change func(*Model)
		want   Outcome
	}{
		"it waits":                        {func(*Model) {}, Applied},
		"it never ran":                    {func(m *Model) { m.Ticket = 0 }, Applied},
		"it is due":                       {func(m *Model) { m.RefreshAt = before }, Applied},
		"a hand has asked before":         {func(m *Model) { m.RefreshAt, m.Trigger = before, TriggerHand }, Applied},
		"a hand has asked since":          {func(m *Model) { m.RefreshAt, m.Trigger = began, TriggerHand }, Already},
		"it was parked then":              {func(m *Model) { m.RefreshAt, m.Trigger, m.ParkedBy = began, TriggerHand, "hold:h" }, Already},
		"it runs since before":            {func(m *Model) { m.AttemptUID, m.StartedAt = "x", before }, Busy},
		"it runs since then":              {func(m *Model) { m.AttemptUID, m.StartedAt, m.Ticket = "x", began, 8 }, Already},
		"it was started since and failed": {func(m *Model) { m.Ticket, m.FailingSince = 8, now }, Already},
		"a hand has disabled it":          {func(m *Model) { m.Disabled, m.DisabledBy, m.RefreshAt = true, StoppedByHand, time.Time{} }, Stopped},
		"a failure has disabled it":       {func(m *Model) { m.Disabled, m.DisabledBy, m.RefreshAt = true, StoppedByPolicy, time.Time{} }, Applied},
	} {
		m := waits
		c.change(&m)
		bulk := Bulk{Action: BulkRun, Since: began, Ticket: 7, By: "ann"}
		decision, outcome, picked := bulk.Decide(&m, m.Status(now, false), now)
		if outcome != c.want || !picked || outcome == Applied && (decision.Event != EventRun || decision.By != "ann" || decision.Next.Trigger != TriggerHand) {
			t.Errorf("%s: %q (picked: %v) of %+v, want %q", name, outcome, picked, decision, c.want)
		}
	}
}

func TestABulkPicksOnlyWhatItsSelectorDoes(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	m := Model{UID: "a", Policy: policy.Default()}
	for _, action := range bulkActions {
		bulk := Bulk{Action: BulkAction(action), Selector: selectorOf(t, "uid=b")}
		_, outcome, picked := bulk.Decide(&m, m.Status(now, false), now)
		failIf(t, picked || outcome == Applied, "%s: picked %v, %q", action, picked, outcome)
		bulk.Selector = Selector{}
		_, outcome, picked = bulk.Decide(&m, StatusBroken, now)
		failIf(t, !picked || outcome != Broken, "%s of what is no model: picked %v, %q", action, picked, outcome)
	}
	err := (&Bulk{Action: "polish"}).Validate()
	failIf(t, err == nil, "an unknown action is accepted")
}

func TestADefinitionThatCannotBeAcceptedIsRefused(t *testing.T) {
	m := Model{UID: "tbl_1"}
	for _, d := range []Definition{
		{UID: "tbl_1", Rule: "FREQ=NEVER", Dtstart: "2026-01-01T00:00:00"},
		{UID: "tbl_1", Rule: "FREQ=DAILY", Timezone: "Mars/Olympus", Dtstart: "2026-01-01T00:00:00"},
		{UID: "tbl_1", Rule: "FREQ=DAILY", Timezone: "Mars/Olympus"},
	} {
		put := &Command{Type: CommandPut, UID: "tbl_1", Definition: d}
		_, _, err := m.Execute(put, anyPolicy(put), false, monday)
		field := (*document.Error)(nil)
		failIf(t, !errors.As(err, &field) || field.Field == "", "%+v: %v", d, err)
	}
}

func TestADecisionSaysWhoWantedIt(t *testing.T) {
	for steps, want := range map[string]string{
		`05:00 put "refresh":"now","by":"ann"`: "ann", `05:00 run "by":"ann"`: "ann", `05:00 disable "by":"ann"`: "ann",
		`05:00 disable | 05:01 enable "by":"ann"`: "ann", `05:00 remove "by":"ann"`: "ann", "05:00 run": "", `05:00 run "by":"ann" | 05:00 start`: "",
	} {
		s := tell(t, daily, steps)
		entry, _ := s.decision.Journal("tbl_1", monday)
		failIf(t, s.decision.By != want || entry.By != want, "%s: by %q, in the journal %q; want %q", steps, s.decision.By, entry.By, want)
		failIf(t, s.decision.Next.Disabled && s.decision.Next.DisabledWho != want, "%s: disabled by %q, want %q", steps, s.decision.Next.DisabledWho, want)
	}
}
