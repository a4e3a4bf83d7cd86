package model

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// FuzzValidateUID checks that an accepted uid means itself wherever it stands: alone in a line, in JSON of both directions, in a log
// line of fields, as a word of a command line, and behind the colon of a key.
func FuzzValidateUID(f *testing.F) {
	for _, uid := range []string{
		"t", "tbl_1", "a.b:c@d/e+f=g~h-i", strings.Repeat("x", 200), strings.Repeat("x", 201), "", "-o", "--force", "a b", "a\n", "a\r\nLPUSH", "{a}", "a}", "ä", "é",
		"a*", "a?", "[a]", `a\`, `a"b`, "a'b", "$HOME", "`id`", "a;b", "a|b", "a&b", "<b>", "a\x00", "\x1b[31m", "\u2028", "\u202e", "\xff", "a%2Fb", "../x", "a/../b", "inline-1", "1e9",
	} {
		f.Add(uid)
	}
	f.Fuzz(func(t *testing.T, uid string) {
		err := document.ValidateUID(uid)
		if err != nil {
			if refusedField(err) != "uid" || strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 400 {
				t.Fatalf("%q is refused with %v", uid, err)
			}
			return
		}
		if strings.ContainsFunc(uid, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`\\$&|;<>(){}[]*?!#%^,", r) }) || uid[0] == '-' {
			t.Fatalf("%q is more than a word", uid)
		}
		if quoted := document.Quote(uid); quoted != `"`+uid+`"` || fmt.Sprintf("%q", uid) != quoted {
			t.Fatalf("%q is escaped in JSON: %s", uid, quoted)
		}
		checkWire(t, uid)
	})
}

// checkWire sends a uid the whole way: as a command, to a worker, and back from him.
func checkWire(t *testing.T, uid string) {
	t.Helper()
	for _, kind := range []CommandType{CommandPut, CommandRun, CommandEnable, CommandDisable, CommandRemove} {
		command, err := DecodeCommand([]byte(`{"type":"` + string(kind) + `","uid":"` + uid + `"}`))
		if err != nil || command.UID != uid {
			t.Fatalf("%s of %q is understood as %+v, %v", kind, uid, command, err)
		}
	}
	m := Model{UID: uid, Policy: policy.Default(), Payload: "{}"}
	raw := m.Start(monday, uid).Message
	if entry, err := ParseEntry(raw); err != nil || entry.UID != uid || entry.AttemptUID != uid {
		t.Fatalf("a worker reads %q as %+v, %v", raw, entry, err)
	}
	message, err := DecodeMessage([]byte(`{"type":"success","big_table_uid":"` + uid + `","refresh_attempt_uid":"` + uid + `"}`))
	if err != nil || message.UID != uid || message.AttemptUID != uid {
		t.Fatalf("the message of %q is understood as %+v, %v", uid, message, err)
	}
}
