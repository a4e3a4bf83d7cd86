package simulate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var update = flag.Bool("update", false, "write the table of docs/policies.md")

// series are the numbers of rows of synthetic models, one a day.
var series = []struct {
	name string
	rows func(day int, random *rand.Rand) float64
}{
	{"steady", func(_ int, random *rand.Rand) float64 { return 10_000 * (1 + random.NormFloat64()/10) }},
	{"growing", func(day int, random *rand.Rand) float64 {
		return 10_000 * math.Pow(1.02, float64(day)) * (1 + random.NormFloat64()/10)
	}},
	{"heavy-tailed", func(_ int, random *rand.Rand) float64 { return 10_000 * math.Exp(random.NormFloat64()*0.6) }},
	{"weekly", func(day int, random *rand.Rand) float64 {
		if day%7 >= 5 {
			return 3_300 * (1 + random.NormFloat64()/10)
		}
		return 10_000 * (1 + random.NormFloat64()/10)
	}},
}

const (
	seriesDays  = 200 // of one model
	seriesCount = 20  // models of each kind
)

// recorded is a series of one model.
func recorded(rows func(int, *rand.Rand) float64, seed uint64) []Refresh {
	random := rand.New(rand.NewPCG(seed, 27)) //nolint:gosec // the same each time
	all := make([]Refresh, seriesDays)
	for day := range all {
		all[day].Metrics = map[string]float64{"rows": max(0, math.Round(rows(day, random)))}
	}
	return all
}

// rates are the shares of results that guards doubt: of those that are right, and of those that are wrong by having no rows or half of them, each
// the only wrong one of its series.
func rates(guards []policy.Guard, rows func(int, *rand.Rand) float64) (shares [3]float64) {
	const full = policy.UsualHistory // days until it is known what is usual
	for seed := range uint64(seriesCount) {
		var past []model.Attempt // newest first
		usually := ""
		for day, r := range Judge(guards, recorded(rows, seed)) {
			for i, left := range []float64{1, 0, 0.5} {
				if day >= full && model.Doubt(guards, map[string]float64{"rows": math.Round(left * r.Metrics["rows"])}, past, usually) != "" {
					shares[i] += 100.0 / (seriesCount * (seriesDays - full))
				}
			}
			past = slices.Insert(past, 0, model.Attempt{Outcome: model.EventSuccess, Metrics: r.Metrics, Suspect: r.Suspect})
			if past[0].Good() {
				usually = model.Usually(guards, past, usually)
			}
			past = past[:min(len(past), policy.UsualHistory)]
		}
	}
	return shares
}

func TestTheDocsStateHowOftenAGuardDoubtsWhatIsRightAndFindsWhatIsWrong(t *testing.T) {
	const page, begin, end = "../../../docs/policies.md", "<!-- false alarms -->\n", "<!-- end of false alarms -->"
	text := "\n| guard |"
	for _, kind := range series {
		text += " " + kind.name + " |"
	}
	text += "\n|---|" + strings.Repeat("---|", len(series)) + "\n"
	for _, guard := range []string{"{rows: {min: 1}}", "{rows: {drop: 30%}}", "{rows: {drop: 40%}}", "{rows: {drop: 50%}}", "{rows: {drop: 50%, of: 3}}", "{rows: {drop: 80%}}"} {
		var document any
		must(t, yaml.Unmarshal([]byte(guard), &document))
		text += "| `" + guard + "` |"
		for _, kind := range series {
			shares := rates(guards(t, document), kind.rows)
			failIf(t, shares[1] < 99.5, "%s, %s: expected every empty result found, found %.1f%%", guard, kind.name, shares[1])
			text += fmt.Sprintf(" %.1f%% · %.0f%% |", shares[0], shares[2])
		}
		text += "\n"
	}
	text += "\n"
	stored, err := os.ReadFile(page)
	must(t, err)
	before, rest, opened := strings.Cut(string(stored), begin)
	table, after, closed := strings.Cut(rest, end)
	stopIf(t, !opened || !closed, "expected a table between %q and %q", begin, end)
	if *update {
		table = text
		must(t, os.WriteFile(page, []byte(before+begin+table+end+after), 0o644)) //nolint:gosec // a page for everybody
	}
	equal(t, text, table)
}
