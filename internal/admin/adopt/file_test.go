package adopt

import (
	"bytes"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestWhatCronMissedIsSkipped(t *testing.T) {
	var out bytes.Buffer
	check.Must(t, read("0 6 * * * /x", usual).WritePolicies(&out))
	check.FailIf(t, !strings.Contains(out.String(), "\nmisfire: skip\n"), "expected misfire: skip, found %s", out.String())
}

func TestACrontabWhoseLinesAllBeginWithUsersAsksForSystemOnce(t *testing.T) {
	options := usual
	options.Users = []string{"ann"}
	for text, want := range map[string]string{
		"0 6 * * * root test -x /a && /a\n0 7 * * * nobody /b":   "1 differs",
		"0 6 * * * mysql /a\n0 7 * * * postgres b\n@daily ann c": "1 differs",
		"0 6 * * * root /a\n0 7 * * * /b":                        "1 differs",
		"0 6 * * * git gc\n0 7 * * * mysql shop":                 "",
		"0 6 * * * mail -s a b\n0 7 * * * git /a":                "",
		"0 6 * * * mail\n0 7 * * * git /a":                       "",
		"0 6 * * * bob /a\n0 7 * * * ann /a":                     "",
		"0 6 * * * daemon a":                                     "1 differs",
	} {
		a := read(text, options)
		if got := listOf(a); got != want || want != "" && !strings.Contains(a.Notes[0].Text, "add --system") {
			t.Errorf("%q: expected %q, found %v", text, want, a.Notes)
		}
	}
	options.System = true
	a := read("0 6 * * * root /a\n0 7 * * * nobody /b", options)
	check.FailIf(t, strings.Contains(a.Notes[0].Text, "add --system"), "expected no question, found %v", a.Notes)
}

func TestWhatIsToBeWrittenInsteadSaysWhere(t *testing.T) {
	for line, want := range map[string]string{
		"@every 5m /x -a": `cron(8) knows no @every: write five times such as */5 * * * *, or a model into models.yaml by hand, with rrule: "@every 5m" and the command "/x -a"`,
		"0 22-2 * * * a":  `BYSECOND=0", found "22-2": mend it, or write a model into models.yaml by hand`,
		"0 6 L * * a":     `BYSECOND=0", found "L": mend it, or write a model into models.yaml by hand`,
		"0 6 30 2 * a":    `: mend it, or write a model into models.yaml by hand`,
	} {
		a := read(line, usual)
		check.FailIf(t, len(a.Notes) != 1 || a.Notes[0].Kind != Refused || !strings.Contains(a.Notes[0].Text, want), "%s: expected %q, found %v", line, want, a.Notes)
	}
}

func TestTheBusiestMinuteOfAWeekIsCounted(t *testing.T) {
	for text, want := range map[string]int{
		"":                                      0,
		"0 6 * * * a\n0 6 * * * b\n0 7 * * * c": 2,
		"0 6 * * 1 a\n0 6 * * 2 b\n0 6 * * 1 c": 2,
		"0 6 1 * * a\n0 6 * * 1 b\n0 6 * * 2 c": 2, // the first of a month may be a Monday
		"* * * * * a\n*/5 * * * * b\n@daily c\n@yearly d\n59 23 * * 0 e": 4,
		"0 6 * * * a\nCRON_TZ=Europe/London\n0 5 * * * b\n0 6 * * * c":   2,
		strings.Repeat("*/7 3 * * * a\n", 9):                             9,
		"0 25 * * * a":                                                   0,
	} {
		check.FailIf(t, read(text, usual).Busiest() != want, "%q: expected %d, found %d", text, want, read(text, usual).Busiest())
	}
}
