package definitions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

func problem(m Model) string { return Document{Position: m.Position}.At(m.Err).Error() }

// read returns what a file holds: the uid of each good document, and the problem of each bad one.
func read(t *testing.T, name, text string) (told []string, definitions []model.Definition) {
	t.Helper()
	err := ReadModels(name, strings.NewReader(text), FormatAuto, func(m Model) error {
		if m.Err != nil {
			told = append(told, problem(m))
			return nil
		}
		told = append(told, m.Definition.UID)
		definitions = append(definitions, m.Definition)
		return nil
	})
	if err != nil {
		told = append(told, "error: "+err.Error())
	}
	return told, definitions
}

func TestModelsAreReadFromEveryFormat(t *testing.T) {
	for name, test := range map[string]struct {
		name, text string
		want       []string
	}{
		"YAML":                      {"m.yaml", "uid: a\n", []string{"a"}},
		"YAML with many documents":  {"m.yml", "---\nuid: a\n---\nuid: b\n---\n---\n# nothing\n", []string{"a", "b"}},
		"a list in YAML":            {"m.yaml", "- uid: a\n- {uid: b}\n", []string{"a", "b"}},
		"YAML by its look":          {"-", "uid: a\n", []string{"a"}},
		"short YAML by its look":    {"-", "{uid: a}\n", []string{"a"}},
		"JSON in a YAML file":       {"m.yaml", `{"uid": "a"}`, []string{"a"}},
		"nothing":                   {"-", "", nil},
		"a JSON object":             {"m.json", `{"uid": "a"}`, []string{"a"}},
		"JSON over lines":           {"-", "{\n  \"uid\": \"a\"\n}\n{\n\"uid\":\"b\"}", []string{"a", "b"}},
		"a list in JSON":            {"-", `[{"uid":"a"},` + "\n" + `{"uid":"b"}]`, []string{"a", "b"}},
		"an empty list":             {"-", `[]`, nil},
		"JSON lines":                {"m.jsonl", `{"uid":"a"}` + "\n\n" + `{"uid":"b"}`, []string{"a", "b"}},
		"JSON lines by their look":  {"-", `{"uid":"a"}` + "\n" + `{"uid":"b"}` + "\n", []string{"a", "b"}},
		"a mark before UTF-8":       {"-", "\xEF\xBB\xBF" + `{"uid":"a"}`, []string{"a"}},
		"windows lines":             {"m.jsonl", "{\"uid\":\"a\"}\r\n{\"uid\":\"b\"}\r\n", []string{"a", "b"}},
		"a number as a uid in YAML": {"m.yaml", "uid: 0042\n", []string{"0042"}},
		"a word as a uid in YAML":   {"m.yaml", "uid: true\n", []string{"true"}},
	} {
		got, _ := read(t, test.name, test.text)
		diff := cmp.Diff(test.want, got)
		failIf(t, diff != "", "%s: %s", name, diff)
	}
}

func TestALineTellsWhetherItsRuleIsInWordsHoweverItWritesTheName(t *testing.T) {
	for line, want := range map[string]bool{
		`{"uid":"a","policy":{"rrule":"daily at 7am"}}`:      true,
		`{"uid":"a","policy":{"rr\u0075le":"daily at 7am"}}`: true,
		`{"uid":"a","policy":{"rrule":"FREQ=DAILY"}}`:        false,
		`{"uid":"a","policy":{"timeout":"1h"}}`:              false,
		`{"uid":"a","rrule":"daily at 7am"}`:                 true,
	} {
		must(t, ReadModels("m.jsonl", strings.NewReader(line), FormatAuto, func(m Model) error {
			failIf(t, m.Err != nil || m.InWords() != want, "%s: want %t, error %v", line, want, m.Err)
			return nil
		}))
	}
}

func TestAnErrorNamesTheLineAndTheField(t *testing.T) {
	for name, test := range map[string]struct {
		name, text string
		want       []string
	}{
		"a delay in a list": {"m.yaml", "uid: a\npolicy:\n  timeout: 1h\n  retries:\n    - 1m\n    - soon\n",
			[]string{`m.yaml line 6: policy.retries[1]: expected a duration`}},
		"a short list": {"m.yaml", "uid: a\npolicy: {retries: [1m, {}]}\n",
			[]string{`m.yaml line 2: policy.retries[1]: expected a delay such as 0, "5m" or next, found an object`}},
		"an unknown field": {"m.yaml", "uid: a\n---\nuid: b\nrule: x\n",
			[]string{"a", `m.yaml line 4: rule: expected one of uid`}},
		"an unknown field of a policy": {"m.yaml", "uid: a\npolicy:\n  timeout: 1h\n  retry: []\n",
			[]string{`m.yaml line 4: policy.retry: expected one of name, rrule, timezone,`}},
		"a name with dots":     {"m.yaml", "uid: a\nx.y[1]: 5\n", []string{`m.yaml line 2: x.y[1]: expected one of uid`}},
		"no uid":               {"m.yaml", "\n\npayload: {}\n", []string{`m.yaml line 3: uid: expected`}},
		"a field twice":        {"m.yaml", "uid: a\nrrule: x\nuid: b\n", []string{`m.yaml line 1: uid: expected each field once, found it again on line 3`}},
		"a list as a payload":  {"m.yaml", "uid: a\npayload: [1]\n", []string{`m.yaml line 2: payload: expected an object, found a list`}},
		"infinity":             {"m.yaml", "uid: a\npayload: {n: .inf}\n", []string{`m.yaml line 2: payload.n: expected a number that JSON can hold, found ".inf"`}},
		"a tag":                {"m.yaml", "uid: !env a\n", []string{`m.yaml line 1: uid: expected a plain value, found one with the tag "!env"`}},
		"a list as a name":     {"m.yaml", "uid: a\npayload:\n  [1]: x\n", []string{`m.yaml line 2: payload: expected names of fields, found something else on line 3`}},
		"a text":               {"m.yaml", "uid: a\n---\nhello\n", []string{"a", `m.yaml line 3: expected a model, which has a uid`}},
		"YAML that is cut off": {"m.yaml", "uid: a\n---\nuid: \"b\n", []string{`error: m.yaml line 3: found unexpected end of stream`}},
		"no YAML":              {"m.yaml", "uid: a\n---\nuid: b\n  c: d\n", []string{`error: m.yaml line 4: mapping values are not allowed in this context`}},
		"JSON objects":         {"m.json", "{\n\"uid\":\"a\"}\n\n{\"uid\":\n7}", []string{"a", `m.json line 4: uid: expected a text, found 7`}},
		"a list in JSON":       {"m.json", "[\n{\"uid\":\"a\"},\n\n {\n\"uid\":\"b\",\"x\":1},\n5]", []string{"a", `m.json line 4: x: expected one of uid`, "m.json line 6: expected a model, which has a uid"}},
		"JSON that is cut off": {"m.json", "[\n{\"uid\":\"a\"},\n{\"uid\":", []string{`error: m.json line 3: expected JSON: unexpected EOF`}},
		"no JSON":              {"m.json", "{\"uid\":\"a\"}\n{\"uid\":\n\n}", []string{`error: m.json line 4: expected JSON: invalid character '}'`}},
		"JSON lines":           {"m.jsonl", "{\"uid\":\"a\"}\n{\"uid\":}\n{\"uid\":\"c\"} 5\n[]\n{\"uid\":\"e\"}\n", []string{"a", `m.jsonl line 2: expected a JSON object: invalid character '}'`, "m.jsonl line 3: expected one object, found more behind it", "m.jsonl line 4: expected a model", "e"}},
		"a number in JSON":     {"m.json", `{"uid":"a","payload":{"n":12345678901234567890}}`, []string{"a"}},
		"a policy by a bad name": {"m.yaml", "uid: a\npolicy: my policy\n",
			[]string{`m.yaml line 2: policy: expected a policy, or the name of a stored one, found "my policy"`}},
	} {
		got, _ := read(t, test.name, test.text)
		failIf(t, !slices.EqualFunc(got, test.want, strings.HasPrefix), "%s: expected %q, found %q", name, test.want, got)
	}
}

func TestYAMLReachesTheModelAsItWasWritten(t *testing.T) {
	_, definitions := read(t, "m.yaml", `
uid: 2026-01-01
rrule: FREQ=DAILY
timezone: UTC
dtstart: 2026-01-01T00:00:00
policy: {timeout: 90s, retries: [0, 1m], on_exhausted: give_up}
payload:
  text: "7"
  int: 7
  big: 12345678901234567890123
  float: 1.50
  bool: true
  none: ~
  day: 2026-01-01
  list: [1, {a: yes}]
`)
	stopIf(t, len(definitions) != 1, "expected one definition")
	d := definitions[0]
	const payload = `{"big":12345678901234567890123,"bool":true,"day":"2026-01-01","float":1.50,"int":7,` +
		`"list":[1,{"a":"yes"}],"none":null,"text":"7"}`
	failIf(t, d.UID != "2026-01-01" || d.Dtstart != "2026-01-01T00:00:00" || d.Payload != payload, "found %+v", d)
	const policy = `{"timeout":"1m30s","retries":["0s","1m"],"alignment":"align_planned","on_exhausted":"give_up"}`
	text, err := d.Inline.MarshalJSON()
	failIf(t, err != nil || string(text) != policy, "found policy %s, %v", text, err)
	for _, name := range []string{"m.json", "m.jsonl"} { // numbers keep their digits there too
		_, definitions := read(t, name, `{"uid":"a","payload":{"big":12345678901234567890,"exact":1.10}}`)
		got := definitions[0].Payload
		failIf(t, got != `{"big":12345678901234567890,"exact":1.10}`, "found %s", got)
	}
}

func TestAnchorsAndMergeKeysSaveWriting(t *testing.T) {
	got, definitions := read(t, "m.yaml", `
- &base
  uid: a
  payload: &payload {x: 1, y: 2}
  policy: &policy
    timeout: 1h
    retries: [1m]
- <<: *base
  uid: b
  payload: {<<: *payload, y: 3}
- <<: [{uid: c}, *base]
- <<: *base
  uid: d
  policy: {<<: *policy, retries: [soon]}
`)
	want := []string{"a", "b", "c", `m.yaml line 14: policy.retries[0]: expected a duration`}
	stopIf(t, !slices.EqualFunc(got, want, strings.HasPrefix), "expected %q, found %q", want, got)
	failIf(t, definitions[1].Payload != `{"x":1,"y":3}` || definitions[1].PolicyName != definitions[0].PolicyName,
		"expected the override and the merged policy, found %+v", definitions[1])
}

const manyValues = "expected at most 100000 values and 10 for each byte of the file, 100 deep, with aliases written out, found more"

func TestAliasesCannotMakeMuchOfLittle(t *testing.T) {
	bomb := "uid: a\npayload:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 11 {
		bomb += fmt.Sprintf("  a%d: &a%[1]d [%s*a%d]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, text := range map[string]string{
		"a bomb":                  bomb,
		"an alias of itself":      "uid: a\npayload: &p\n  x: *p\n",
		"a merge of itself":       "uid: a\npayload: &p\n  <<: *p\n  x: 1\n",
		"a list that merges both": "uid: a\npayload: &p\n  <<: [*p, *p, *p]\n",
		"deep nesting":            "uid: a\npayload: {x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}\n",
	} {
		got, _ := read(t, "m.yaml", text)
		failIf(t, len(got) != 1 || !strings.Contains(got[0], manyValues) && !strings.Contains(got[0], "expected merge keys that end"),
			"%s: expected a refusal, found %q", name, got)
	}
}

func TestManyDocumentsCannotShareALargeAnchor(t *testing.T) {
	large := "- uid: a\n  payload: {x: &x [" + strings.Repeat("1,", 20_000) + "1]}\n"
	small := "- {uid: b, payload: {y: *x}}\n"
	got, _ := read(t, "m.yaml", large+strings.Repeat(small, 1000))
	failIf(t, len(got) != 1001 || got[20] != "b" || got[100] == "b" || !strings.Contains(got[1000], manyValues),
		"expected the last documents refused, found %d: %.200q", len(got), got)
}

func TestLongNamesDoNotFillTheMemory(t *testing.T) {
	long := strings.Repeat("n", 10_000)
	text := "uid: a\npayload:\n  ? " + long + "\n  : ? " + long + "\n    : [[" + strings.Repeat("{x: 1},", 20_000) + "]]\n  v: .inf\n" +
		"---\nuid: b\npayload:\n  ? " + long + "\n  : 7\n"
	told, definitions := read(t, "m.yaml", text)
	stopIf(t, len(told) != 2 || !strings.HasPrefix(told[0], "m.yaml line 6: payload.v: expected") || told[1] != "b", "found %.200q", told)
	definition := definitions[0]
	failIf(t, definition.Payload != `{"`+long+`":7}`, "expected the number kept, found %.50q", definition.Payload)
	path := below(below("payload", "."+long), "[0]")
	failIf(t, path != "payload[0]", "expected the long name left out, found %.50q", path)
}

func FuzzReadModels(f *testing.F) {
	f.Add("m.yaml", "uid: a\n---\n<<: &x [*x]\n")
	f.Add("-", `[{"uid":"a"},{"uid":"b"}]`)
	f.Add("m.jsonl", "{\"uid\":\"a\"}\n{}")
	f.Fuzz(func(_ *testing.T, name, text string) {
		_ = ReadModels(name, strings.NewReader(text), FormatAuto, func(m Model) error {
			if m.Err != nil {
				_ = problem(m)
			}
			return nil
		})
	})
}
