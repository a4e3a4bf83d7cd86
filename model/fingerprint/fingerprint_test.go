package fingerprint

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/refreshd/refreshd/model/document"
)

func TestAFingerprintIsWhatFailuresOfOneKindHaveInCommon(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ uid, errorType, reason, want string }{
		{"t1", "E11000", "duplicate key", "E#: duplicate key"}, {"t1", "", `it said "so`, `it said "so`},
		{"t1", "http_503", "GET https://feeds.example.com/a?b=1: 503 Service Unavailable", "http_503: GET <url>: 503 Service Unavailable"},
		{"t1", "http", "GET https://feeds.example.com/a.: 503 Service Unavailable", "http: GET <url>.: # Service Unavailable"},
		{"t1", "", "HTTP/1.1 404 Not Found", "HTTP/# 404 Not Found"},
		{"t1", "", "exit code 137 after 137 s, status: 5", "exit code 137 after # s, status: 5"},
		{"t1", "", "status code 12345", "status code #"}, {"t1", "timeout", "timeout", "timeout"}, {"t1", "", "", "no reason given"},
		{"t1", "http", "503", "http: 503"},
		{"t1", "network", "", "network"},
		{"t1", "KeyError", "'x'", "KeyError: <value>"}, {"t1", "KeyError", "KeyError: 'x'", "KeyError: <value>"}, {"t1", "Error", "Error: 404", "Error: 404"},
		{"tbl_7", "", "cannot load tbl_7: tbl_7x and tbl_8 stay, (tbl_7)", "cannot load <uid>: tbl_#x and tbl_# stay, (<uid>)"},
		{"https://a/b", "", "no https://a/b: https://a/b/c", "no <uid>: <url>"},
		{"a", "", "a row of a table, abc", "<uid> row of <uid> table, abc"},
		{"t1", "", "row 17 of 200: 1,234.5 at 06:00:00", "row # of #: # at #"},
		{"t1", "", "request 4b5d0d0c-0f0e-4c8b-9c53-0c7a7f5d2e11 failed", "request <uuid> failed"},
		{"t1", "", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, deadbeef, 0xFF", "commit <hex>, deadbeef, <hex>"},
		{"t1", "", "request req_8fK2jd93Lq", "request req_<id>"},
		{"t1", "", "dial tcp 10.0.0.7:443, [fe80::1]:443, ::1: connection refused", "dial tcp <ip>, [<ip>]:#, <ip>: connection refused"},
		{"t1", "", "std::bad_alloc in Foo::b2", "std::bad_alloc in Foo::b#"},
		{"t1", "", `can't read column "price" of 'Table 1' and ` + "`x`", "can't read column <value> of <value> and <value>"},
		{"t1", "", "  one\n\ttwo\x00 three  ", "one two three"},
		{"t1", "", "größer als 17 €", "größer als # €"},
		{"t1", "", strings.Repeat("ab ", 100), strings.Repeat("ab ", 39) + "…"},
	} {
		if got := Of(test.uid, test.errorType, test.reason); string(got) != test.want {
			t.Errorf("%s, %q: expected %q, found %q", test.errorType, test.reason, test.want, got)
		}
	}
}

func TestTheIDOfASignatureIsShortAndItsOwn(t *testing.T) {
	t.Parallel()
	a, b := Text("http_503: GET <url>").ID(), Text("http_404: GET <url>").ID()
	if a == b || a != "ae0d2b71080f" {
		t.Errorf("expected ae0d2b71080f and another one, found %s and %s", a, b)
	}
	for id, valid := range map[string]bool{a: true, Other: true, "": false, "others": false, a + "0": false, strings.ToUpper(a): false} {
		if err := ValidateID(id); (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

var anyDigit = regexp.MustCompile(`[0-9]`)

// namesCode finds numbers that stay.
var namesCode = regexp.MustCompile(`(?i)http|status|code`)

func FuzzFingerprint(f *testing.F) {
	for _, seed := range [][3]string{
		{"tbl_1", "http_503", "GET https://x/1: 503"}, {"a", "", "a 'b' \"c\" 1.2.3.4:5 ::1 0x1f"}, {"x:y", "\x80", "\u202e\x1b[31m 12:12"},
		{"f7", "e", "deadbeef1 0123456789abcdef f7"}, {"1", "", "1 11 1.1 1::1 't 1'"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, uid, errorType, reason string) {
		got := Of(uid, errorType, reason)
		if got != Of(uid, errorType, reason) || got == "" || len(got) > Max || !utf8.ValidString(string(got)) {
			t.Fatalf("found %q", got)
		}
		if strings.ContainsFunc(string(got), unicode.IsControl) || strings.Contains(string(got), "  ") {
			t.Fatalf("expected one line without control characters, found %q", got)
		}
		if ValidateID(got.ID()) != nil {
			t.Fatalf("found the id %q", got.ID())
		}
		// Other digits make no difference, but in what names a code.
		if !anyDigit.MatchString(uid+errorType) && strings.TrimSpace(anyDigit.ReplaceAllString(document.OneLine(reason), "")) != "" && !namesCode.MatchString(reason) {
			others := anyDigit.ReplaceAllStringFunc(reason, func(digit string) string { return string('1' + (digit[0]-'0'+3)%9) })
			if other := Of(uid, errorType, others); !strings.Contains(strings.ToLower(reason), "0x") && other != got {
				t.Fatalf("%q is %q, but with other digits %q", reason, got, other)
			}
		}
		// Neither does the uid.
		if document.IsUID(uid) && uid != "load" && uid != "kaputt" {
			const want = "load <uid>: kaputt (<uid>)"
			if other := Of(uid, "", "load "+uid+": kaputt ("+uid+")"); other != want {
				t.Fatalf("of %q expected %q, found %q", uid, want, other)
			}
		}
	})
}
