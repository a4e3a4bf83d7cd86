package schedule

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// dialectLine is a line of testdata/dialects.tsv: a text, whose it is, its first times after 2026-11-28T00:00Z there, in UTC, and what we say.
//
//	same     it has these times here
//	told     it has others here, and what we say beside them proposes a rule with these
//	hint     it is refused, and one of the rules that are proposed has these
//	other    it has others here
//	quirk    it is refused, and the rules that are proposed mean what others read
//	refused  it is refused, with nothing to write instead
type dialectLine struct{ text, whose, times, say string }

func dialectLines(t testing.TB) (all []dialectLine) {
	t.Helper()
	for line := range strings.Lines(string(check.Got(os.ReadFile("testdata/dialects.tsv"))(t))) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") {
			stopIf(t, len(f) != 4, "expected text, whose, times and what we say, found %q", line)
			all = append(all, dialectLine{f[0], f[1], f[2], f[3]})
		}
	}
	return all
}

// timesOf are the first times of a text, as the table writes them.
func timesOf(text, timezone string, count int) (string, error) {
	r, err := Read(text)
	if err != nil {
		return "", err
	}
	s, err := Parse(r.Rule, cmp.Or(r.Timezone, timezone), cmp.Or(r.Dtstart, "2026-11-28T00:00:00"))
	if err != nil {
		return "", err
	}
	var times []string
	for at, ok := s.Next(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)); ok && len(times) < count; at, ok = s.Next(at) {
		times = append(times, strings.TrimSuffix(at.Format("2006-01-02T15:04:05"), ":00"))
	}
	return strings.Join(times, ","), nil
}

var proposed = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(?: with timezone ("[^"]*"))?`)

// proposals are the times of each rule that a text proposes in quotes.
func proposals(t testing.TB, said string, count int) (all []string) {
	t.Helper()
	for _, found := range proposed.FindAllStringSubmatch(said, -1) {
		rule, zone := check.Got(strconv.Unquote(found[1]))(t), ""
		if found[2] != "" {
			zone = check.Got(strconv.Unquote(found[2]))(t)
		}
		if strings.HasPrefix(rule, "every ") && strings.Contains(said, "elapsed time") {
			continue // which no cron has
		}
		times, err := timesOf(rule, zone, count)
		failIf(t, err != nil, "%s proposes %q: %v", said, rule, err)
		all = append(all, times)
	}
	return all
}

// advice is the replacement that a refusal suggests.
func advice(err error) string {
	_, said, _ := strings.Cut(err.Error(), "; write ")
	said, _, _ = strings.Cut(said, ", found ")
	return said
}

func TestEachDialectIsReadAsItIsMeantOrToldWithARuleForIt(t *testing.T) {
	lines, meant := dialectLines(t), map[string][]string{}
	failIf(t, len(lines) < 120, "expected at least 120 lines, found %d", len(lines))
	for _, line := range lines {
		meant[line.text] = append(meant[line.text], line.times)
	}
	for _, line := range lines {
		count := strings.Count(line.times, ",") + 1
		times, err := timesOf(line.text, "", count)
		got := "other"
		switch {
		case err != nil && advice(err) == "":
			got = "refused"
		case err != nil:
			all := proposals(t, advice(err), count)
			for _, times := range all {
				failIf(t, !slices.Contains(meant[line.text], times), "%s: nobody reads it as %s", line.text, times)
			}
			if got = "quirk"; slices.Contains(all, line.times) {
				got = "hint"
			}
		case times == line.times:
			got = "same"
		case slices.Contains(proposals(t, Sentence(check.Got(RuleText(line.text))(t)), count), line.times):
			got = "told"
		}
		failIf(t, got != line.say, "%s of %s: got %s, want %s: %v", line.text, line.whose, got, line.say, err)
	}
}

func TestANicknameOfAnotherSchedulerIsRefusedWithItsFields(t *testing.T) {
	for text, want := range map[string]string{"@weekdays": "0 0 * * MON-FRI", "@noon": "0 12 * * *", "@minutely": "* * * * *"} {
		_, err := RuleText(text)
		failIf(t, err == nil || !strings.Contains(err.Error(), strconv.Quote(want)), "%s: expected a refusal with %q, got %v", text, want, err)
	}
}

// A thousand lines take some hundredths of a second.
func BenchmarkAThousandLinesOfAllDialects(b *testing.B) {
	lines := dialectLines(b)
	for b.Loop() {
		for i := range 1000 {
			_, _ = timesOf(lines[i%len(lines)].text, "", 10)
		}
	}
}

func TestNothingIsProposedThatCannotBeWritten(t *testing.T) {
	for _, text := range []string{
		"CRON_TZ=Nowhere/Land 0 6 * * *", "0 6 31W * *", "0 6 * * MON#6", "61 * * * *", "0 6 0 * *", "0 6 L-30 * *", "0 0 30 2 ?",
		"0 6 " + strings.Repeat("1L,", 500) + "1 * *", "* * * * * * * *", ": * * * *", "*-*-* :", "@", "@ 6", "TZ= 0 6 * * *", "H(5-2) * * * *", "H(99999999-1)/0 * * * *",
	} {
		rule, err := RuleText(text)
		failIf(t, err == nil || strings.Contains(err.Error(), "write"), "%.40q: got %q, %v; want a refusal that proposes nothing", text, rule, err)
	}
}
