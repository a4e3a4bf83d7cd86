package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func started(t *testing.T, definition string) string {
	t.Helper()
	return tell(t, definition, "06:00 start").decision.Message
}

func TestAnAttemptIsHandedOutWithAllThatAWorkerNeeds(t *testing.T) {
	for definition, want := range map[string]string{
		daily + `,"payload":{"input_url":"https://example.com/a?b=<1>&c=\"ü\""}`: `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1",` +
			`"input_url":"https://example.com/a?b=<1>&c=\"ü\"","attempt_no":1,"deadline_at":"2026-01-05T07:00:00.000Z","planned_at":"2026-01-05T16:00:00.000Z","fence":1767592800000,"due_at":"2026-01-05T06:00:00.000Z","for":"planned"}`,
		daily:                                 `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","attempt_no":1,"deadline_at":"2026-01-05T07:00:00.000Z","planned_at":"2026-01-05T16:00:00.000Z","fence":1767592800000,"due_at":"2026-01-05T06:00:00.000Z","for":"planned"}`,
		banner + `,"payload":{"a":{},"b":[]}`: `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","a":{},"b":[],"attempt_no":1,"deadline_at":"2026-01-05T06:01:00.000Z","fence":1767592800000,"due_at":"2026-01-05T00:00:00.000Z","for":"change"}`,
	} {
		got := started(t, definition)
		failIf(t, got != want || !json.Valid([]byte(got)), "\n got %s\nwant %s", got, want)
	}
	m := Model{UID: "tbl_1"} // the payload is gone
	got := m.Start(monday, "a1").Message
	failIf(t, !json.Valid([]byte(got)) || strings.Contains(got, ",,"), "found %s", got)
}

func TestAPayloadMayHaveUpTo64KiBAndNotAByteMore(t *testing.T) {
	// {"a":"…"} are eight bytes around the text.
	if _, err := canonicalPayload(map[string]any{"a": strings.Repeat("x", 64<<10-8)}); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	_, err := canonicalPayload(map[string]any{"a": strings.Repeat("x", 64<<10-7)})
	var field *document.Error
	failIf(t, !errors.As(err, &field) || err.Error() != "payload: expected at most 65536 bytes of JSON, found 65537", "one byte more: %v", err)
}

func TestAnEntryNamesATraceOnlyIfItsAttemptIsTraced(t *testing.T) {
	m := Model{UID: "m1", Payload: `{"n":1}`}
	plain := m.Start(time.Unix(1795244400, 0), "a1")
	failIf(t, strings.Contains(plain.Message, "trace") || plain.Next.Traced, "nobody traces, and the entry is %s", plain.Message)
	m.Traces = true
	traced := m.Start(time.Unix(1795244400, 0), "a1")
	m.State, m.Traces = traced.Next, false
	failIf(t, m.Entry() != traced.Message, "who does not trace takes back %s, which was pushed as %s", m.Entry(), traced.Message)
	entry, err := Wire{}.ParseEntry(traced.Message)
	failIf(t, err != nil || entry.Traceparent != "00-"+TraceID("a1")+"-"+SpanID("a1", SpanSchedule)+"-01" || string(entry.Payload()) != `{"n":1}`,
		"read as %+v with %s (%v)", entry, entry.Payload(), err)
	failIf(t, m.Succeed(time.Unix(1795244460, 0), nil).Next.Traced, "the next attempt may not be traced")
}

func TestATraceIsThatOfTheAttemptOrNone(t *testing.T) {
	own := Traceparent("a1", SpanRun)
	for text, want := range map[string]string{
		own: SpanID("a1", SpanRun), Traceparent("a2", SpanRun): "", "": "", "00": "", own + "x": "", strings.ToUpper(own): "", "\r\n" + own: "", own + "\n": "",
	} {
		got := SpanWithin(text, "a1")
		failIf(t, got != want, "%q: %q, want %q", text, got, want)
	}
}

func TestABadTraceparentHarmsNoResultAndNoWork(t *testing.T) {
	for _, text := range []string{`"x\r\nEvil: 1"`, `{}`, `7`, `"00-1-2-3"`} {
		message, err := Wire{}.DecodeMessage([]byte(`{"type":"success","uid":"m1","attempt_uid":"a1","traceparent":` + text + `}`))
		failIf(t, err != nil || message.Traceparent != "" || len(message.Ignored) != 1, "%s: read as %+v, %v", text, message, err)
		entry, err := Wire{}.ParseEntry(`{"big_table_uid":"m1","refresh_attempt_uid":"a1","traceparent":` + text + `}`)
		failIf(t, err != nil || entry.Traceparent != "", "%s: read as %+v, %v", text, entry, err)
	}
}

// FuzzValidateUID checks that an accepted uid means itself everywhere: alone in a line, in JSON of both directions, in a log
// line of fields, as a word of a command line, and behind the colon of a key.
func FuzzValidateUID(f *testing.F) {
	for _, uid := range []string{
		"t", "tbl_1", "a.b:c@d/e+f=g~h-i", strings.Repeat("x", 200), strings.Repeat("x", 201), "", "-o", "--force", "a b", "a\n", "a\r\nLPUSH", "{a}", "a}", "ä", "é",
		"a*", "a?", "[a]", `a\`, `a"b`, "a'b", "$HOME", "`id`", "a;b", "a|b", "a&b", "<b>", "a\x00", "\x1b[31m", "\u2028", "\u202e", "\xff", "a%2Fb", "../x", "a/../b", "inline-1", "1e9",
	} {
		f.Add(uid)
	}
	f.Fuzz(func(t *testing.T, uid string) {
		err := document.ValidateUID(uid)
		if err != nil {
			stopIf(t, refusedField(err) != "uid" || strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 400,
				"%q is refused with %v", uid, err)
			return
		}
		if strings.ContainsFunc(uid, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`\\$&|;<>(){}[]*?!#%^,", r) }) || uid[0] == '-' {
			t.Fatalf("%q is more than a word", uid)
		}
		quoted := document.Quote(uid)
		stopIf(t, quoted != `"`+uid+`"` || fmt.Sprintf("%q", uid) != quoted, "%q is escaped in JSON: %s", uid, quoted)
		checkWire(t, uid)
	})
}

// checkWire sends a uid the whole way: as a command, to a worker, and back from him.
func checkWire(t *testing.T, uid string) {
	t.Helper()
	for _, kind := range []CommandType{CommandPut, CommandRun, CommandEnable, CommandDisable, CommandRemove} {
		command, err := DecodeCommand([]byte(`{"type":"` + string(kind) + `","uid":"` + uid + `"}`))
		stopIf(t, err != nil || command.UID != uid, "%s of %q is understood as %+v, %v", kind, uid, command, err)
	}
	m := Model{UID: uid, Policy: policy.Default(), Payload: "{}"}
	raw := m.Start(monday, uid).Message
	if entry, err := (Wire{}).ParseEntry(raw); err != nil || entry.UID != uid || entry.AttemptUID != uid {
		t.Fatalf("a worker reads %q as %+v, %v", raw, entry, err)
	}
	message, err := Wire{}.DecodeMessage([]byte(`{"type":"success","big_table_uid":"` + uid + `","refresh_attempt_uid":"` + uid + `"}`))
	stopIf(t, err != nil || message.UID != uid || message.AttemptUID != uid, "the message of %q is understood as %+v, %v", uid, message, err)
}

var banners = Wire{ModelName: "banner_uid", AttemptName: "try", Nested: true}

// startedOn is the entry of the first attempt of a one-shot on a queue with names of its own.
func startedOn(wire Wire, payload string) string {
	m := Model{UID: "b", Payload: payload, Policy: policy.Default(), Wire: wire}
	return m.Start(monday, "a1").Message
}

func TestAnEntryCallsThingsAsItsQueueDoes(t *testing.T) {
	const end = `"attempt_no":1,"deadline_at":"2026-01-05T00:10:00.000Z","fence":1767571200000,"due_at":"2026-01-05T00:00:00.000Z","for":"change"}`
	for _, test := range []struct {
		wire          Wire
		payload, want string
	}{
		{Wire{}, `{"v":2,"x":1}`, `{"big_table_uid":"b","refresh_attempt_uid":"a1","v":2,"x":1,` + end},
		{Wire{ModelName: "banner_uid"}, `{"x":1}`, `{"banner_uid":"b","refresh_attempt_uid":"a1","x":1,` + end},
		{banners, `{"x":1,"deadline_at":"mine"}`, `{"banner_uid":"b","try":"a1","payload":{"x":1,"deadline_at":"mine"},` + end},
		{banners, `{}`, `{"banner_uid":"b","try":"a1","payload":{},` + end},
		{banners, ``, `{"banner_uid":"b","try":"a1","payload":{},` + end}, // the payload is gone
	} {
		got := startedOn(test.wire, test.payload)
		failIf(t, got != test.want, "\n got %s\nwant %s", got, test.want)
		entry, err := test.wire.ParseEntry(got)
		if payload := string(entry.Payload()); err != nil || entry.UID != "b" || entry.AttemptUID != "a1" || payload != test.payload && test.payload != "" {
			t.Errorf("%s: read %+v with %s, %v", got, entry, payload, err)
		}
	}
}

func TestAnEntryIsReadThatWasPushedBeforeTheQueueHadNamesOfItsOwn(t *testing.T) {
	const head, tail = `{"big_table_uid":"b","refresh_attempt_uid":"a1","x":1,`, `"attempt_no":1,"deadline_at":"2026-01-05T06:10:00.000Z"}`
	for _, wire := range []Wire{{}, {ModelName: "banner_uid"}, banners} {
		entry, err := wire.ParseEntry(head + tail)
		got := string(entry.Payload())
		failIf(t, err != nil || entry.UID != "b" || entry.AttemptUID != "a1" || got != `{"x":1}`, "%+v: read %+v with %s, %v", wire, entry, got, err)
	}
}

func TestAResultMayUseTheNamesOfItsQueueTheOldOnesAndTheShortOnes(t *testing.T) {
	for _, test := range []struct {
		wire    Wire
		uids    string
		problem string
	}{
		{Wire{}, `"uid":"b","attempt_uid":"a1"`, ""},
		{Wire{}, `"big_table_uid":"b","attempt_uid":"a1","refresh_attempt_uid":"a1"`, ""},
		{banners, `"banner_uid":"b","try":"a1"`, ""},
		{banners, `"big_table_uid":"b","banner_uid":"b","try":"a1","attempt_uid":"a1","refresh_attempt_uid":"a1"`, ""},
		{Wire{}, `"big_table_uid":"b","refresh_attempt_uid":"a1","uid":"of the payload"`, ""},

		{Wire{}, `"banner_uid":"b","attempt_uid":"a1"`, "big_table_uid: expected the uid of a model, found nothing"},
		{banners, `"banner_uid":"b","big_table_uid":"of the payload","try":"a1"`, ""},
		{Wire{}, `"big_table_uid":"b","refresh_attempt_uid":"a1","attempt_uid":"of the payload"`, ""},
		{Wire{}, `"big_table_uid":"b","refresh_attempt_uid":"a1","request_attempt_uid":"a2"`, "refresh_attempt_uid: expected the same uid as request_attempt_uid, found another"},
		{banners, `"uid":"b","attempt_uid":"a1","request_attempt_uid":"a2"`, "attempt_uid: expected the same uid as request_attempt_uid, found another"},
		{banners, `"uid":"b"`, "try: expected the uid of the attempt, found nothing"},
	} {
		m, err := test.wire.DecodeMessage([]byte(`{"type":"success",` + test.uids + `}`))
		problem, attempt := "", "a1"
		if err != nil {
			problem, attempt = err.Error(), m.AttemptUID
		}
		failIf(t, problem != test.problem || test.problem == "" && m.UID != "b" || m.AttemptUID != attempt,
			"%s: read %q and %q, %q; want %q", test.uids, m.UID, m.AttemptUID, problem, test.problem)
	}
}

func TestANameThatMeansSomethingElseIsRefused(t *testing.T) {
	for _, wire := range []Wire{
		{ModelName: "1st"}, {ModelName: "a b"}, {ModelName: strings.Repeat("x", 65)}, {ModelName: "payload"}, {ModelName: "Deadline_At"},
		{ModelName: "reason"}, {ModelName: "attempt_uid"}, {ModelName: "refresh_attempt_uid"}, {AttemptName: "uid"}, {AttemptName: "big_table_uid"},
		{AttemptName: "type"}, {ModelName: "same", AttemptName: "Same"}, {ModelName: "v"},
	} {
		err := wire.Validate()
		failIf(t, err == nil, "%+v: expected a refusal", wire)
	}
	for _, wire := range []Wire{{}, banners, {ModelName: "uid", AttemptName: "attempt_uid"}, {ModelName: "big_table_uid", AttemptName: "refresh_attempt_uid"}} {
		err := wire.Validate()
		failIf(t, err != nil, "%+v: %v", wire, err)
	}
}

func TestAPayloadMayNotUseTheNamesThatItsQueuePutsBesideIt(t *testing.T) {
	const old = "big_table_uid, refresh_attempt_uid, request_attempt_uid, attempt_no, deadline_at, planned_at, reply_to, traceparent, fence, due_at, for, deaths"
	flat := Wire{ModelName: "banner_uid", AttemptName: "try"}
	for _, test := range []struct {
		wire                 Wire
		payload, field, want string
	}{
		{Wire{}, `{"deadline_at":1}`, "payload.deadline_at", old},
		{Wire{}, `{"Refresh_Attempt_UID":1}`, "payload.Refresh_Attempt_UID", old},
		{Wire{}, `{"v":1,"uid":1,"payload":1,"banner_uid":1}`, "-", ""},
		{flat, `{"Banner_uid":1}`, "payload.Banner_uid", "banner_uid, try, attempt_no, deadline_at, planned_at, reply_to, traceparent, fence, due_at, for, deaths"},
		{flat, `{"big_table_uid":1,"refresh_attempt_uid":1}`, "-", ""},
		{banners, `{"banner_uid":1,"try":1,"deadline_at":1,"payload":{}}`, "-", ""},
	} {
		m := Model{Wire: test.wire}
		d, err := ParseDefinition(map[string]any{"uid": "b", "payload": jsonOf(t, test.payload)})
		must(t, err)
		_, _, err = m.Put(d, policy.Default(), false, monday)
		refused := (*document.Error)(nil)
		failIf(t, refusedField(err) != test.field || errors.As(err, &refused) && refused.Want != "a name other than "+test.want,
			"%+v %s: %v", test.wire, test.payload, err)
		m.Payload = d.Payload // saved before the queue had these names
		_, _, err = m.Put(d, policy.Default(), true, monday)
		failIf(t, err != nil, "%s: what is stored may be saved again, %v", test.payload, err)
		text := startedOn(test.wire, d.Payload)
		failIf(t, !json.Valid([]byte(text)), "found %s", text)
	}
}

func TestAnEntryOfTheInputListIsKnownByItsUID(t *testing.T) {
	for raw, want := range map[string]string{
		started(t, daily): "a1", started(t, banner+`,"payload":{"uid":"x","nested":{"refresh_attempt_uid":"no"}}`): "a1",
		"": "", "garbage": "", "[]": "", `{"refresh_attempt_uid":7}`: "", `{"other":"a1"}`: "",
	} {
		got, _ := (Wire{}).ParseEntry(raw)
		failIf(t, got.AttemptUID != want, "%s: %q, want %q", raw, got.AttemptUID, want)
	}
}

func TestAFenceOnlyGrowsWhateverTheClockDoes(t *testing.T) {
	m := Model{UID: "m1", Policy: policy.Default(), State: State{RefreshAt: monday}}
	last := int64(0)
	for i, now := range []time.Time{monday, monday, monday.Add(-time.Hour), monday.Add(time.Millisecond), monday.Add(-365 * 24 * time.Hour), monday.Add(time.Minute)} {
		start := m.Start(now, "a1")
		want := max(last+1, now.UnixMilli())
		failIf(t, start.Next.Fence != want, "start %d at %v: fence %d, want %d", i, now, start.Next.Fence, want)
		m.State, last = start.Next, want
		switch i % 3 {
		case 0:
			m.State = m.Fail(policy.Failure{Reason: "503"}, now).Next
		case 1:
			run, _ := m.Run(true, now)
			m.State = run.Next
		default:
			m.State = m.Succeed(now, nil).Next
		}
		failIf(t, m.Fence < last || m.Running(), "the end of start %d leaves fence %d after %d", i, m.Fence, last)
		m.RefreshAt = now
	}
}

func TestAnAttemptKeepsItsFenceUntilAnotherPayloadTakesItsPlace(t *testing.T) {
	s := tell(t, daily+`,"payload":{"a":1}`, `06:00 start | 06:01 put "payload":{"a":2}`)
	first, err := Wire{}.ParseEntry(started(t, daily+`,"payload":{"a":1}`))
	must(t, err)
	replaced, err := Wire{}.ParseEntry(s.decision.Message)
	must(t, err)
	failIf(t, replaced.Fence != first.Fence+1 || !replaced.DueAt.Equal(first.DueAt) || string(replaced.Payload()) != `{"a":2}`,
		"the entry in its place is %s", s.decision.Message)
	began, _ := s.m.Begin(monday.Add(7*time.Hour), "w1")
	failIf(t, began.Next.Fence != replaced.Fence, "once begun its fence is %d", began.Next.Fence)
}

func TestAnAttemptIsToldWhatItIsFor(t *testing.T) {
	hourly := `"rrule":"FREQ=HOURLY"`
	due := monday.Add(6 * time.Hour)
	for name, test := range map[string]struct {
		rule  string
		state State
		want  Purpose
	}{
		"planned":                       {hourly, State{}, ForPlanned},
		"a retry":                       {hourly, State{Trigger: TriggerRetry, AttemptNo: 1}, ForRetry},
		"the end of a give-up window":   {hourly, State{Trigger: TriggerGiveUp, AttemptNo: 1}, ForRetry},
		"a run":                         {hourly, State{Trigger: TriggerRun}, ForRun},
		"a bulk":                        {hourly, State{Trigger: TriggerHand, AttemptNo: 2}, ForRun},
		"a save":                        {hourly, State{Trigger: TriggerChange}, ForChange},
		"the save of a one-shot":        {"", State{}, ForChange},
		"a retry of a one-shot":         {"", State{Trigger: TriggerRetry, AttemptNo: 1}, ForRetry},
		"a postponed planned refresh":   {hourly, State{Trigger: TriggerDeferred}, ForPlanned},
		"a postponed retry":             {hourly, State{Trigger: TriggerDeferred, AttemptNo: 1}, ForRetry},
		"a postponed save of one":       {"", State{Trigger: TriggerDeferred}, ForChange},
		"a planned refresh for a retry": {hourly, State{AttemptNo: 3}, ForPlanned},
	} {
		m := begin(t, hourly).m
		if m.Rule = test.rule; test.rule == "" {
			m.Schedule = nil
		}
		m.State = test.state
		m.RefreshAt = due
		entry, err := Wire{}.ParseEntry(m.Start(due.Add(time.Minute), "a1").Message)
		failIf(t, err != nil || entry.Purpose != test.want || !entry.DueAt.Equal(due), "%s: %+v, %v; want %s", name, entry, err, test.want)
	}
}

func TestAnOldPayloadKeepsAFieldWithANameOfTheFence(t *testing.T) {
	for payload, own := range map[string]bool{
		`{"for":"adults"}`: true, `{"due_at":"2026-01-06T00:00:00Z","x":1}`: true, `{"fence":7}`: true, `{"For":1}`: true, `{"fence":1,"for":2}`: true,
		`{"x":{"for":1}}`: false, `{"x":"\"for\":"}`: false, `{"x":"for"}`: false, `{}`: false,
	} {
		m := Model{UID: "m1", Payload: payload, Policy: policy.Default(), State: State{RefreshAt: monday}}
		text := m.Start(monday, "a1").Message
		entry, err := Wire{}.ParseEntry(text)
		must(t, err)
		failIf(t, string(entry.Payload()) != payload || (entry.Fence == 0) != own || (entry.Purpose == "") != own, "%s: %s is read as %+v with %s", payload, text, entry, entry.Payload())
		names := map[string]int{}
		decoder := json.NewDecoder(strings.NewReader(text))
		for _, _ = decoder.Token(); decoder.More(); {
			name, _ := decoder.Token()
			names[strings.ToLower(fmt.Sprint(name))]++
			must(t, decoder.Decode(new(json.RawMessage)))
		}
		for _, name := range fenceNames {
			failIf(t, names[name] > 1, "%s: %s stands there %d times", text, name, names[name])
		}
		m.Wire.Nested = true
		entry, err = m.Wire.ParseEntry(m.Start(monday, "a1").Message)
		failIf(t, err != nil || string(entry.Payload()) != payload || entry.Fence == 0, "nested: %+v with %s, %v", entry, entry.Payload(), err)
	}
}

func TestANewPayloadMayNotHaveANameOfTheFenceAndAnImportedOneMay(t *testing.T) {
	m := Model{UID: "b"}
	d, err := ParseDefinition(map[string]any{"uid": "b", "payload": map[string]any{"for": "adults"}})
	must(t, err)
	_, _, err = m.Put(d, policy.Default(), false, monday)
	failIf(t, refusedField(err) != "payload.for", "a new payload: %v", err)
	m.Payload = d.Payload
	d.Labels = map[string]string{"tenant": "t1"}
	_, outcome, err := m.Put(d, policy.Default(), true, monday)
	failIf(t, err != nil || outcome != Applied, "the payload stays: %v, %v", outcome, err)
	_, outcome, err = (&Model{UID: "b"}).Import(Moved{Definition: d}, policy.Default(), false, nil, monday)
	failIf(t, err != nil || outcome != Applied, "an import: %v, %v", outcome, err)
}

func TestAnImportNeverLowersTheFence(t *testing.T) {
	m := Model{UID: "b", Policy: policy.Default(), State: State{Fence: 2_000_000_000_000}}
	for _, arrived := range []int64{0, 1_000, 3_000_000_000_000} {
		decision, _, err := m.Import(Moved{Definition: Definition{UID: "b", Payload: "{}"}, State: State{Fence: arrived, RefreshAt: monday}}, policy.Default(), true, nil, monday)
		failIf(t, err != nil || decision.Next.Fence != max(arrived, m.Fence), "%d over %d becomes %d (%v)", arrived, m.Fence, decision.Next.Fence, err)
	}
}

func TestDeathsStandBesideThePayloadAndAStoredPayloadKeepsTheName(t *testing.T) {
	for raw, want := range map[string]struct {
		deaths  int
		payload string
	}{
		`{"big_table_uid":"m","refresh_attempt_uid":"a","x":1,"deaths":2}`:                                                                    {2, `{"x":1}`},
		`{"big_table_uid":"m","refresh_attempt_uid":"a","attempt_no":1,"fence":7,"due_at":"2026-11-21T06:00:00.000Z","for":"run","deaths":3}`: {3, `{}`},
		`{"big_table_uid":"m","refresh_attempt_uid":"a","deaths":1200,"attempt_no":1}`:                                                        {0, `{"deaths":1200}`},
		`{"big_table_uid":"m","refresh_attempt_uid":"a","deaths":"many"}`:                                                                     {0, `{"deaths":"many"}`},
		`{"big_table_uid":"m","refresh_attempt_uid":"a","deaths":-1}`:                                                                         {0, `{"deaths":-1}`},
	} {
		e, err := Wire{}.ParseEntry(raw)
		failIf(t, err != nil || e.Deaths != want.deaths || string(e.Payload()) != want.payload, "%s: %d deaths, payload %s, %v", raw, e.Deaths, e.Payload(), err)
	}
	e, err := Wire{Nested: true}.ParseEntry(`{"big_table_uid":"m","refresh_attempt_uid":"a","payload":{"deaths":5},"deaths":2}`)
	failIf(t, err != nil || e.Deaths != 2 || string(e.Payload()) != `{"deaths":5}`, "nested: %d deaths, payload %s, %v", e.Deaths, e.Payload(), err)
}
