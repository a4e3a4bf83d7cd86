package english

import (
	"maps"
	"strings"

	"github.com/refreshd/refreshd/model/policy"
)

// addLimit takes a key, how many run at a time, how many start, and in what time; the last three may be empty.
func (d *draft) addLimit(key, running, count, per string) {
	limits, _ := d.doc["limits"].([]any)
	if d.lines["limits"] > 0 && len(limits) == 0 {
		d.twice("limits", d.now.line, d.now.original())
	}
	field := element("limits", len(limits))
	limit := map[string]any{"key": keyOf(key)}
	if running != "" {
		limit["running"] = number(countOf(running))
	}
	if count != "" {
		limit["rate"] = number(countOf(count)) + "/" + d.duration(field+".rate", period(per))
	}
	d.doc["limits"] = append(limits, limit)
	d.setInner("limits", field)
}

// keyOf makes a template of "host of input_url".
func keyOf(text string) string {
	if text[0] == '{' {
		return text
	}
	return "{host(" + text[strings.LastIndex(text, " ")+1:] + ")}"
}

// circuitTraits are what a sentence may say of a circuit, in any order.
var circuitTraits = []form{
	{patterns: `(?:circuit(?: breaker)?|the circuit opens|open (?:the|a) circuit|(?:it )?opens|(?:pause|stop) it|stop starting (?:attempts|anything))(?: <of> <key>)?`, apply: circuitKey},
	{patterns: `<of> <key>`, apply: circuitKey},
	{patterns: `(?:after|when|if|once) <count> failures?(?: out)? of <last><count>(?: attempts)? / (?:when|if|once|after) <count>(?: out)? of <last><count> attempts(?: <of> <key>)?(?: have)? fail(?:ed)?`,
		apply: func(d *draft, slots []string) {
			d.setCircuit("open_after", number(countOf(slots[0]))+" of "+number(countOf(slots[1])))
			circuitKey(d, slots[2:])
		}},
	{patterns: `(?:with|on) <errors> / count only <errors> for the circuit`, apply: func(d *draft, slots []string) { d.setCircuit("on", d.errorTypes(slots[0], true)) }},
	{patterns: `for <duration> / probe(?: (?:it|an open circuit|the open circuit|again))? after <duration>`, apply: func(d *draft, slots []string) {
		d.setCircuit("probe", d.duration("circuit.probe", slots[0]))
	}},
	{patterns: `probe it(?: with (?:one|a single) attempt)?`, apply: func(*draft, []string) {}},
}

func circuitKey(d *draft, slots []string) {
	if key := strings.Join(slots, ""); key != "" {
		d.setCircuit("key", keyOf(key))
	}
}

func (d *draft) openCircuit(slots []string) {
	if text := strings.ToLower(slots[0]); !strings.Contains(text, "circuit") && !strings.Contains(text, "attempts") || !d.applyAll(circuitGrammar(), slots[0]) {
		d.fail(errNotKnown)
	}
}

func (d *draft) setCircuit(part string, value any) {
	circuit, found := d.doc["circuit"].(map[string]any)
	if !found && d.lines["circuit"] > 0 {
		d.twice("circuit", d.now.line, d.now.original())
	}
	if circuit = maps.Clone(circuit); !found {
		circuit = make(map[string]any)
	}
	circuit[part] = value
	d.doc["circuit"] = circuit
	d.setInner("circuit", "circuit."+part)
}

// align says how retries and the schedule go together. Several sentences may say the same.
func align(alignment policy.Alignment) func(*draft, []string) {
	return func(d *draft, _ []string) {
		if d.doc["alignment"] != string(alignment) {
			d.set("alignment", string(alignment))
		}
	}
}
