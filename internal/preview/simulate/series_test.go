package simulate

import (
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

// guards reads the guards of a policy.
func guards(t testing.TB, list ...any) []policy.Guard {
	t.Helper()
	return resolved(t, map[string]any{"timeout": "1h", "guard": list}).Policy.Guard
}

func drop(percent string) map[string]any {
	return map[string]any{"rows": map[string]any{"drop": percent}}
}

func TestASeriesIsJudgedAsAPollerJudgesEachResultByThoseBeforeIt(t *testing.T) {
	text := `{"rows":100}
{"rows":110}

{"rows":90, "bytes":7}
{"rows":49}
{"bytes":8}
{"rows":48}
`
	series, err := ReadSeries(strings.NewReader(text))
	must(t, err)
	judged := Judge(guards(t, drop("50%")), series)
	var told []string
	for i, r := range judged {
		failIf(t, r.No != i+1, "expected number %d, found %d", i+1, r.No)
		told = append(told, r.Suspect)
	}
	equal(t, []string{"", "", "", "rows 49: over 50% less than the usual 100", "rows: missing, and the last good results had it", "rows 48: over 50% less than the usual 100"}, told)
	failIf(t, series[3].Suspect != "", "expected the series of the caller as it was, found %v", series[3])
}

func TestAHistoryIsJudgedFromItsOldestAttemptAndWhatSomebodyAcceptedIsGood(t *testing.T) {
	attempt := func(metrics string, accepted string) string {
		return `{"attempt_uid":"a","outcome":"success","suspect":"x","metrics":` + metrics + `,"accepted":` + accepted + "}\n"
	}
	text := attempt(`{"rows":10}`, "false") + `{"attempt_uid":"a","outcome":"success","changed":false,"metrics":{"rows":1}}` + "\n" + attempt(`null`, "false") + attempt(`{"rows":40}`, "true") + attempt(`{"rows":40}`, "true") + attempt(`{"rows":41}`, "true") +
		attempt(`{"rows":100}`, "false") + attempt(`{"rows":100}`, "false")
	series, err := ReadSeries(strings.NewReader(text))
	must(t, err)
	judged := Judge(guards(t, drop("50%")), series)
	failIf(t, len(judged) != 7 || judged[0].Metrics["rows"] != 100, "expected seven successes, the oldest first, found %v", judged)
	equal(t, "rows 10: over 50% less than the usual 40", judged[6].Suspect)
	failIf(t, judged[5].Suspect != "", "what found nothing new is doubted: %s", judged[5].Suspect)
}

func TestAnUnreadableSeriesIsRefusedWithItsLineAndField(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no object":       {"{\"rows\":1}\n\n7\n", `line 3: expected an object such as {"rows": 40}, found "7"`},
		"no JSON":         {"rows=1", `line 1: expected an object such as {"rows": 40}, found "rows=1"`},
		"a word":          {`{"rows":"many"}`, `line 1: rows: expected a number from -1e+300 to 1e+300, found "many"`},
		"nothing":         {`{"rows":null}`, "line 1: rows: expected a number under a name"},
		"another name":    {`{"Rows":1}`, "line 1: Rows: expected a number under a name of small letters, digits and _"},
		"in a history":    {`{"attempt_uid":"a","metrics":{"rows":[]}}`, "line 1: rows: expected "},
		"a line too long": {"{}\n{\"rows\":" + strings.Repeat(" ", maxSeriesLine) + "1}", "line 2: expected at most 65536 bytes, found more"},
	} {
		_, err := ReadSeries(strings.NewReader(test.text))
		var line *LineError
		failIf(t, !errors.As(err, &line) || !strings.Contains(err.Error(), test.want), "%s: expected %q, found %v", name, test.want, err)
	}
}
