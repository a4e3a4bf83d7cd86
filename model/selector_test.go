package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/policy"
)

func selectorOf(t testing.TB, text string) Selector {
	t.Helper()
	s, err := ParseSelector(text)
	stopIf(t, err != nil, "%s: %v", text, err)
	return s
}

func TestASelectorPicksModelsForWhichAllItsTermsHold(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	plain := Model{UID: "tbl_1", Labels: map[string]string{"tenant": "t1", "kind": "feed"}, PolicyName: "daily"}
	failing, disabled, running := plain, plain, plain
	plain.RefreshAt, failing.RefreshAt = now.Add(time.Hour), now
	failing.FailingSince = now.Add(-time.Hour)
	disabled.Disabled, disabled.FailingSince = true, now
	running.AttemptUID = "a"
	bare := Model{UID: "x.y"}
	for text, want := range map[string]string{
		"": "plain failing disabled queued processing bare", "tenant=t2": "",
		"tenant=t2|t1,kind=feed": "plain failing disabled queued processing",
		"tenant!=t1":             "bare", "policy=default": "bare", "status=failing": "failing disabled", "status=failing,status!=disabled": "failing",
		"tenant!=t2":                     "plain failing disabled queued processing bare",
		"policy=daily":                   "plain failing disabled queued processing",
		"status=failing,status=disabled": "disabled",
		"status=due":                     "failing", "status=running": "queued processing", "status=finished": "bare",
		"status=queued":   "queued",
		"status!=running": "plain failing disabled bare", "uid=?.?": "bare", "uid=*.*,uid=x*": "bare",
		"uid=tbl_*":                             "plain failing disabled queued processing",
		"uid=tbl_?,status=due|failing,kind!=xy": "failing disabled",
	} {
		s, got := selectorOf(t, text), []string{}
		for _, subject := range []struct {
			name   string
			model  *Model
			queued bool
		}{{"plain", &plain, false}, {"failing", &failing, false}, {"disabled", &disabled, false}, {"queued", &running, true}, {"processing", &running, false}, {"bare", &bare, false}} {
			if s.Matches(subject.model, subject.model.Status(now, subject.queued)) {
				got = append(got, subject.name)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q picks %q, want %q", text, got, want)
		}
	}
}

func TestASelectorPicksModelsByTheBlockerThatTheyWaitFor(t *testing.T) {
	for text, want := range map[string][]string{
		"waits=limit:host=a.example:8080": {"limit:host=a.example:8080"}, "waits=limit:host=a.example": nil, "waits=hold:limit": {"hold:limit"},
		"waits=limit|hold:h1": {"hold:h1", "limit:host=a.example:8080"}, "waits=limit|hold,waits=hold:h1|circuit": {"hold:h1"}, "waits!=limit": {"", "hold:h1", "hold:limit"},
	} {
		var got []string
		for _, blocker := range []Blocker{"", "hold:h1", "hold:limit", "limit:host=a.example:8080"} {
			if selectorOf(t, text).Matches(&Model{UID: "a", State: State{ParkedBy: blocker}}, StatusParked) {
				got = append(got, string(blocker))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q picks %q, want %q", text, got, want)
		}
	}
}

func TestAHostIsPickedHoweverItIsWritten(t *testing.T) {
	for address, written := range map[string][]string{
		"https://me@A.Example.:8443/x":                          {"a.example", "A.EXAMPLE", "a.example."},
		"http://[2001:DB8:0::1]/x":                              {"2001:db8::1", "[2001:db8::1]"},
		"https://" + strings.Repeat("a.", 26) + "example/100%z": {strings.Repeat("a.", 26) + "example"},
	} {
		payload, _ := json.Marshal(map[string]string{"input_url": address})
		m := Model{UID: "a", Payload: string(payload)}
		m.Host = InputHost(&m)
		for _, text := range written {
			picks := selectorOf(t, "host="+text)
			if !picks.Matches(&m, StatusDue) || !slices.Contains(picks.Terms("host"), LabelTerms(AllLabels(&m))[0]) {
				t.Errorf("%s: host=%s picks nothing: asked for %q, the model has %q", address, text, picks.Terms("host"), AllLabels(&m))
			}
		}
	}
	labelled := Model{UID: "a", Labels: map[string]string{"host": "Ours"}, Payload: `{"input_url":"https://a.example/"}`}
	if got := InputHost(&labelled); got != "" {
		t.Errorf("a label of that name goes before it: got %q", got)
	}
	for text, want := range map[string]bool{"host=Ours": true, "host=ours": false, "host=a.example": false} {
		if got := selectorOf(t, text).Matches(&labelled, StatusDue); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
	if got := InputHost(&Model{Payload: `{"input_url":"https://` + strings.Repeat("a", 61) + `/"}`}); got != "" { // no label is that long
		t.Errorf("a host of 61 bytes: got %q", got)
	}
}

func TestASelectorPicksModelsByTheirCircuit(t *testing.T) {
	m := Model{UID: "a", Payload: `{"input_url":"https://a.example/"}`}
	if selectorOf(t, "circuit=host=a.example").Matches(&m, StatusDue) {
		t.Error("its policy has no circuit")
	}
	m.Policy.Circuit, m.Labels = &policy.Circuit{Key: inputHost}, map[string]string{"circuit": "eu", "key": "x"}
	for text, want := range map[string]bool{"circuit=host=a.example": true, "circuit=host=b.example": false, "circuit!=host=b.example": true,
		"circuit=eu": true, "circuit=us": false, "key=x": true, "key=y": false} {
		if got := selectorOf(t, text).Matches(&m, StatusDue); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

func TestASelectorPicksModelsByTheKeysThatCountThem(t *testing.T) {
	key := func(text string) policy.Key { return check.Got(policy.ParseKey(text))(t) }
	feed := `{"feed_url":"https://FEED.example:8443/a","input_url":"https://input.example/b"}`
	limited := policy.Policy{Limits: []policy.Limit{{Key: key("{label.tenant}")}, {Key: key("{host(feed_url)}")}}}
	for want, m := range map[string]Model{
		"host=input.example":                             {Payload: feed, Labels: map[string]string{"host": "a"}},
		"host=feed.example host=input.example tenant=t1": {Payload: feed, Policy: limited, Labels: map[string]string{"tenant": "t1"}},
		"":             {Payload: `{"input_url":5}`, Policy: limited},
		"policy=daily": {Payload: "{}", PolicyName: "daily", Policy: policy.Policy{Circuit: &policy.Circuit{Key: key("{policy}")}}},
	} {
		var got []string
		for _, key := range []string{"host=a", "host=feed.example", "host=input.example", "policy=daily", "tenant=t1"} {
			if selectorOf(t, "key="+key).Matches(&m, StatusDue) {
				got = append(got, key)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestASelectorHasOneCanonicalTextThatIsReadBackUnchanged(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "  ": "", " uid=b* , tenant = t2 | t1|t2 ": "tenant=t1|t2,uid=b*",
		"tenant=t1":                           "tenant=t1",
		"status=due,status=failing":           "status=due,status=failing",
		"status=failing,status=failing,a!=b":  "a!=b,status=failing",
		"uid=a=b,policy=builtin/default@2":    "policy=builtin/default@2,uid=a=b",
		"url.host=example.com:80/a+b,uid!=x?": "uid!=x?,url.host=example.com:80/a+b",
	} {
		s := selectorOf(t, text)
		got := s.String()
		failIf(t, got != want || selectorOf(t, got).String() != got, "%q is %q, want %q", text, got, want)
		failIf(t, s.All() != (want == ""), "%q: picks all: %v", text, s.All())
	}
}

func TestASelectorThatCannotBeMeantIsRefusedByItsTerm(t *testing.T) {
	for text, want := range map[string]string{
		"tenant":     `terms such as "tenant=t1" or "status!=failing" with commas between them, found "tenant"`,
		"tenant=t1,": `with commas between them, found ""`, "tenant=t*": `tenant: expected a label`,
		"tenant=":                 `tenant: expected a label: 1-60 letters, digits or _.:/@+-, found ""`,
		"Tenant=t1":               `the name of a label (a-z first, then at most 31 of a-z, 0-9 and _.-), found "Tenant"`,
		"=t1":                     `found ""`,
		"status=faling":           `found "faling"; did you mean failing?`,
		"status=blue":             `status: expected one of disabled, scheduled, due,`,
		"error=timeout":           `error: expected the id of a fingerprint, 12 hex digits, or other, found "timeout"`,
		"uid=a b":                 `uid: expected a uid, with * for any text and ? for any one character, found "a b"`,
		"waits=limits:host=a":     `waits: expected one of hold, calendar, limit, circuit, suspect, or a blocker such as limit:host=example.com, found "limits"; did you mean limit?`,
		"key=a b=c":               `key: expected a key of limits and circuits such as host=example.com, or a label, found "a b=c"`,
		"circuit=a=b c":           `circuit: expected a key of limits and circuits such as host=example.com, or a label, found "a=b c"`,
		"host=a b":                `host: expected a host such as example.com, without a port, of at most 60 bytes, found "a b"`,
		"policy=a*":               `policy: expected the name of a policy, found "a*"`,
		"a=1,a=2":                 `a: expected "a=1|2" for one or the other, found "a=1,a=2", which no model has`,
		strings.Repeat("a", 1001): `selector: expected at most 1000 bytes, found 1001`,
		strings.Repeat("uid=a*,", 20) + "uid=b*,x": `found "x"`,
	} {
		_, err := ParseSelector(text)
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "%q:\n got %v\nwant %s", text, err, want)
	}
	var many []string
	for c := 'a'; c <= 'z'; c++ {
		many = append(many, string(c)+"=1")
	}
	_, err := ParseSelector(strings.Join(many, ","))
	failIf(t, err == nil || err.Error() != "selector: expected at most 20 terms, found 26", "26 terms: %v", err)
}

func TestASelectorTellsWhatAnIndexCanBeAskedFor(t *testing.T) {
	s := selectorOf(t, "tenant=t1|t2,kind!=feed,zone=a,status=failing,uid=x*,uid=a|b,uid=a|b|c")
	got := strings.Join(s.Labels(), " ")
	failIf(t, got != "tenant zone", "labels: %q", got)
	for name, want := range map[string]string{"tenant": "t1 t2", "kind": "", "status": "failing", "uid": "x*", "policy": ""} {
		got := strings.Join(s.Only(name), " ")
		failIf(t, got != want, "%s: %q, want %q", name, got, want)
	}
	for text, want := range map[string]bool{
		"": false, "status=running": false, "status=queued": true, "status!=processing": true, "status=queued|processing": false, "tenant=queued": false,
	} {
		got := selectorOf(t, text).AsksQueued()
		failIf(t, got != want, "%q asks for the input list: %v", text, got)
	}
}

func TestAGlobKnowsTwoSignsAndTakesTimeInProportion(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "aa", false}, {"", "", true}, {"*", "", true}, {"*", "abc", true}, {"?", "", false},
		{"a*", "a", true}, {"a*c", "abbc", true}, {"a*c", "abcb", false}, {"*a*b", "xaxbxb", true}, {"a?c*", "abc", true}, {"**", "x", true},
		{"*ab", "aab", true}, {"a.c", "abc", false},
		{strings.Repeat("a*", 100) + "b", strings.Repeat("a", 200), false}, // minutes, if every star tried every length
	} {
		got := matchGlob(c.pattern, c.text)
		failIf(t, got != c.want, "%q is like %q: %v", c.text, c.pattern, got)
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, text := range []string{"", "tenant=t1,status=failing", "uid!=a*|b?", "policy=x,,", "a=|b", "=!="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(s.String())
		stopIf(t, err != nil || again.String() != s.String(), "%q: %q is read back as %q, %v", text, s, again, err)
	})
}
