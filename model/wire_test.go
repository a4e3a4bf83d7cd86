package model

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

var banners = Wire{ModelName: "banner_uid", AttemptName: "try", Nested: true}

// startedOn is the entry of the first attempt of a one-shot on a queue with names of its own.
func startedOn(wire Wire, payload string) string {
	m := Model{UID: "b", Payload: payload, Policy: policy.Default(), Wire: wire}
	return m.Start(monday, "a1").Message
}

func TestAnEntryCallsThingsAsItsQueueDoes(t *testing.T) {
	const end = `"attempt_no":1,"deadline_at":"2026-01-05T00:10:00.000Z"}`
	for _, test := range []struct {
		wire          Wire
		payload, want string
	}{
		{Wire{}, `{"v":2,"x":1}`, `{"big_table_uid":"b","refresh_attempt_uid":"a1","v":2,"x":1,` + end},
		{Wire{ModelName: "banner_uid"}, `{"x":1}`, `{"banner_uid":"b","refresh_attempt_uid":"a1","x":1,` + end},
		{banners, `{"x":1,"deadline_at":"mine"}`, `{"banner_uid":"b","try":"a1","payload":{"x":1,"deadline_at":"mine"},` + end},
		{banners, ``, `{"banner_uid":"b","try":"a1","payload":{},` + end}, // the payload is gone
	} {
		got := startedOn(test.wire, test.payload)
		if got != test.want {
			t.Errorf("\n got %s\nwant %s", got, test.want)
		}
		entry, err := test.wire.ParseEntry(got)
		if payload := string(entry.Payload()); err != nil || entry.UID != "b" || entry.AttemptUID != "a1" || payload != test.payload && test.payload != "" {
			t.Errorf("%s: read %+v with %s, %v", got, entry, payload, err)
		}
	}
}

// Redis holds what was pushed before: by another release, or before the queue had names of its own.
func TestAnEntryOfAnEarlierFormIsRead(t *testing.T) {
	const head, tail = `{"big_table_uid":"b","refresh_attempt_uid":"a1","x":1,`, `"attempt_no":1,"deadline_at":"2026-01-05T06:10:00.000Z","v":1}`
	for _, wire := range []Wire{{}, {ModelName: "banner_uid"}, banners} {
		entry, err := wire.ParseEntry(head + tail)
		if got := string(entry.Payload()); err != nil || entry.UID != "b" || entry.AttemptUID != "a1" || got != `{"x":1}` {
			t.Errorf("%+v: read %+v with %s, %v", wire, entry, got, err)
		}
	}
}

func TestAResultMayUseTheNamesOfItsQueueTheOldOnesAndTheShortOnes(t *testing.T) {
	for _, test := range []struct {
		wire    Wire
		uids    string
		problem string
	}{
		{Wire{}, `"uid":"b","attempt_uid":"a1"`, ""},
		{banners, `"big_table_uid":"b","banner_uid":"b","try":"a1","attempt_uid":"a1","refresh_attempt_uid":"a1"`, ""},
		{Wire{}, `"big_table_uid":"b","refresh_attempt_uid":"a1","uid":"of the payload"`, ""},

		{Wire{}, `"banner_uid":"b","attempt_uid":"a1"`, "big_table_uid: expected the uid of a model, found nothing"},
		{banners, `"banner_uid":"b","big_table_uid":"of the payload","try":"a1"`, ""},
		{Wire{}, `"big_table_uid":"b","refresh_attempt_uid":"a1","attempt_uid":"of the payload"`, ""},
		{banners, `"uid":"b","attempt_uid":"a1","request_attempt_uid":"a2"`, "attempt_uid: expected the same uid as request_attempt_uid, found another"},
		{banners, `"uid":"b"`, "try: expected the uid of the attempt, found nothing"},
	} {
		m, err := test.wire.DecodeMessage([]byte(`{"type":"success",` + test.uids + `}`))
		problem, attempt := "", "a1"
		if err != nil {
			problem, attempt = err.Error(), m.AttemptUID
		}
		if problem != test.problem || test.problem == "" && m.UID != "b" || m.AttemptUID != attempt {
			t.Errorf("%s: read %q and %q, %q; want %q", test.uids, m.UID, m.AttemptUID, problem, test.problem)
		}
	}
}

func TestANameThatMeansSomethingElseIsRefused(t *testing.T) {
	for _, wire := range []Wire{
		{ModelName: "1st"}, {ModelName: "a b"}, {ModelName: strings.Repeat("x", 65)}, {ModelName: "payload"}, {ModelName: "Deadline_At"},
		{ModelName: "reason"}, {ModelName: "attempt_uid"}, {ModelName: "refresh_attempt_uid"}, {AttemptName: "uid"}, {AttemptName: "big_table_uid"},
		{AttemptName: "type"}, {ModelName: "same", AttemptName: "Same"}, {ModelName: "v"},
	} {
		if err := wire.Validate(); err == nil {
			t.Errorf("%+v: expected a refusal", wire)
		}
	}
	for _, wire := range []Wire{{}, banners, {ModelName: "uid", AttemptName: "attempt_uid"}, {ModelName: "big_table_uid", AttemptName: "refresh_attempt_uid"}} {
		if err := wire.Validate(); err != nil {
			t.Errorf("%+v: %v", wire, err)
		}
	}
}

func TestAPayloadMayNotUseTheNamesThatItsQueuePutsBesideIt(t *testing.T) {
	const old = "big_table_uid, refresh_attempt_uid, request_attempt_uid, attempt_no, deadline_at, planned_at, reply_to, traceparent"
	flat := Wire{ModelName: "banner_uid", AttemptName: "try"}
	for _, test := range []struct {
		wire                 Wire
		payload, field, want string
	}{
		{Wire{}, `{"Refresh_Attempt_UID":1}`, "payload.Refresh_Attempt_UID", old},
		{Wire{}, `{"v":1,"uid":1,"payload":1,"banner_uid":1}`, "-", ""},
		{flat, `{"Banner_uid":1}`, "payload.Banner_uid", "banner_uid, try, attempt_no, deadline_at, planned_at, reply_to, traceparent"},
		{banners, `{"banner_uid":1,"try":1,"deadline_at":1,"payload":{}}`, "-", ""},
	} {
		m := Model{Wire: test.wire}
		d, err := ParseDefinition(map[string]any{"uid": "b", "payload": jsonOf(t, test.payload)})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.Put(d, policy.Default(), false, monday)
		if refused := (*document.Error)(nil); refusedField(err) != test.field || errors.As(err, &refused) && refused.Want != "a name other than "+test.want {
			t.Errorf("%+v %s: %v", test.wire, test.payload, err)
		}
		m.Payload = d.Payload // saved before the queue had these names
		if _, _, err := m.Put(d, policy.Default(), true, monday); err != nil {
			t.Errorf("%s: what is stored may be saved again, %v", test.payload, err)
		}
		if text := startedOn(test.wire, d.Payload); !json.Valid([]byte(text)) {
			t.Errorf("found %s", text)
		}
	}
}
