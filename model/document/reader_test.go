package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAFieldOfAnObjectIsReadAtTheEdgesOfItsKind(t *testing.T) {
	fields := map[string]any{
		"yes": true, "no": false, "null": nil, "at": "2026-01-02T03:04:05.6789+01:00", "empty": "", "day": "2026-01-02",
		"two": json.Number("2"), "2s": "2s", "mixed": []any{"a", 1, "b"},
	}
	at := func(doc *Reader) func(string) any {
		return func(name string) any { return doc.Time(name).Format(time.RFC3339Nano) }
	}
	flag := func(doc *Reader) func(string) any {
		return func(name string) any {
			if set := doc.Flag(name); set != nil {
				return *set
			}
			return "absent"
		}
	}
	within := func(low, high time.Duration) func(*Reader) func(string) any {
		return func(doc *Reader) func(string) any {
			return func(name string) any { return doc.LengthWithin(name, low, high) }
		}
	}
	number := func(low, high float64) func(*Reader) func(string) any {
		return func(doc *Reader) func(string) any {
			return func(name string) any {
				n, found := doc.Number(name, low, high)
				return fmt.Sprint(n, found)
			}
		}
	}
	length := func(doc *Reader) func(string) any {
		return func(name string) any { return doc.Length(name, time.Minute) }
	}
	for _, test := range []struct {
		read func(*Reader) func(string) any
		name string
		want string // begins with ! if it is refused
	}{
		{at, "at", "2026-01-02T02:04:05.678Z"},
		{at, "empty", "0001-01-01T00:00:00Z"},
		{at, "null", "0001-01-01T00:00:00Z"},
		{at, "day", "!day: expected an RFC 3339 time, "},
		{flag, "yes", "true"},
		{flag, "no", "false"},
		{flag, "null", "absent"},
		{flag, "none", "absent"},
		{flag, "at", "!at: expected true or false, "},
		{length, "none", "1m0s"},
		{length, "null", "0s"},
		{length, "2s", "2s"},
		{length, "at", "!at: expected a duration"},
		{within(2*time.Second, 3*time.Second), "2s", "2s"},
		{within(time.Second, 2*time.Second), "2s", "2s"},
		{within(2001*time.Millisecond, time.Minute), "2s", "!2s: expected a duration from 2s1ms to 1m, "},
		{within(0, 1999*time.Millisecond), "2s", "!2s: expected a duration from 0s to 1s999ms, "},
		{within(time.Second, time.Minute), "null", "0s"},
		{within(time.Second, time.Minute), "none", "0s"},
		{number(2, 3), "two", "2 true"},
		{number(1, 2), "two", "2 true"},
		{number(2.5, 3), "two", "!two: expected a number from 2.5 to 3, "},
		{number(1, 1.5), "two", "!two: expected a number from 1 to 1.5, "},
		{number(1, 2), "null", "0 false"},
		{number(1, 2), "at", "!at: expected a number from 1 to 2, "},
	} {
		doc := Read(fields, "yes", "no", "null", "none", "at", "empty", "day", "two", "2s", "mixed")
		got := fmt.Sprint(test.read(doc)(test.name))
		if doc.Err() != nil {
			got = "!" + doc.Err().Error()
		}
		failIf(t, got != test.want && (test.want[0] != '!' || !strings.HasPrefix(got, test.want)), "%s: got %s, want %s", test.name, got, test.want)
	}
	doc := Reader{Fields: fields}
	doc.Words("mixed")
	failIf(t, doc.Err() == nil || doc.Err().Error() != "mixed[1]: expected a text, found 1", "got %v", doc.Err())
}

func TestOfSeveralUnknownFieldsTheFirstByTheAlphabetIsRefused(t *testing.T) {
	doc := Read(map[string]any{"b": 1, "known": 1, "c": 1}, "known", "other")
	const want = "b: expected one of known, other, found an unknown field"
	failIf(t, doc.Err() == nil || doc.Err().Error() != want || doc.Fields != nil, "got %v", doc.Err())
	doc = Read(map[string]any{"known": 1}, "known", "other")
	failIf(t, doc.Err() != nil || doc.Fields == nil, "got %v", doc.Err())
}

func TestARefusalIsRenamedWithTheFieldsBelowIt(t *testing.T) {
	plain := fmt.Errorf("no refusal")
	for _, test := range []struct {
		err  error
		want string
	}{
		{Refuse("retries[2]", "a delay", "x"), "delays[2]: expected a delay, found x"},
		{Refuse("retries", "a list", "x"), "delays: expected a list, found x"},
		{Refuse("timeout", "a delay", "x"), "timeout: expected a delay, found x"},
		{plain, "no refusal"},
	} {
		got := Rename(test.err, "retries", "delays")
		failIf(t, got.Error() != test.want, "got %v, want %s", got, test.want)
	}
	failIf(t, Rename(nil, "a", "b") != nil, "no error became one")
}

func TestATextIsQuotedAsJSON(t *testing.T) {
	for _, text := range []string{"", "plain ~", `a"b`, `a\b`, "a<b", "a>b", "a&b", "tab\t", "\x1f", "\x7f", "é", "\u2028"} {
		want, _ := json.Marshal(text)
		failIf(t, Quote(text) != string(want), "%q: got %s, want %s", text, Quote(text), want)
	}
}

func TestAUIDIsOfOneTo200LettersDigitsAndSigns(t *testing.T) {
	good := []string{"a", "0", "Z_.:@/+=~-", strings.Repeat("x", 200)}
	for _, uid := range slices.Concat(good, []string{"", "-a", ".a", "a b", "a\n", "é", "a#", strings.Repeat("x", 201)}) {
		is := slices.Contains(good, uid)
		err := ValidateUID(uid)
		failIf(t, IsUID(uid) != is || err == nil != is, "%q: %t, %v", uid, IsUID(uid), err)
		failIf(t, err != nil && !strings.HasPrefix(err.Error(), "uid: expected 1-200 letters, "), "%q: %v", uid, err)
	}
	err := ValidateID("id", "")
	failIf(t, err == nil || !strings.HasPrefix(err.Error(), "id: expected "), "got %v", err)
}
