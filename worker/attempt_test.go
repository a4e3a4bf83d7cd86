package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// TestThePayloadComesBackAsItWasPut also notices when the dispatcher begins to send a field that is not reserved.
func TestThePayloadComesBackAsItWasPut(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for _, payload := range []string{`{}`, `{"a":{"b":[1,2.50,null]},"input_url":"http://x/?a=1&b=<2>"}`} {
		m := &model.Model{UID: "tbl_1", Payload: payload, Policy: policy.Default()}
		a, err := decodeAttempt(m.Start(now, "a1").Message, model.Wire{})
		must(t, err)
		if string(a.Payload) != payload {
			t.Errorf("payload %s, want %s", a.Payload, payload)
		}
		if a.UID != "tbl_1" || a.AttemptUID != "a1" || a.AttemptNo != 1 || !a.DeadlineAt.Equal(now.Add(10*time.Minute)) || !a.PlannedAt.IsZero() {
			t.Errorf("attempt: %+v", a)
		}
	}
}

func TestAnEntryWithoutUidsIsRefusedWithAReason(t *testing.T) {
	for entry, want := range map[string]string{
		``: "entry: expected a JSON object",
		`{"big_table_uid":"m","refresh_attempt_uid":"a"} x`:                    "entry: expected a JSON object",
		`{"refresh_attempt_uid":"a"}`:                                          "big_table_uid: expected",
		`{"big_table_uid":"m","refresh_attempt_uid":""}`:                       "refresh_attempt_uid: expected",
		`{"big_table_uid":["m"],"refresh_attempt_uid":"a"}`:                    "big_table_uid: expected",
		`{"big_table_uid":"m","refresh_attempt_uid":"a","deadline_at":"soon"}`: "deadline_at: expected an RFC 3339 time",
		`{"big_table_uid":"m","refresh_attempt_uid":"a","attempt_no":"two"}`:   "attempt_no: expected",
	} {
		if _, err := decodeAttempt(entry, model.Wire{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", entry, err, want)
		}
	}
}

func FuzzDecodeAttempt(f *testing.F) {
	f.Add(`{"big_table_uid":"m","refresh_attempt_uid":"a","deadline_at":"2026-11-21T07:00:00Z","x":1}`)
	f.Fuzz(func(t *testing.T, entry string) {
		a, err := decodeAttempt(entry, model.Wire{})
		failIf(t, err == nil && (a.UID == "" || a.AttemptUID == "" || len(a.Payload) < 2 || a.Raw != entry), "accepted %q as %+v", entry, a)
	})
}
