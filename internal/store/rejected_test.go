package store

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestARejectedMessageOfAWorkerKeepsNoLog(t *testing.T) {
	for raw, want := range map[string]string{
		`{"uid":"a","log" : "x \"hunter2\" \\","reason":"log"}`: `{"uid":"a","log" : "","reason":"log"}`,
		`{"log":"hunter2`: `{"log":""`, // no JSON, or only its beginning
		`{"log":"` + strings.Repeat("hunter2", maxRaw) + `"}`: `{"log":""}`, // and so all of the rest is kept
		`{"log":7}`: `{"log":7}`,
	} {
		var entry Rejected
		must(t, json.Unmarshal([]byte(Item{Message: Claimed{Entry: "o" + raw}, Reason: "no"}.rejected(time.Unix(1795244400, 0))), &entry))
		if entry.Raw != want || entry.Bytes != "" {
			t.Errorf("%.60s: expected %s, found %.60s of %q bytes", raw, want, entry.Raw, entry.Bytes)
		}
	}
	var command Rejected
	must(t, json.Unmarshal([]byte(Item{Message: Claimed{Entry: `c{"payload":{"log":"x"}}`}, Reason: "no"}.rejected(time.Unix(1795244400, 0))), &command))
	if command.Raw != `{"payload":{"log":"x"}}` {
		t.Errorf("expected a command as it came, found %s", command.Raw)
	}
}
