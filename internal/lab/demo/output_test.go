package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var seven = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func testIntroduction() introduction {
	return introduction{title: "refreshd demo", cli: "redis-cli -p 7000", commands: []string{"HGETALL a", "XRANGE b - +", "LRANGE c 0 -1", "GET d"}}
}

func testLines() []line {
	return []line{
		transitionLine(model.JournalEntry{
			UID: "flaky", Event: model.EventStart, At: seven, AttemptNo: 1,
			RefreshAt: seven.Add(2 * time.Second), DeadlineAt: seven.Add(2 * time.Second), Why: "if lost: retry 1/2 at once",
		}, time.Time{}),
		transitionLine(model.JournalEntry{
			UID: "flaky", Event: model.EventFailure, At: seven.Add(50 * time.Millisecond), AttemptNo: 1,
			RefreshAt: seven.Add(1050 * time.Millisecond), Why: "retry 1/2 +1s", Reason: "HTTP 503",
		}, seven),
		transitionLine(model.JournalEntry{
			UID: "hangs", Event: model.EventTimeout, At: seven.Add(time.Second), AttemptNo: 3, Why: "final: exhausted after 3",
			Reason: "timeout", Final: true, DisabledReason: "Cannot refresh after 3 attempts: timeout",
		}, seven.Add(time.Hour)),
		transitionLine(model.JournalEntry{UID: "steady", Event: model.EventSuccess, At: seven.Add(time.Second), AttemptNo: 1, Why: "planned"}, seven.Add(2*time.Second)),
		transitionLine(model.JournalEntry{UID: "banner", Event: model.EventSuccess, At: seven.Add(time.Second), AttemptNo: 1, Why: "finished: one-shot"}, seven.Add(2*time.Second)),
		noticeLine(model.Notification{UID: "hangs", At: seven.Add(time.Second), Notice: policy.NoticeDisabled, Reason: "Cannot refresh"}),
		actLine(seven.Add(2*time.Second), "manual", "somebody asks for a refresh by hand"),
		statusLine(seven.Add(3*time.Second), &store.Record{Model: model.Model{UID: "slow", State: model.State{
			AttemptUID: "a", AttemptNo: 1, Progress: 45, UserFriendlyStatus: "45 kB",
		}}}),
	}
}

const pipeGolden = `time          model       event        try  next             why
07:00:00.000  flaky       start        1    deadline +2.0s   if lost: retry 1/2 at once
07:00:00.050  flaky       failure      1    refresh +1.0s    retry 1/2 +1s · HTTP 503
07:00:01.000  hangs       timeout      3    when saved       final: exhausted after 3 · Cannot refresh after 3 attempts: timeout
07:00:01.000  steady      success      1    refresh +1.0s    planned
07:00:01.000  banner      success      1    when saved       finished: one-shot
07:00:01.000  hangs       outbox            -                the owner is told: Cannot refresh
07:00:02.000  manual      --                -                somebody asks for a refresh by hand
07:00:03.000  slow        status       1    45%              45 kB
`

func TestTextPrintsOneAlignedLineForEachThingThatHappens(t *testing.T) {
	var out bytes.Buffer
	p := output{&out, false}
	p.begin(testIntroduction())
	for _, l := range testLines() {
		p.line(l)
	}
	_, got, _ := strings.Cut(out.String(), "GET d\n\n")
	diff := cmp.Diff(pipeGolden, got)
	failIf(t, diff != "", "output (-want +got):\n%s", diff)
	failIf(t, !strings.Contains(out.String(), "\n  redis-cli -p 7000 LRANGE c 0 -1\n"), "output is\n%s\nwant the commands to look inside", out.String())
}

func TestJSONPrintsOneJSONObjectForEachThingThatHappens(t *testing.T) {
	var out bytes.Buffer
	j := output{&out, true}
	j.begin(testIntroduction())
	for _, l := range testLines() {
		j.line(l)
	}
	j.summary(newChecklist(), map[string]int64{"start": 1})
	var got []map[string]any
	for text := range strings.Lines(out.String()) {
		var object map[string]any
		err := json.Unmarshal([]byte(text), &object)
		stopIf(t, err != nil, "%q: %v", text, err)
		got = append(got, object)
	}
	want := map[string]any{
		"at": "2026-11-21T07:00:00.050Z", "uid": "flaky", "event": "failure", "try": "1", "next": "refresh +1.0s",
		"why": "retry 1/2 +1s · HTTP 503",
	}
	stopIf(t, len(got) != len(testLines())+2, "%d objects, want one for each line, one before and one after", len(got))
	diff := cmp.Diff(want, got[2])
	failIf(t, diff != "", "object (-want +got):\n%s", diff)
	if list, ok := got[len(got)-1]["seen"].([]any); !ok || len(list) != len(behaviours) {
		t.Errorf("summary is %v, want every behaviour", got[len(got)-1])
	}
}

func TestTimeoutIsNotToldTwice(t *testing.T) {
	l := transitionLine(model.JournalEntry{Event: model.EventTimeout, Why: "retry 1/2 at once", Reason: policy.ReasonTimeout}, time.Time{})
	failIf(t, l.why != "retry 1/2 at once", "why = %q, want only the consequence beside the event timeout", l.why)
}

func TestUntilIsShort(t *testing.T) {
	tests := map[time.Duration]string{
		-time.Second: "now", 0: "now", 1500 * time.Millisecond: "+1.5s",
		59 * time.Second: "+59.0s", 5 * time.Minute: "+5m", 26 * time.Hour: "+26h",
	}
	for left, want := range tests {
		got := until(seven.Add(left), seven)
		failIf(t, got != want, "until(%s) = %q, want %q", left, got, want)
	}
}
