package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// TestThePayloadComesBackAsItWasPut also notices when the dispatcher begins to send a field that is not reserved.
func TestThePayloadComesBackAsItWasPut(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for _, payload := range []string{`{}`, `{"a":{"b":[1,2.50,null]},"input_url":"http://x/?a=1&b=<2>"}`} {
		m := &model.Model{UID: "tbl_1", Payload: payload, Policy: policy.Default()}
		a, err := decodeAttempt(m.Start(now, "a1").Message, model.Wire{})
		must(t, err)
		failIf(t, string(a.Payload) != payload, "payload %s, want %s", a.Payload, payload)
		failIf(t, a.UID != "tbl_1" || a.AttemptUID != "a1" || a.AttemptNo != 1 || !a.DeadlineAt.Equal(now.Add(10*time.Minute)) || !a.PlannedAt.IsZero(),
			"attempt: %+v", a)
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
		_, err := decodeAttempt(entry, model.Wire{})
		failIf(t, err == nil || !strings.HasPrefix(err.Error(), want), "%s: got %v, want %s…", entry, err, want)
	}
}

func FuzzDecodeAttempt(f *testing.F) {
	f.Add(`{"big_table_uid":"m","refresh_attempt_uid":"a","deadline_at":"2026-11-21T07:00:00Z","x":1}`)
	f.Fuzz(func(t *testing.T, entry string) {
		a, err := decodeAttempt(entry, model.Wire{})
		failIf(t, err == nil && (a.UID == "" || a.AttemptUID == "" || len(a.Payload) < 2 || a.Raw != entry), "accepted %q as %+v", entry, a)
	})
}

func TestTheDefaultsAreThoseOfTheDocumentationAndFitWhatIsSet(t *testing.T) {
	c := Config{Name: "w"}.WithDefaults()
	c.Log = nil
	equal(t, Config{
		Concurrency: 4, Name: "w", FenceEvery: time.Second, Lease: 5 * time.Second, Heartbeat: time.Second, StatusEvery: 250 * time.Millisecond, PushBatch: 500,
		Grace: 10 * time.Second, Linger: 5 * time.Second, FlushTimeout: 5 * time.Second, Backoff: 50 * time.Millisecond, MaxBackoff: 5 * time.Second,
	}, c)
	for _, c := range []Config{{}, {Backoff: time.Minute}, {MaxBackoff: time.Millisecond}, {Grace: -time.Hour}, {Heartbeat: time.Minute}, {Lease: time.Second}} {
		err := c.WithDefaults().Validate()
		failIf(t, err != nil, "%+v: %v", c, err)
	}
}

func TestAConfigOutOfRangeIsRefusedByName(t *testing.T) {
	for want, c := range map[string]Config{
		"concurrency: expected 1 to 10000, found -1":        {Concurrency: -1},
		"push batch: expected 1 to 10000, found 20000":      {PushBatch: 20000},
		"fence every: expected 10ms to 1m0s, found 1ms":     {FenceEvery: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 1ms":       {Heartbeat: time.Millisecond},
		"heartbeat: expected 10ms to 1m0s, found 5ms":       {Lease: 20 * time.Millisecond},
		"lease: expected 4s to 1h0m0s, found 3s":            {Lease: 3 * time.Second, Heartbeat: time.Second},
		"status every: expected 10ms to 1m0s, found -1s":    {StatusEvery: -time.Second},
		"grace: expected 0s to 1h0m0s, found 2h0m0s":        {Grace: 2 * time.Hour},
		"linger: expected 1ms to 1h0m0s, found 2h0m0s":      {Linger: 2 * time.Hour},
		"flush timeout: expected 1ms to 1h0m0s, found -1ns": {FlushTimeout: -1},
		"max backoff: expected 1ms to 1m0s, found 2m0s":     {MaxBackoff: 2 * time.Minute},
		"backoff: expected 1ms to 1s, found 2s":             {Backoff: 2 * time.Second, MaxBackoff: time.Second},
	} {
		err := c.WithDefaults().Validate()
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}
