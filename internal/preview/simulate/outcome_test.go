package simulate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/model/document"
)

func TestOutcomesAreReadOneALine(t *testing.T) {
	text := "# a morning\nsuccess 2m\n\n  failure 1h30m NetworkError  # the feed was away\nfailure PT5S\nlost\nsuccess 0\r\n"
	want := []Outcome{
		{Success, 2 * time.Minute, ""}, {Failure, 90 * time.Minute, "NetworkError"}, {Failure, 5 * time.Second, ""}, {Lost, 0, ""},
		{Success, 0, ""},
	}
	got, err := ReadOutcomes(strings.NewReader(text))
	must(t, err)
	equal(t, want, got)
}

func TestAnUnreadableOutcomeIsRefusedWithItsLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown word":          {"success 2m\n# x\nsucces 2m", `line 3: expected "success 2m", "failure 3m", "failure 3m NetworkError" or "lost", found "succes 2m"`},
		"no duration":              {"failure", `line 1: expected "success 2m"`},
		"a duration without sense": {"\nsuccess soon", `line 2: expected a duration`},
		"a negative duration":      {"success -1m", `line 1: expected a duration`},
		"a duration of a loss":     {"lost 2m", `line 1: expected "success 2m"`},
		"an error of a success":    {"success 2m NetworkError", `line 1: expected "success 2m"`},
		"a word too many":          {"failure 2m Network Error", `line 1: expected "success 2m"`},
		"control characters":       {"succ\x1b[2Jess 2m", `found "succ\x1b[2Jess 2m"`},
		"a line without end":       {"lost\n" + strings.Repeat("x", 2000), "line 2: expected at most 1000 bytes, found more"},
		"a list without end":       {strings.Repeat("lost\n", maxOutcomes+1), "line 100001: expected at most 100000 outcomes, found more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadOutcomes(strings.NewReader(test.text))
			var line *LineError
			var field *document.Error
			failIf(t, !errors.As(err, &line) || !errors.As(err, &field) || !strings.Contains(err.Error(), test.want),
				"expected %q, found %v", test.want, err)
		})
	}
}

func TestTheSameSeedThrowsTheSameDice(t *testing.T) {
	throw := func(seed uint64) (list []Outcome) {
		chance := Chance{Seed: seed, Fail: 0.2, Lost: 0.1, Shortest: time.Minute, Longest: 5 * time.Minute}
		for outcome := range chance.Outcomes {
			if list = append(list, outcome); len(list) == 1000 {
				break
			}
		}
		return list
	}
	first := throw(7)
	equal(t, first, throw(7))
	failIf(t, cmp.Equal(first, throw(8)), "expected another seed to throw other outcomes")
	counts := map[Result]int{}
	for _, outcome := range first {
		counts[outcome.Result]++
		stopIf(t, outcome.Result != Lost && (outcome.After < time.Minute || outcome.After > 5*time.Minute || outcome.After%time.Second != 0),
			"expected whole seconds from 1m to 5m, found %s", outcome.After)
	}
	failIf(t, counts[Failure] < 150 || counts[Failure] > 250 || counts[Lost] < 60 || counts[Lost] > 140,
		"expected about 200 failures and 100 losses in 1000, found %v", counts)
}

func TestChancesOfNothingAndOfEverythingAreCertain(t *testing.T) {
	for result, chance := range map[Result]Chance{Success: {}, Failure: {Fail: 1}, Lost: {Lost: 1}} {
		left := 1000
		for outcome := range chance.Outcomes {
			stopIf(t, outcome.Result != result, "expected %s, found %s", result, outcome.Result)
			if left--; left == 0 {
				break
			}
		}
	}
}

func FuzzReadOutcomes(f *testing.F) {
	f.Add("success 2m\nfailure 3m NetworkError # why\n\nlost\n")
	f.Add("failure 999999h")
	f.Add("success 1w2d\x00")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		list, err := ReadOutcomes(strings.NewReader(text))
		if err != nil {
			return
		}
		run := Simulate(at6And16(t, goesOn), slices.Values(list), Plan{Start: monday, Limit: 20})
		stopIf(t, run.Attempts > len(list) || run.Attempts > 20, "expected an attempt for each outcome, found %d of %d", run.Attempts, len(list))
		sorted := slices.IsSortedFunc(run.Events, func(a, b chart.Event) int { return a.At.Compare(b.At) })
		stopIf(t, !sorted, "expected a clock that never goes back, found %v", run.Events)
	})
}
