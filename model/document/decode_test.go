package document

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// values are valid and invalid JSON.
var values = []string{
	`{}`, `[]`, `""`, `0`, `null`, ` true `, "\t{ \"a\" :\r\n[ 1 , -2.50e+3,{}, [ ] ,false,null ] , \"\": \"\" } ", `{"a":1,"a":{"b":2}}`,
	`{"a":{"b":1},"a":null}`, `"\u00e9\ud83d\ude00\ud800\\\"\/\n"`, `{"\u0061":"x","a\\":"\\"}`, `"é😀 "`, `123456789012345678901234567890.0001`,
	`{"a":{"b":"}\"{","c":[{"d":"\\"}]},"e":1}`, `{"a": {"b":1} ,"a":{"b":[ 2 ]}}`, `{"b":{"a":{"c":1}}}`,
	``, ` `, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `01`, `1 2`, `{} {}`, `nul`, `"`, `"\x"`, `"\ud8"`, "\"\n\"", "\"\xff\"", `'a'`, `NaN`, "{\"a\":1}\x00",
	strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
}

// decodesAlike compares Decode with encoding/json, which reads the raw values too.
func decodesAlike(t *testing.T, text []byte) {
	t.Helper()
	var want any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	is := decoder.Decode(&want) == nil && json.Valid(text)
	for _, raw := range [][]string{nil, {"a"}} {
		got, valid := Decode(text, raw...)
		if fields, _ := got.(map[string]any); fields != nil {
			if written, kept := fields["a"].(json.RawMessage); kept {
				fields["a"], _ = Decode(written)
			}
		}
		differs := !is || !reflect.DeepEqual(got, want)
		if valid && differs || !valid && is && utf8.Valid(text) {
			t.Errorf("%.80q, %v as written:\n got %v, %v\nwant %v, %v", text, raw, got, valid, want, is)
		}
		if plain, _ := Decode(text, raw...); !reflect.DeepEqual(plain, strictly(text, raw)) {
			t.Errorf("%.80q, %v as written: DecodeOnce decodes %v, want %v", text, raw, strictly(text, raw), plain)
		}
	}
}

func strictly(text []byte, raw []string) any {
	value, _, _ := DecodeOnce(text, raw...)
	return value
}

func TestAFieldThatStandsTwiceIsFoundWhereverItIs(t *testing.T) {
	for text, want := range map[string]Twice{
		`{"a":1,"b":[{"a":1}],"c":{"a":1}}`:       {},
		`{"a":1,"a":2,"b":1,"b":1}`:               {"a", 7},
		`{"x":[[],[0,{"a":1,"\u0061":2}]],"x":1}`: {"x[1][1].a", 19},
		`{"p":{"a":{"b":1,"b":2}}}`:               {"p.a.b", 17}, // stays as it is written
		`[{"a":{}},{"a":{},"a":{"b":1,"b":1}}]`:   {"[1].a.b", 29},
	} {
		var got Twice
		if _, twice, _ := DecodeOnce([]byte(text), "p"); twice != nil {
			got = *twice
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestAValueIsDecodedAsByEncodingJSON(t *testing.T) {
	for _, text := range values {
		decodesAlike(t, []byte(text))
	}
}

func TestAFieldStaysAsItIsWrittenOnlyIfItIsAnObject(t *testing.T) {
	got, _ := Decode([]byte(`{"p": {"b" : 1 } ,"q":{"p":{}},"r":[{}]}`), "p", "r")
	want := map[string]any{"p": json.RawMessage(`{"b" : 1 }`), "q": map[string]any{"p": map[string]any{}}, "r": []any{map[string]any{}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %v", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range values {
		f.Add([]byte(text))
	}
	f.Fuzz(decodesAlike)
}
