package english

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// addLimit takes a key, how many run at a time, how many start, and in what time; the last three may be empty.
func (d *draft) addLimit(key, running, count, per string) {
	d.add("limits", func(place string) any {
		limit := map[string]any{"key": keyOf(key)}
		if running != "" {
			limit["running"] = strconv.Itoa(countOf(running))
		}
		if count != "" {
			limit["rate"] = strconv.Itoa(countOf(count)) + "/" + d.duration(place+".rate", period(per))
		}
		return limit
	})
}

// keyOf makes a template of "host of input_url".
func keyOf(text string) string {
	if text[0] == '{' {
		return text
	}
	return "{host(" + text[strings.LastIndex(text, " ")+1:] + ")}"
}

// circuitTraits are the parts of a sentence about a circuit, in any order.
var circuitTraits = []form{
	{patterns: `(?:circuit(?: breaker)?|the circuit opens|open (?:the|a|its) circuit|(?:it )?opens|(?:pause|stop) it|pause (?:an? |the |each )?<key>|stop starting (?:attempts|anything))(?: <of> <key>)?`, apply: circuitKey},
	{patterns: `<of> <key>`, apply: circuitKey},
	{patterns: `(?:after|when|if|once) <count> failures?(?:(?: out)? of| in) <last><count>(?: attempts)? / (?:when|if|once|after) <count>(?: out)? of <last><count> attempts(?: <of> <key>)?(?: have)? fail(?:ed)?`,
		apply: func(d *draft, slots []string) {
			d.put("circuit", "open_after", strconv.Itoa(countOf(slots[0]))+" of "+strconv.Itoa(countOf(slots[1])))
			circuitKey(d, slots[2:])
		}},
	{patterns: `(?:with|on) <errors> / count only <errors> for the circuit / only <errors> counts? for the circuit`, apply: func(d *draft, slots []string) { d.put("circuit", "on", d.errorTypes(slots[0], true)) }},
	{patterns: `for <duration> / probe(?: (?:it|an open circuit|the open circuit|the circuit|again))? after <duration>`, apply: func(d *draft, slots []string) {
		d.put("circuit", "probe", d.duration("circuit.probe", slots[0]))
	}},
	{patterns: `probe it(?: with (?:one|a single) attempt)?`, apply: func(*draft, []string) {}},
}

func circuitKey(d *draft, slots []string) {
	if key := strings.Join(slots, ""); key != "" {
		d.put("circuit", "key", keyOf(key))
	}
}

func (d *draft) openCircuit(slots []string) {
	text := strings.ToLower(slots[0])
	d.mustKnow((strings.Contains(text, "circuit") || strings.Contains(text, "attempts")) && d.applyAll(circuitGrammar(), slots[0]))
}

// addGuard adds one bound: a number, its metric and, for a share of the usual value, of how many results.
func addGuard(rule string) func(*draft, []string) {
	return func(d *draft, slots []string) {
		value, metric := strings.ReplaceAll(slots[0], ",", ""), slots[1]
		d.refuseIf(words.Thousand.MatchString(slots[0]), "a number without a mark in it, such as 1000 or 1.5", document.Found(slots[0])+" (1.000 may be 1 or 1000)")
		name := d.now.value(metric)
		if metric[0] != '"' {
			name = strings.ToLower(metric)
		}
		d.refuseIf(metric[0] != '"' && !isMetric(name), `a number that a success reports: rows, bytes, a name with _, or one in quotes`, document.Found(metric))
		bound := map[string]any{rule: value}
		if len(slots) > 2 {
			if bound[rule] = value + "%"; slots[2] != "" {
				bound["of"] = slots[2]
			}
		}
		d.add("guard", func(string) any { return map[string]any{name: bound} })
	}
}

// percentOff returns how much a percentage lacks to a hundred, without the dust of binary fractions.
func percentOff(text string) string {
	rest, _ := strconv.ParseFloat(text, 64) // digits
	return decimal(math.Round((100-rest)*1e6) / 1e6)
}

// knownMetrics are names that a sentence may say as they are.
var knownMetrics = strings.Fields("rows bytes lines records items products files columns images pages errors orders entries documents")

func isMetric(name string) bool {
	return policy.IsMetricName(name) && (slices.Contains(knownMetrics, name) || strings.Contains(name, "_"))
}
