package dashboard

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
)

func TestATextIsUnderstoodAsWhatItIsMostLikelyMeant(t *testing.T) {
	groups := []operate.Failures{
		{FailureGroup: report.FailureGroup{ID: "aaaaaaaaaaaa", Models: 40, Text: "http_503: GET <url>: 503 Service Unavailable"}},
		{FailureGroup: report.FailureGroup{ID: "bbbbbbbbbbbb", Models: 3, Text: "timeout"}},
		{FailureGroup: report.FailureGroup{ID: "cccccccccccc", Models: 2, Text: "network: dial tcp <ip>: i/o timeout"}},
		{FailureGroup: report.FailureGroup{ID: "dddddddddddd", Models: 1, Text: "x509: certificate has expired", Reason: "x509: certificate has expired at 17:32"}},
	}
	for text, want := range map[string][]string{
		"shop":            {"uid=shop*", "uid=*shop*"},
		"tenant=t1":       {"tenant=t1"},
		"failing":         {"status=failing", "uid=failing*", "uid=*failing*"},
		"Failing":         {"status=failing", "uid=Failing*", "uid=*Failing*"},
		"failing a=b":     {"a=b,status=failing"},
		"due, policy=x":   {"policy=x,status=due"},
		"status!=failing": {"status!=failing"},
		"503":             {"error=aaaaaaaaaaaa", "uid=503*", "uid=*503*"},
		"timeout":         {"error=bbbbbbbbbbbb|cccccccccccc", "uid=timeout*", "uid=*timeout*"},
		"certif":          {"error=dddddddddddd", "uid=certif*", "uid=*certif*"},
		"17:32":           {"error=dddddddddddd", "uid=17:32*", "uid=*17:32*"},
		"has expired":     {"error=dddddddddddd"},
		"HAS EXP":         {"error=dddddddddddd"},
		"shop-*":          {"uid=shop-*"},
		"status=fialing":  {"uid=status=fialing*", "uid=*status=fialing*", "status=failing"},
		"<script>":        {}, "a,b": {}, "|": {}, "(": {}, `"\`: {}, "a=,": {},
		strings.Repeat("x", 2000): {},
	} {
		v := &vocabulary{groups: groups}
		expectSelectors(t, text, v.understand(text), want)
	}
	v := &vocabulary{labels: map[string]int64{"tenant=t1": 12, "zone=t1": 0, "a=t1": 1}, groups: groups}
	expectSelectors(t, "t1", v.understand("t1"), []string{"a=t1", "tenant=t1", "uid=t1*", "uid=*t1*"})
	v = &vocabulary{stored: true}
	expectSelectors(t, "a=b", v.understand("a=b"), []string{"a=b", "uid=a=b"})
}

func expectSelectors(t *testing.T, text string, found []reading, want []string) {
	t.Helper()
	got := []string{}
	for _, one := range found {
		got = append(got, one.Selector)
	}
	diff := cmp.Diff(want, got)
	failIf(t, diff != "", "%.40q: -want +got\n%s", text, diff)
}

func TestWhateverIsTypedIsLookedForAndNeverRefused(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		for n := range 30 {
			d.put(fmt.Sprintf(`"uid":"shop-%02d","rrule":"every day at 6 AM","labels":{"tenant":"t%d"}`, n, n%3))
		}
		d.put(failingModel)
		d.start()
		d.answer("failure", "a", `"reason":"503 Service Unavailable"`)
		for text, want := range map[string]string{
			"shop-1":              "Shown: 10 models whose uid begins with shop-1.",
			"op-1":                "Shown: 0 models whose uid begins with op-1. Or look for",
			"t2":                  "Shown: 10 models with tenant=t2.",
			"503":                 "Shown: 1 model failing with",
			"unavail":             "Shown: 1 model failing with",
			"scheduled tenant=t0": "Shown: 10 models with status=scheduled,tenant=t0.",
			"nothing of the kind": "Nothing is known of nothing of the kind.",
			"\xff":                "Nothing is known of \uFFFD.",
			"<b>":                 "Nothing is known of &lt;b&gt;.",
			"status=fialing":      `l=status%3Dfailing">models with status=failing</a>`,
		} {
			expect(t, d.page(home+"models?l="+url.QueryEscape(text)), want)
		}
		response, _ := d.ask(d.request("GET", home+"models?l=shop-07", nil))
		failIf(t, response.StatusCode != 303 || response.Header.Get("Location") != home+"model?uid=shop-07", "expected the page of the model, found %v", response.Header)
		uids, next := d.readList(home + "models?l=op-1")
		failIf(t, len(uids) != 0 || next != "", "expected no model, found %v", uids)
	})
}

func TestAChipOfAStatusCountsAndPicksItsModels(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"b","rrule":"every day at 6 AM"`, failingModel)
	expect(t, d.page(home+"models?l=status%3Ddue"), `aria-current="true">due 1</a>`)
	uids, next := d.readList(home + "models?l=status%3Ddue")
	failIf(t, len(uids) != 1 || uids[0] != "a" || next != "", "expected the one that is due, found %v, %q", uids, next)
	d.start()
	d.answer("failure", "a", `"reason":"503"`)
	expect(t, d.page(home+"models"), `l=status%3Dfailing">failing 1</a>`, `due 0</a>`)
}

func TestAnEmptyListNamesTheNearestLabel(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"b","labels":{"tenant":"acme"}`)
	expect(t, d.page(home+"models?l=tennant%3Dt1"), "There is no such model. tennant=t1 matches 0 models now; did you mean tenant?")
	expect(t, d.page(home+"models?l=tenant%3Dacmee"), "did you mean tenant=acme?")
}

func TestModelsAreFoundByTheHostThatTheirPageShows(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"b","payload":{"input_url":"https://feeds.example/a.csv"}`)
	expect(t, d.page(home+"model?uid=b"), `models?l=host%3Dfeeds.example">feeds.example</a>`)
	expect(t, d.page(home+"models?l=host%3Dfeeds.example"), `model?uid=b"`)
	expect(t, d.page(home+"models?l=feeds.example"), `model?uid=b"`)
}
