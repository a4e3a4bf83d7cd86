package definitions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// anHour is the policy that completes others in these tests.
func anHour() policy.Policy {
	p := policy.Default()
	p.Timeout = time.Hour
	return p
}

func sourcesOf(t *testing.T, text string, stored bool, usual func() (policy.Policy, error)) ([]Source, error) {
	t.Helper()
	docs := check.Got(ReadPolicies("p.yaml", strings.NewReader(text)))(t)
	for i := range docs {
		docs[i].Stored = stored
	}
	sources, err := Drafts(docs, "from")
	if err != nil {
		return nil, err
	}
	return sources, Complete(sources, usual)
}

func TestAPolicyIsCompletedByTheDefaultBesideItOrTheUsualOne(t *testing.T) {
	usual := func() (policy.Policy, error) { return anHour(), nil }
	none := func() (policy.Policy, error) { return policy.Policy{}, errors.New("not read") }
	for name, row := range map[string]struct {
		text   string
		stored bool
		usual  func() (policy.Policy, error)
		want   string // name, timeout and retries of each, or an error
	}{
		"by the usual one":            {`[{"name":"a","retries":["1m"]}]`, false, usual, "a 1h0m0s 1"},
		"by the default beside it":    {`[{"name":"a","retries":["1m"]},{"name":"default","timeout":"2h"}]`, false, none, "a 2h0m0s 1, default 2h0m0s 3"},
		"the default by the built-in": {`[{"name":"default","retries":["1m"]}]`, false, none, "default 10m0s 1"},
		"nobody could":                {`[{"name":"a","retries":["1m"]}]`, false, none, "not read"},
		"a stored one by nothing":     {`[{"timeout":"3h"}]`, true, none, "from 3h0m0s 0"},
		"wrong":                       {`[{"name":"a","timeout":"x"}]`, false, usual, "p.yaml line 1: timeout"},
		"wrong in the end":            {`[{"name":"a","fresh_within":"1h","warn_within":"2h"}]`, false, usual, "warn_within"},
		"a wrong default":             {`[{"name":"default","fresh_within":"1h","warn_within":"2h"}]`, false, usual, "warn_within"},
	} {
		sources, err := sourcesOf(t, row.text, row.stored, row.usual)
		var all []string
		for _, s := range sources {
			all = append(all, fmt.Sprint(s.Policy.Name, " ", s.Policy.Timeout, " ", s.Policy.MaxRetries()))
		}
		if got := strings.Join(all, ", "); err == nil && got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
		if err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %s", name, err, row.want)
		}
	}
}

func TestFieldsOfTheDefaultAreListedWhereItSaysSomething(t *testing.T) {
	p := anHour()
	p.FreshWithin = time.Hour
	usual := func() (policy.Policy, error) { return p, nil }
	for text, row := range map[string]struct {
		stored bool
		want   bool // fresh_within is listed, and on_exhausted, which it says too
	}{
		`{"name":"a","timeout":"1m"}`:                     {false, true},
		`{"name":"a","timeout":"1m","fresh_within":"1d"}`: {false, false},
		`{"name":"default","timeout":"1m"}`:               {false, false},
		`{"timeout":"1m","retries":["1m"],"jitter":0.1}`:  {true, false},
	} {
		sources, err := sourcesOf(t, text, row.stored, usual)
		check.Must(t, err)
		taken := strings.Join(sources[0].Taken(), " ")
		if got := strings.Contains(taken, "fresh_within"); got != row.want || strings.Contains(taken, "timeout") || strings.Contains(taken, "circuit") {
			t.Errorf("%s: got %s, want fresh_within: %t, and nothing that nobody says", text, taken, row.want)
		}
	}
}

func TestAPolicyInWordsIsShownAsItWasRead(t *testing.T) {
	usual := func() (policy.Policy, error) { return anHour(), nil }
	for text, want := range map[string]string{
		`{"name":"a","timeout":"1m"}`:                                                 "-",
		`{"name":"a","timeout":"1m","rrule":"0 6 * * *"}`:                             "Every day at 06:00",
		`{"name":"a","timeout":"1m","rrule":"every day at 6"}`:                        "Every day at 06:00",
		`{"expr":"- Refresh the model every 2 hours\n- Allow 1 hour for a response"}`: "Refresh the model every 2 hours. ",
	} {
		sources, err := sourcesOf(t, text, false, usual)
		check.Must(t, err)
		got := "-"
		if read := sources[0].ReadAs(time.UnixMilli(0)); read != nil {
			got = read.Sentence
		}
		if !strings.HasPrefix(strings.ToLower(got), strings.ToLower(want)) || strings.Contains(got, "\n") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsSimulatedIsAModelOrAPolicy(t *testing.T) {
	find := func(name string) (policy.Policy, error) {
		if name != "feeds" {
			return policy.Policy{}, errors.New("no policy of that name")
		}
		p := anHour()
		p.Name, p.Timeout = name, 2*time.Hour
		return p, nil
	}
	for text, row := range map[string]struct {
		stored bool
		want   string // name, uid, model, timeout; or an error
	}{
		`{"timeout":"5m"}`:                         {false, "from simulated false 5m0s"},
		`{"name":"a","retries":["1m"]}`:            {false, "a simulated false 1h0m0s"},
		`{"timeout":"3h"} `:                        {true, "from simulated false 3h0m0s"},
		`{"uid":"m1"}`:                             {false, "m1 m1 true 1h0m0s"},
		`{"payload":{}}`:                           {false, "from simulated true 1h0m0s"},
		`{"uid":"m1","policy":"feeds"}`:            {false, "m1 m1 true 2h0m0s"},
		`{"uid":"m1","policy":{"timeout":"7m"}}`:   {false, "m1 m1 true 7m0s"},
		`{"uid":"m1","policy":"others"}`:           {false, "no policy of that name"},
		`{"uid":"m1","rrule":"?"}`:                 {false, "rrule"},
		`{"timeout":"x"}`:                          {false, "timeout"},
		`{"fresh_within":"1h","warn_within":"2h"}`: {false, "warn_within"},
		`{"uid":"m1","policy":{"retries":["1m"]}}`: {false, "m1 m1 true 1h0m0s"},
		`{"name":"b","timeout":"5m","uid":"m1"}`:   {false, "name"},
	} {
		doc := check.Got(ReadOne("p.json", strings.NewReader(text)))(t)
		doc.Stored = row.stored
		s, err := ReadSubject(doc, "from", anHour, find)
		got := fmt.Sprint(s.Name, " ", s.Definition.UID, " ", s.Model, " ", s.Policy.Timeout)
		if err == nil && got != row.want || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, row.want)
		}
	}
}

func TestAFileOfOneDocumentHasExactlyOne(t *testing.T) {
	for text, want := range map[string]string{`{"a":1}`: "", "a: 1\n---\na: 2": "found 2", "[": "line 1", "": "found 0"} {
		if _, err := ReadOne("x", strings.NewReader(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestCalendarsAreReadFromAFile(t *testing.T) {
	calendars := check.Got(ReadCalendars("c.yaml", strings.NewReader("name: nights\nrrule: \"0 22 * * *\"\nfor: 8h\n---\nname: lunch\nrrule: \"0 12 * * *\"\nfor: 1h")))(t)
	var names []string
	for _, c := range calendars {
		names = append(names, c.Name)
	}
	if want := []string{"nights", "lunch"}; !cmp.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	for _, text := range []string{"name: x\nfor: soon", "["} {
		if found, err := ReadCalendars("c.yaml", strings.NewReader(text)); err == nil || found != nil || !strings.Contains(err.Error(), "c.yaml line ") {
			t.Errorf("%q: got %v, %v, want it refused with its line", text, found, err)
		}
	}
}

func TestTwoPoliciesDifferInTheFieldsThatDiffer(t *testing.T) {
	one, two := anHour(), anHour()
	if got := Compare(one, two); len(got) != 0 || got == nil {
		t.Errorf("alike: got %v, want an empty list", got)
	}
	two.Name, two.Timeout, two.Rule = "two", 2*time.Hour, "@daily"
	var got []string
	for _, d := range Compare(one, two) {
		got = append(got, d.Field+" "+Text(d.Old)+" "+Text(d.New))
	}
	if want := []string{"rrule - @daily", "timeout 1h 2h"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for want, value := range map[string]any{"-": nil, "a": "a", "1": 1, `["a"]`: []any{"a"}} {
		if got := Text(value); got != want {
			t.Errorf("%v: got %s, want %s", value, got, want)
		}
	}
}

func TestABriefOfAPolicyIsItsTimeoutItsRetriesAndItsRule(t *testing.T) {
	for text, want := range map[string]string{
		`{"timeout":"5m"}`: "5m - -",
		`{"timeout":"none","rrule":"@daily","on_exhausted":"next_planned"}`:                          "none - FREQ=DAILY;BYHOUR=0;",
		`{"timeout":"5m","retries":["1m","2m"]}`:                                                     "5m 2 -",
		`{"timeout":"5m","retries":{"strategy":"fixed","base":"1m"}}`:                                "5m unlimited -",
		`{"timeout":"5m","rrule":"RRULE:FREQ=DAILY\nEXDATE:20260101T000000","dtstart":"2026-01-01"}`: "5m - RRULE:FREQ=DAILY EXDATE",
	} {
		sources, err := sourcesOf(t, text, false, func() (policy.Policy, error) { return policy.Policy{}, nil })
		check.Must(t, err)
		timeout, retries, rule := Brief(sources[0].Policy)
		got := timeout + " " + retries + " " + rule
		if !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestTwoModelsDifferInFieldsAlsoBelowThePayload(t *testing.T) {
	model1 := func(text string) *model.Model {
		doc := check.Got(ReadOne("m", strings.NewReader(text)))(t)
		s := check.Got(ReadSubject(doc, "m", anHour, func(name string) (policy.Policy, error) {
			p := anHour()
			p.Name = name
			return p, nil
		}))(t)
		d := s.Definition
		return &model.Model{UID: d.UID, Payload: d.Payload, Rule: d.Rule, Timezone: d.Timezone, Dtstart: d.Dtstart, Labels: d.Labels, PolicyName: d.PolicyName, Policy: s.Policy}
	}
	before := model1(`{"uid":"m1","payload":{"a":1,"b":{"c":2}},"labels":{"tenant":"t1"},"rrule":"@daily","policy":"p"}`)
	after := model1(`{"uid":"m1","payload":{"a":1,"b":{"c":3},"d":4},"labels":{"tenant":"t2"},"rrule":"@hourly","policy":"q"}`)
	var got []string
	for _, d := range CompareModels(before, after) {
		got = append(got, d.Field+" "+Text(d.Old)+" "+Text(d.New))
	}
	want := []string{"rrule FREQ=DAILY FREQ=HOURLY", "policy p q", "labels.tenant t1 t2", `payload.b {"c":2} {"c":3}`, "payload.d - 4"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], strings.Fields(want[i])[0]+" ") || i > 0 && got[i] != want[i] {
			t.Errorf("got %s, want %s", got[i], want[i])
		}
	}
	if got := CompareModels(before, before); len(got) != 0 {
		t.Errorf("with itself: got %v, want nothing", got)
	}
}

func TestAModelThatIsShownIsSavedAgainWithoutItsState(t *testing.T) {
	for name, row := range map[string]struct {
		shown map[string]any
		want  string
	}{
		"a named policy":      {map[string]any{"uid": "m", "status": "x", "rev": "1", "policy_definition": map[string]any{"timeout": "5m"}, "policy": "p"}, "map[policy:p uid:m]"},
		"not one of ours":     {map[string]any{"uid": "m", "status": "x"}, "map[status:x uid:m]"},
		"a wrong own one":     {map[string]any{"status": "x", "rev": "1", "policy_definition": "?", "policy": "inline-1"}, "policy_definition"},
		"a policy of its own": {map[string]any{"status": "x", "rev": "1", "policy_definition": map[string]any{"timeout": "5m"}, "policy": "inline-1"}, "timeout:5m"},
	} {
		got, err := definitionOf(row.shown)
		if text := fmt.Sprint(got, err); !strings.Contains(text, row.want) {
			t.Errorf("%s: got %s, want %s", name, text, row.want)
		}
	}
}

func TestALinterChecksEachScheduleOnceAndNamesTheFieldOfThePolicy(t *testing.T) {
	p := anHour()
	p.Name, p.Rule, p.Timeout = "p", "FREQ=MINUTELY;BYSECOND=0", time.Hour // an attempt may take longer than the interval
	m := &model.Model{UID: "m", PolicyName: "p"}
	check.Must(t, m.Resolve(p, schedule.Parse))
	var l ModelLinter
	first := l.Lint(m, false, time.UnixMilli(0))
	if len(first) == 0 {
		t.Fatal("got no warning, want some")
	}
	for _, w := range first {
		if !strings.HasPrefix(w.Field, "policy") && !strings.HasPrefix(w.Field, "rrule") && w.Field != "dtstart" && w.Field != "timezone" {
			t.Errorf("got the field %s, want one of the model", w.Field)
		}
	}
	m.Policy = policy.Default() // of the same name: it is not looked at again
	if again := l.Lint(m, false, time.UnixMilli(0)); !cmp.Equal(again, first) {
		t.Errorf("again: got %v, want %v", again, first)
	}
}
