package definitions

import (
	"cmp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// TestWhatIsWrittenInAPayloadOfYAMLIsKeptOrRefused reads each scalar as the value n of a payload; an empty payload: it is refused.
func TestWhatIsWrittenInAPayloadOfYAMLIsKeptOrRefused(t *testing.T) {
	const refused = `m.yaml line 3: payload.n: expected `
	for _, test := range []struct{ written, payload, problem string }{
		{written: `01234`, payload: `"01234"`}, // a code: of a place, of a country, of a file
		{written: `08901`, payload: `"08901"`},
		{written: `00`, payload: `"00"`},
		{written: `-01`, payload: `"-01"`},
		{written: `+0049123`, payload: `"+0049123"`},
		{written: `007.50`, payload: `"007.50"`},
		{written: `0b11`, payload: `"0b11"`}, // YAML 1.2 knows neither
		{written: `-0x1F`, payload: `"-0x1F"`},
		{written: `0X1F`, payload: `"0X1F"`},
		{written: `1_000`, payload: `"1_000"`},
		{written: `0x_1F`, payload: `"0x_1F"`},
		{written: `1_0.5`, payload: `"1_0.5"`},
		{written: `190:20:30`, payload: `"190:20:30"`},
		{written: `yes`, payload: `"yes"`},
		{written: `No`, payload: `"No"`},
		{written: `on`, payload: `"on"`},
		{written: `off`, payload: `"off"`},
		{written: `y`, payload: `"y"`},
		{written: `tRUE`, payload: `"tRUE"`},
		{written: `2026-01-01`, payload: `"2026-01-01"`},
		{written: `"0x1F"`, payload: `"0x1F"`},
		{written: `'1e3'`, payload: `"1e3"`},
		{written: `!!str 7`, payload: `"7"`},
		{written: `True`, payload: `true`},
		{written: `~`, payload: `null`},
		{written: `-0`, payload: `-0`}, // JSON holds these as they are written
		{written: `1e3`, payload: `1e3`},
		{written: `1.50`, payload: `1.50`},
		{written: `12345678901234567890`, payload: `12345678901234567890`},
		{written: `0x1F`, problem: `a number as JSON has it, found "0x1F": quote it for a text, or write 31`},
		{written: `0o17`, problem: `a number as JSON has it, found "0o17": quote it for a text, or write 15`},
		{written: `+5`, problem: `a number as JSON has it, found "+5": quote it for a text, or write 5`},
		{written: `.5`, problem: `a number as JSON has it, found ".5": quote it for a text, or write 0.5`},
		{written: `1.`, problem: `a number as JSON has it, found "1.": quote it for a text, or write 1`},
		{written: `+491701234567890123`, problem: `a number as JSON has it, found "+491701234567890123": quote it for a text`},
		{written: `.inf`, problem: `a number that JSON can hold, found ".inf": quote it for a text`},
		{written: `-.INF`, problem: `a number that JSON can hold, found "-.INF": quote it for a text`},
		{written: `.nan`, problem: `a number that JSON can hold, found ".nan": quote it for a text`},
		{written: `!!int "0x1F"`, problem: `a number as JSON has it, found "0x1F": quote it for a text, or write 31`},
		{written: `!!int "12a"`, problem: `a number, found "12a": quote it for a text`},
		{written: `!!bool yes`, problem: `true or false, found "yes": quote it for a text`},
	} {
		told, definitions := read(t, "m.yaml", "uid: a\npayload:\n  n: "+test.written+"\n")
		got, want := told[0], cmp.Or(test.problem, "a")
		if len(definitions) > 0 {
			got, want = definitions[0].Payload, `{"n":`+test.payload+`}`
		}
		if got = strings.TrimPrefix(got, refused); got != want {
			t.Errorf("%s: got %s, want %s", test.written, got, want)
		}
	}
}

func TestANameOrALabelOfYAMLIsTheTextThatWasWritten(t *testing.T) {
	for _, written := range []string{"01234", "1_000", "0x1F", "+5", ".5", "1.", ".inf", "1e3", "yes", "True", "190:20:30", "2026-01-01"} {
		told, definitions := read(t, "m.yaml", "uid: a\nlabels: {at: "+written+"}\npayload:\n  "+written+": x\n")
		stopIf(t, len(definitions) != 1, "%s: %q", written, told)
		check.Equal(t, `{"`+written+`":"x"}`, definitions[0].Payload)
		check.Equal(t, written, definitions[0].Labels["at"])
	}
}

// TestWhatWasStoredIsWrittenSoThatItIsReadBack holds what is in Redis against the reader of the files that show it.
func TestWhatWasStoredIsWrittenSoThatItIsReadBack(t *testing.T) {
	const payload = `{"a":"01234","b":"1_000","c":"0x1F","d":"+5","e":".5","f":".inf","g":1e3,"h":"yes","i":"True","j":"190:20:30","k":-0,"l":1E400,"m":"~"}`
	_, definitions := read(t, "m.json", `{"uid":"a","payload":`+strings.Replace(payload, `"l":1E400,`, "", 1)+`}`)
	stopIf(t, len(definitions) != 1, "expected one definition")
	var written strings.Builder
	must(t, writeYAML(&written, []byte(`{"uid":"a","payload":`+definitions[0].Payload+`}`), 2))
	_, again := read(t, "m.yaml", written.String())
	stopIf(t, len(again) != 1, "not read back: %s", written.String())
	check.Equal(t, definitions[0].Payload, again[0].Payload)
}

func TestAFieldOfJSONStandsOnce(t *testing.T) {
	const twice = ": expected each field once, found it again on line "
	for _, test := range []struct{ name, text, want string }{
		{"m.json", "{\"uid\":\"a\",\n\"payload\":{\"n\":1,\n\"n\":2}}", "m.json line 1: payload.n" + twice + "3"},
		{"m.json", "[\n\n{\"uid\":\"b\",\n\"payload\":{\"l\":[0,{\"n\":1, \"m\":1,\"\\u006e\":1}]}}]", "m.json line 3: payload.l[1].n" + twice + "4"},
		{"m.json", "{\"uid\":\"a\",\n\"uid\":\"a\"}", "m.json line 1: uid" + twice + "2"},
		{"m.json", `{"uid":"a","labels":{"x":"1","x":"1"}}`, "m.json line 1: labels.x" + twice + "1"},
		{"m.json", `{"uid":"a","payload":{"":1,"":1}}`, "m.json line 1: payload" + twice + "1"},
		{"m.jsonl", "\n{\"uid\":\"a\",\"payload\":{\"n\":1,\"n\":1}}", "m.jsonl line 2: payload.n" + twice + "2"},
		{"m.jsonl", `{"uid":"a","policy":{"timeout":"1h","timeout":"2h"}}`, "m.jsonl line 1: policy.timeout" + twice + "1"},
		{"m.yaml", "{\"uid\":\"a\",\n\"payload\":{\"n\":1,\n\"n\":2}}", "m.yaml line 2: payload.n" + twice + "3"},
	} {
		told, _ := read(t, test.name, test.text)
		check.Equal(t, test.want, strings.Join(told, "\n"))
	}
	_, err := ReadPolicies("p.json", strings.NewReader("{\"name\":\"p\",\n\"retries\":[1],\n\"retries\":[2]}"))
	if got, want := err.Error(), "p.json line 1: retries"+twice+"3"; got != want {
		t.Errorf("a policy: got %s, want %s", got, want)
	}
	_, err = ReadPolicies("p.json", strings.NewReader(`{"retries":[{"delay":"1m","delay":"2m"}]}`))
	if got, want := err.Error(), "p.json line 1: retries[0].delay"+twice+"1"; got != want {
		t.Errorf("a delay: got %s, want %s", got, want)
	}
}
