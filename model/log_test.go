package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALogKeepsNoSecretAndNoControlCharacter(t *testing.T) {
	for given, want := range map[string]string{
		"":                                   "",
		"one\r\ntwo\rthree\n\n":              "one\ntwo\nthree",
		"a\tb":                               "a\tb",
		"\x1b[31;1mred\x1b[0m \x1b]0;t\x07":  "red",
		"a\x00b\u202ec\u2028d":               "a b c d",
		"bad \xff byte":                      "bad \uFFFD byte",
		"PASSWORD=hunter2 and on":            "PASSWORD=*** and on",
		`{"db_password": "a b c", "x": 1}`:   `{"db_password": ***, "x": 1}`,
		"api-key: k1,secret='a b'":           "api-key: ***,secret=***",
		"Authorization: Basic dXNlcjpwYXNz":  "Authorization: ***",
		`-H "Authorization: Bearer abc.def"`: `-H "Authorization: ***"`,
		"Bearer abcdefgh12345":               "Bearer ***",
		"GET https://u:p@example.com/a?b=1":  "GET https://***@example.com/a?b=1",
		"GET https://example.com/@me":        "GET https://example.com/@me",
		"key AKIAABCDEFGHIJKLMNOP.":          "key ***.",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest": "***\nrest",
		"-----BEGIN PRIVATE KEY-----\nabc":                                          "***",
		"12 rows, 3 tokens left":                                                    "12 rows, 3 tokens left",
	} {
		if got := keptLog(given); got != want {
			t.Errorf("%q: expected %q, found %q", given, want, got)
		}
	}
}

func TestOfALongLogTheEndIsKept(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	got := keptLog("first\n" + strings.Repeat(line, 2000) + "last")
	if len(got) > MaxLog || len(got) < MaxLog-200 || !strings.HasPrefix(got, line) || !strings.HasSuffix(got, "\nlast") {
		t.Errorf("expected whole lines up to the last, found %d bytes from %.120q", len(got), got)
	}
	for _, before := range []string{"", "a", "aa", "aaa"} {
		got = keptLog(before + strings.Repeat("\U0001F600", MaxLog))
		if len(got) > MaxLog || len(got) < MaxLog-4 || !utf8.ValidString(got) {
			t.Errorf("expected whole characters, found %d bytes", len(got))
		}
	}
}

func TestOnlyAMessageThatEndsAnAttemptHasALog(t *testing.T) {
	for kind, want := range map[string]string{"success": "said", "failure": "said", "postponed": "said", "interrupted": "said", "started": "", "user_friendly_status": ""} {
		m, err := Wire{}.DecodeMessage([]byte(`{"type":"` + kind + `","uid":"a","attempt_uid":"u","retry_after":5,"log":"said","log_url":"https://example.com/1"}`))
		if err != nil || m.Log != want || (m.LogURL != "") != (want != "") {
			t.Errorf("%s: expected the log %q, found %q at %q, %v", kind, want, m.Log, m.LogURL, err)
		}
	}
}

func TestALogThatCannotBeUsedIsIgnoredAndTheResultCounts(t *testing.T) {
	for _, fields := range []string{
		`"log":7`, `"log_url":"javascript:alert(1)"`, `"log_url":"https://u:p@example.com"`, `"log_url":"//example.com"`, `"log_url":"http://a/\u0007"`,
		`"log_url":"http://a/` + strings.Repeat("x", 500) + `"`,
	} {
		m, err := Wire{}.DecodeMessage([]byte(`{"type":"success","uid":"a","attempt_uid":"u",` + fields + `}`))
		if err != nil || m.Log != "" || m.LogURL != "" || len(m.Ignored) != 1 {
			t.Errorf("%s: expected one ignored field, found %v, %v", fields, m.Ignored, err)
		}
	}
}

func TestTheHistoryTellsOfALog(t *testing.T) {
	m := &Model{UID: "a"}
	m.AttemptUID, m.AttemptNo = "u", 1
	decision, _ := m.Handle(Message{Type: MessageSuccess, AttemptUID: "u", Log: "said", LogURL: "https://example.com/1"}, clock("06:00"))
	read, err := ParseAttempt(decision.Ended.Entry())
	if err != nil || decision.Log != "said" || read.LogBytes != 4 || read.LogURL != "https://example.com/1" {
		t.Errorf("expected its size and place, found %+v, %v", read, err)
	}
}
