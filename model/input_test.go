package model

import (
	"encoding/json"
	"strings"
	"testing"
)

func started(t *testing.T, definition string) string {
	t.Helper()
	return tell(t, definition, "06:00 start").decision.Message
}

func TestAnAttemptIsHandedOutWithAllThatAWorkerNeeds(t *testing.T) {
	for definition, want := range map[string]string{
		daily + `,"payload":{"input_url":"https://example.com/a?b=<1>&c=\"ü\""}`: `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1",` +
			`"input_url":"https://example.com/a?b=<1>&c=\"ü\"","attempt_no":1,"deadline_at":"2026-01-05T07:00:00.000Z","planned_at":"2026-01-05T16:00:00.000Z"}`,
		daily:                                 `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","attempt_no":1,"deadline_at":"2026-01-05T07:00:00.000Z","planned_at":"2026-01-05T16:00:00.000Z"}`,
		banner + `,"payload":{"a":{},"b":[]}`: `{"big_table_uid":"tbl_1","refresh_attempt_uid":"a1","a":{},"b":[],"attempt_no":1,"deadline_at":"2026-01-05T06:01:00.000Z"}`,
	} {
		if got := started(t, definition); got != want || !json.Valid([]byte(got)) {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	m := Model{UID: "tbl_1"} // the payload is gone
	if got := m.Start(monday, "a1").Message; !json.Valid([]byte(got)) || strings.Contains(got, ",,") {
		t.Errorf("found %s", got)
	}
}

func TestAnEntryOfTheInputListIsKnownByItsUID(t *testing.T) {
	for raw, want := range map[string]string{
		started(t, daily): "a1", started(t, banner+`,"payload":{"uid":"x","nested":{"refresh_attempt_uid":"no"}}`): "a1",
		"": "", "garbage": "", "[]": "", `{"refresh_attempt_uid":7}`: "", `{"other":"a1"}`: "",
	} {
		if got, _ := ParseEntry(raw); got.AttemptUID != want {
			t.Errorf("%s: %q, want %q", raw, got.AttemptUID, want)
		}
	}
}
