package model

import (
	"strings"
	"testing"
	"time"
)

func TestAnEntryNamesATraceOnlyIfItsAttemptIsTraced(t *testing.T) {
	m := Model{UID: "m1", Payload: `{"n":1}`}
	plain := m.Start(time.Unix(1795244400, 0), "a1")
	if strings.Contains(plain.Message, "trace") || plain.Next.Traced {
		t.Errorf("nobody traces, and the entry is %s", plain.Message)
	}
	m.Traces = true
	traced := m.Start(time.Unix(1795244400, 0), "a1")
	m.State, m.Traces = traced.Next, false
	if m.Entry() != traced.Message {
		t.Errorf("who does not trace takes back %s, which was pushed as %s", m.Entry(), traced.Message)
	}
	entry, err := ParseEntry(traced.Message)
	if err != nil || entry.Traceparent != "00-"+TraceID("a1")+"-"+SpanID("a1", SpanSchedule)+"-01" || string(entry.Payload()) != `{"n":1}` {
		t.Errorf("read as %+v with %s (%v)", entry, entry.Payload(), err)
	}
	if ended := m.Succeed(time.Unix(1795244460, 0), nil); ended.Next.Traced {
		t.Error("the next attempt may not be traced")
	}
}

func TestATraceIsThatOfTheAttemptOrNone(t *testing.T) {
	own := Traceparent("a1", SpanRun)
	for text, want := range map[string]string{
		own: SpanID("a1", SpanRun), Traceparent("a2", SpanRun): "", "": "", "00": "", own + "x": "", strings.ToUpper(own): "", "\r\n" + own: "", own + "\n": "",
	} {
		if got := SpanWithin(text, "a1"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestABadTraceparentHarmsNoResultAndNoWork(t *testing.T) {
	for _, text := range []string{`"x\r\nEvil: 1"`, `{}`, `7`, `"00-1-2-3"`} {
		message, err := DecodeMessage([]byte(`{"type":"success","uid":"m1","attempt_uid":"a1","traceparent":` + text + `}`))
		if err != nil || message.Traceparent != "" || len(message.Ignored) != 1 {
			t.Errorf("%s: read as %+v, %v", text, message, err)
		}
		entry, err := ParseEntry(`{"big_table_uid":"m1","refresh_attempt_uid":"a1","traceparent":` + text + `}`)
		if err != nil || entry.Traceparent != "" {
			t.Errorf("%s: read as %+v, %v", text, entry, err)
		}
	}
}
