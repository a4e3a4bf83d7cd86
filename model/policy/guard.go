package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Guard is a bound for a number that a success reports.
type Guard struct {
	Metric string
	Rule   GuardRule
	Bound  float64 // of GuardMin and GuardMax the number itself, of GuardDrop and guardRise the percentage
	Of     int     // GuardDrop and guardRise: of how many good results the median is the usual number
}

// GuardRule is a guard's expectation of a number.
type GuardRule string

// The rules.
const (
	GuardMin  GuardRule = "min"  // at least the bound
	GuardMax  GuardRule = "max"  // at most the bound
	GuardDrop GuardRule = "drop" // at most so many percent less than usual
	guardRise GuardRule = "rise" // at most so many percent more than usual
)

// DefaultGuardOf is the `of` of a guard that names none.
const DefaultGuardOf = 10

const (
	maxGuards  = 8
	minGuardOf = 3
	maxGuardOf = 100
	maxBound   = 1e15
	maxDrop    = 99.0
	maxRise    = 10_000.0
	minPercent = 0.001
)

// MaxMetric bounds a number that a success reports, in both directions.
const MaxMetric = 1e300

// UsualHistory is how many attempts a history keeps, unless a daemon says otherwise.
const UsualHistory = 10

// Relative reports whether the guard compares with the usual value.
func (g Guard) Relative() bool { return g.Rule == GuardDrop || g.Rule == guardRise }

// Allows reports whether the guard expects a number. usual is the median of the last good results; only a relative guard asks for it.
func (g Guard) Allows(n, usual float64) bool {
	margin := max(usual, -usual) * g.Bound / 100
	switch g.Rule {
	case GuardMin:
		return n >= g.Bound
	case GuardMax:
		return n <= g.Bound
	case GuardDrop:
		return n >= usual-margin
	default:
		return n <= usual+margin
	}
}

// Reason says why a number that the guard does not allow is doubted.
func (g Guard) Reason(n, usual float64) string {
	direction := map[GuardRule]string{GuardMin: "least", GuardMax: "most", GuardDrop: "less", guardRise: "more"}[g.Rule]
	if !g.Relative() {
		return fmt.Sprintf("%s %s: expected at %s %s", g.Metric, FormatMetric(n), direction, FormatMetric(g.Bound))
	}
	return fmt.Sprintf("%s %s: over %s%% %s than the usual %s", g.Metric, FormatMetric(n), FormatMetric(g.Bound), direction, FormatMetric(usual))
}

// FormatMetric renders a number that a success reports.
func FormatMetric(n float64) string {
	format := byte('f')
	if n >= 1e15 || n <= -1e15 {
		format = 'g'
	}
	return strconv.FormatFloat(n, format, -1, 64)
}

// OnSuspect is the fate of a doubted success.
type OnSuspect string

// The choices. The default only notifies.
const (
	SuspectTell OnSuspect = "tell" // it counts, and somebody is notified
	SuspectFail OnSuspect = "fail" // it is a failure of type ReasonSuspect
	SuspectHold OnSuspect = "hold" // the model waits until somebody accepts or rejects it
)

// Withholds reports whether a guard may keep a result from being published.
func (p *Policy) Withholds() bool { return len(p.Guard) > 0 && p.OnSuspect != "" }

// ReasonSuspect is the error type of a success that was doubted.
const ReasonSuspect = "suspect"

// Doubted is the failure that a doubted success is taken for. It is no worker's own: an opt-in list of error types need not name it.
func Doubted(reason string) Failure {
	return Failure{Reason: reason, ErrorType: ReasonSuspect, Ours: true}
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// IsMetricName reports whether a number that a success reports may be called so.
func IsMetricName(name string) bool { return metricName.MatchString(name) }

func (p *Policy) guardDocument() []any {
	documents := make([]any, len(p.Guard))
	for i, g := range p.Guard {
		rule := map[string]any{string(g.Rule): g.Bound}
		if g.Relative() {
			rule[string(g.Rule)] = FormatMetric(g.Bound) + "%"
		}
		if g.Relative() && g.Of != DefaultGuardOf {
			rule["of"] = g.Of
		}
		documents[i] = map[string]any{g.Metric: rule}
	}
	return documents
}

func (p *Policy) readGuard(doc *document.Reader) {
	p.OnSuspect = OnSuspect(doc.OneOf("on_suspect", "", string(SuspectTell), string(SuspectFail), string(SuspectHold)))
	if p.OnSuspect == SuspectTell {
		p.OnSuspect = ""
	}
	list, is := doc.Fields["guard"].([]any)
	if saysNone(doc, "guard") || doc.Fields["guard"] == nil {
		return
	}
	doc.Require(is, "guard", "a list such as [{rows: {min: 1}}]")
	for i, item := range list {
		place := fmt.Sprintf("guard[%d]", i)
		metrics, is := item.(map[string]any)
		if !is || len(metrics) == 0 {
			doc.Refuse(place, "an object such as {rows: {min: 1}}", document.Found(item))
		}
		for _, name := range slices.Sorted(maps.Keys(metrics)) {
			if !IsMetricName(name) {
				doc.Refuse(place, "a name of 1-40 small letters, digits or _ (first a letter)", document.Found(name))
			}
			guards, err := parseGuards(name, metrics[name])
			doc.Fail(document.Place(err, place+"."+name))
			p.Guard = append(p.Guard, guards...)
		}
	}
	if len(p.Guard) > maxGuards {
		doc.Refuse("guard", fmt.Sprintf("at most %d bounds", maxGuards), strconv.Itoa(len(p.Guard)))
	}
}

// parseGuards reads the bounds of one number; each is a guard.
func parseGuards(metric string, value any) (guards []Guard, err error) {
	doc := document.Read(value, string(GuardMin), string(GuardMax), string(GuardDrop), string(guardRise), "of")
	of := doc.Int("of", minGuardOf, maxGuardOf)
	for _, rule := range []GuardRule{GuardMin, GuardMax, GuardDrop, guardRise} {
		g := Guard{Metric: metric, Rule: rule}
		switch {
		case doc.Fields[string(rule)] == nil:
			continue
		case g.Relative():
			g.Bound, g.Of = readPercent(doc, string(rule), map[GuardRule]float64{GuardDrop: maxDrop, guardRise: maxRise}[rule]), cmp.Or(of, DefaultGuardOf)
		default:
			g.Bound, _ = doc.Number(string(rule), 0, maxBound)
			g.Bound += 0 // a negative zero would be written as one
		}
		guards = append(guards, g)
	}
	switch {
	case len(guards) == 0:
		doc.Refuse("", "min, max, drop or rise", "nothing")
	case of > 0 && !slices.ContainsFunc(guards, Guard.Relative):
		doc.Refuse("of", "drop or rise beside it", "neither")
	}
	return guards, doc.Err()
}

func readPercent(doc *document.Reader, name string, most float64) float64 {
	text, _ := doc.Fields[name].(string)
	digits, is := strings.CutSuffix(strings.TrimSpace(text), "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	doc.Require(is && err == nil && percent >= minPercent && percent <= most, name, fmt.Sprintf(`a percentage up to %v%%, such as "50%%"`, most))
	return percent
}

// lintGuard warns of guards that cannot do as they say.
func (l *linter) lintGuard() {
	if l.Policy.OnSuspect != "" && len(l.Policy.Guard) == 0 {
		l.warn("on_suspect", "says %s, and there is no guard: nothing is ever doubted", l.Policy.OnSuspect)
	}
	l.lintBounds()
	for i, g := range l.Policy.Guard {
		if g.Of > UsualHistory {
			l.warn(fmt.Sprintf("guard[%d].%s.of", i, g.Metric), "%d results are more than the %d attempts that a history keeps, unless --history-cap says more", g.Of, UsualHistory)
			return
		}
	}
}

// lintBounds warns of bounds between which there is no number.
func (l *linter) lintBounds() {
	for _, least := range l.Policy.Guard {
		for _, most := range l.Policy.Guard {
			if least.Rule == GuardMin && most.Rule == GuardMax && least.Metric == most.Metric && least.Bound > most.Bound {
				l.warn("guard", "no number is at least %s and at most %s: each result is doubted by its %s", FormatMetric(least.Bound), FormatMetric(most.Bound), least.Metric)
			}
		}
	}
}
