package model

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALogKeepsNoSecretAndNoControlCharacter(t *testing.T) {
	for given, want := range map[string]string{
		"":                                         "",
		"one\r\ntwo\rthree\n\n":                    "one\ntwo\nthree",
		"a\tb":                                     "a\tb",
		"\x1b[31;1mred\x1b[0m \x1b]0;t\x07":        "red",
		"a\x00b\u202ec\u2028d":                     "a b c d",
		"bad \xff byte":                            "bad \uFFFD byte",
		"PASSWORD=hunter2 and on":                  "PASSWORD=*** and on",
		"OLD_PASSWORD_SALT=x":                      "OLD_PASSWORD_SALT=***",
		"client_secret: hunter":                    "client_secret: ***",
		`{"db_password": "a b c", "x": 1}`:         `{"db_password": ***, "x": 1}`,
		`{"password": "a\"b", "x": 1}`:             `{"password": ***, "x": 1}`,
		`"{\"password\":\"hunter2\",\"x\":1}"`:     `"{\"password\":***,\"x\":1}"`,
		`"{\"token\":\"a\\\"b\",\"x\":1}"`:         `"{\"token\":***,\"x\":1}"`,
		`secret="no end`:                           "secret=***",
		"api-key: k1,secret='a b'":                 "api-key: ***,secret=***",
		"Authorization: Basic dXNlcjpwYXNz":        "Authorization: ***",
		`-H "Authorization: Bearer abc.def"`:       `-H "Authorization: ***"`,
		"Bearer abcdefgh12345":                     "Bearer ***",
		"Set-Cookie: id=1; b=2\nnext":              "Set-Cookie: ***\nnext",
		"mysql --password hunter2 -h db":           "mysql --password *** -h db",
		"curl -u user:pass https://x":              "curl -u user:*** https://x",
		"GET /a?X-Amz-Signature=ab12&sig=cd34&x=1": "GET /a?X-Amz-Signature=***&sig=***&x=1",
		"GET https://u:p@example.com/a?b=1":        "GET https://***@example.com/a?b=1",
		"postgres://u:p@ss@host/db":                "postgres://***@host/db",
		"postgres://u:pa/ss@host/db":               "postgres://***@host/db",
		"key AKIAABCDEFGHIJKLMNOP.":                "key ***.",
		"glpat-abcdefghij0123456789 or":            "*** or",
		"github_pat_11ABCDEFG0123456789abcd":       "***",
		"sk_" + "live_abcdefghij0123456789":        "***",
		"AIza" + strings.Repeat("x", 35):           "***",
		"DB_PWD=/abc\nMYSQL_PWD=/x\nXPWD=/x":       "DB_PWD=***\nMYSQL_PWD=***\nXPWD=***",
		"PWD=hunter2\nOLDPWD=geheim":               "PWD=***\nOLDPWD=***",
		"pwd=/abc;Server=x":                        "pwd=***;Server=x",
		"Server=x;UID=sa;PWD=/abc;x=1":             "Server=x;UID=sa;PWD=***;x=1",
		"Server=x; UID=sa; PWD=/abc":               "Server=x; UID=sa; PWD=***",
		"PWD=/srv password=geheim":                 "PWD=/srv password=***",
		"a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb": "a\n***\nb",
		"-----BEGIN PRIVATE KEY-----\nabc":                                          "***",
		"def\nghi\n-----END PRIVATE KEY-----\nrest":                                 "***\nrest",
	} {
		got := KeptLog(given)
		if again := KeptLog(got); got != want || again != want {
			t.Errorf("%q: expected %q, found %q, and masked again %q", given, want, got, again)
		}
	}
}

func TestALogKeepsWhatOnlyLooksLikeASecret(t *testing.T) {
	for _, text := range []string{
		"12 rows, 3 tokens left", "tokens: 51 used", "tokens_used=51", "token_count: 51", "secrets: 3 loaded", "Unexpected token: }", "Unexpected token: eof",
		"Enter password:\nDownloading 51 rows", "Bearer authentication is needed", "GET https://example.com/@me", "GET http://example.com:8080/@me",
		"HOME=/root\nPWD=/srv/app\nOLDPWD=/\nX=1", "PWD=/srv PATH=/bin OLDPWD=/tmp", "PWD=/\nPWD=/a", "declare -x OLDPWD=\"/srv/app\"", "export PWD='/srv/app'", "+ PWD=/srv",
		`{"PWD": "/srv/app", "OLDPWD":"/tmp"}`, "{'A': 'b', 'PWD': '/srv'}",
		`{"url":"http://example.com","mail":"a@example.com"}`, "task-abcdefghijklmnopqrstuvwxyz", "--max-tokens 100", "2 cookies eaten",
	} {
		if got := KeptLog(text); got != text {
			t.Errorf("expected %q, found %q", text, got)
		}
	}
}

func TestNoCutShowsTheHalfOfASecret(t *testing.T) {
	line := strings.Repeat("Key7", 16) + "\n"
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(line, 100) + "-----END PRIVATE KEY-----\n"
	for _, behind := range []int{MaxLog - 50, MaxLog - 3000, 2*MaxLog - 50, 2*MaxLog - 3000} { // either cut falls into the key
		got := KeptLog(strings.Repeat("x\n", MaxLog) + key + strings.Repeat("y\n", behind/2))
		if strings.Contains(got, "Key7") || !strings.HasSuffix(got, "y") || len(got) > MaxLog {
			t.Errorf("%d bytes behind the key: expected none of it, found %d bytes from %.80q", behind, len(got), got)
		}
	}
}

func TestOfALongLogTheEndIsKept(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	got := KeptLog("first\n" + strings.Repeat(line, 2000) + "last")
	if len(got) > MaxLog || len(got) < MaxLog-200 || !strings.HasPrefix(got, line) || !strings.HasSuffix(got, "\nlast") {
		t.Errorf("expected whole lines up to the last, found %d bytes from %.120q", len(got), got)
	}
	for _, before := range []string{"", "a", "aa", "aaa"} {
		got = KeptLog(before + strings.Repeat("\U0001F600", MaxLog))
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

func TestALogIsReadOnlyBehindTheFenceAndWhereItIsKept(t *testing.T) {
	said := Message{Type: MessageSuccess, AttemptUID: "u", Log: "said"}
	for name, m := range map[string]*Model{"not kept": {UID: "a"}, "stale": {UID: "a", KeepsLogs: true}} {
		if m.AttemptUID = "u"; m.KeepsLogs {
			m.AttemptUID = "later"
		}
		decision, outcome := m.Handle(said, clock("06:00"))
		if decision.Log != "" || decision.Ended != nil && decision.Ended.LogBytes != 0 || (outcome == Stale) != m.KeepsLogs {
			t.Errorf("%s: expected no log, found %q, %s", name, decision.Log, outcome)
		}
	}
}

func TestTheHistoryTellsOfALog(t *testing.T) {
	m := &Model{UID: "a", KeepsLogs: true}
	m.AttemptUID, m.AttemptNo = "u", 1
	decision, _ := m.Handle(Message{Type: MessageSuccess, AttemptUID: "u", Log: "said\n", LogURL: "https://example.com/1"}, clock("06:00"))
	read, err := ParseAttempt(decision.Ended.Entry())
	if err != nil || decision.Log != "said" || read.LogBytes != 4 || read.LogURL != "https://example.com/1" {
		t.Errorf("expected its size and place, found %+v, %v", read, err)
	}
}

func TestATextIsMaskedThoughItWasCutWithinASecret(t *testing.T) {
	for given, want := range map[string]string{
		"":                                  "",
		"a plain reason":                    "a plain reason",
		"connect mysql://root:hunt…":        "connect mysql://***…",
		"connect mysql://root:hu/nt…":       "connect mysql://***…",
		"GET https://example.com/long/pat…": "GET https://example.com/long/pat…",
		"password=hun…":                     "password=***",
	} {
		if got := Masked(given); got != want || Masked(got) != want {
			t.Errorf("%q: expected %q, found %q", given, want, got)
		}
	}
	long := strings.Repeat("password=hunter2 ", 100_000) + "mysql://root:hunter2@db"
	if got := Masked(long); len(got) > maxMasked || strings.Contains(got, "hunter2") {
		t.Errorf("expected a short text without secrets, found %d bytes, %.200q", len(got), got)
	}
}
