package english

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// addGuard adds one bound: a number, its metric and, if it is a share of what is usual, of how many results.
func addGuard(rule string) func(*draft, []string) {
	return func(d *draft, slots []string) {
		guards, _ := d.doc["guard"].([]any)
		if d.lines["guard"] > 0 && len(guards) == 0 {
			d.twice("guard", d.now.line, d.now.original())
		}
		value, metric := strings.ReplaceAll(slots[0], ",", ""), slots[1]
		if thousand.MatchString(slots[0]) {
			d.refuse("a number without a mark in it, such as 1000 or 1.5", document.Found(slots[0])+" (1.000 may be 1 or 1000)")
		}
		name := d.now.value(metric)
		if metric[0] != '"' {
			if name = strings.ToLower(metric); !isMetric(name) {
				d.refuse(`a number that a success reports: rows, bytes, a name with _, or one in quotes`, document.Found(metric))
			}
		}
		said := map[string]any{rule: value}
		if len(slots) > 2 {
			if said[rule] = value + "%"; slots[2] != "" {
				said["of"] = slots[2]
			}
		}
		field := element("guard", len(guards))
		d.doc["guard"] = append(guards, any(map[string]any{name: said}))
		d.setInner("guard", field)
	}
}

var thousand = regexp.MustCompile(`^[1-9]\d{0,2}\.\d{3}\b`)

// percentOff is what is missing of a percentage, to a hundred, without the dust of binary fractions.
func percentOff(text string) string {
	rest, _ := strconv.ParseFloat(text, 64) // digits
	return decimal(math.Round((100-rest)*1e6) / 1e6)
}

// knownMetrics are names that a sentence may say as they are.
var knownMetrics = strings.Fields("rows bytes lines records items products files columns images pages errors orders entries documents")

func isMetric(name string) bool {
	return policy.IsMetricName(name) && (slices.Contains(knownMetrics, name) || strings.Contains(name, "_"))
}

func (out *printer) guards(p *policy.Policy) {
	if len(p.Guard) == 0 {
		out.sayUsual("Doubt no refresh")
	}
	for _, g := range p.Guard {
		metric, bound, last := bare(g.Metric, isMetric(g.Metric)), decimal(g.Bound), ""
		if thousand.MatchString(bound) {
			bound += "0"
		}
		if g.Relative() && g.Of != policy.DefaultGuardOf {
			last = " of the last " + strconv.Itoa(g.Of) + " results"
		}
		switch {
		case g.Rule == policy.GuardMin && g.Bound == 1:
			out.say("Doubt a refresh without %s", metric)
		case g.Rule == policy.GuardMin:
			out.say("Doubt a refresh with fewer than %s %s", bound, metric)
		case g.Rule == policy.GuardMax:
			out.say("Doubt a refresh with more than %s %s", bound, metric)
		case g.Rule == policy.GuardDrop && g.Bound == 50:
			out.say("Doubt a refresh with less than half of the usual %s%s", metric, last)
		case g.Rule == policy.GuardDrop:
			out.say("Doubt a refresh with more than %s percent fewer %s than usual%s", bound, metric, last)
		case g.Bound == 100:
			out.say("Doubt a refresh with more than twice the usual %s%s", metric, last)
		default:
			out.say("Doubt a refresh with more than %s percent more %s than usual%s", bound, metric, last)
		}
	}
	switch p.OnSuspect {
	case policy.SuspectFail:
		out.say("Fail a doubted refresh")
	case policy.SuspectHold:
		out.say("Hold a doubted refresh")
	default:
		out.sayUsual("Tell of a doubted refresh")
	}
}
