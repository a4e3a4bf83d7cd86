package english

import "maps"

// What the sentences about limits and the circuit mean, which set the parts of one field together.

func (d *draft) limit(slots []string) {
	d.addLimit(slots[3], inDigits(slots[0]), inDigits(slots[1]), slots[2])
}

func (d *draft) limitRunning(slots []string) { d.addLimit(slots[1], inDigits(slots[0]), "", "") }

func (d *draft) limitRate(slots []string) { d.addLimit(slots[2], "", inDigits(slots[0]), slots[1]) }

func inDigits(count string) string { return number(countOf(count)) }

// addLimit adds a limit; a part that is empty was not said.
func (d *draft) addLimit(key, running, count, per string) {
	limits, _ := d.doc["limits"].([]any)
	if d.lines["limits"] > 0 && len(limits) == 0 {
		d.twice("limits", d.now.line, d.now.original())
	}
	field := element("limits", len(limits))
	limit := map[string]any{"key": key}
	if running != "" {
		limit["running"] = running
	}
	if count != "" {
		limit["rate"] = count + "/" + d.duration(field+".rate", period(per))
	}
	d.doc["limits"] = append(limits, limit)
	d.setInner("limits", field)
}

func (d *draft) circuit(slots []string) {
	d.setCircuit("circuit.key", map[string]any{"key": slots[0], "open_after": inDigits(slots[1]) + " of " + inDigits(slots[2])})
	d.lines["circuit.open_after"] = d.lines["circuit.key"]
}

func (d *draft) circuitOn(slots []string) {
	d.setCircuit("circuit.on", map[string]any{"on": d.errorTypes(slots[0], true)})
}

func (d *draft) circuitProbe(slots []string) {
	d.setCircuit("circuit.probe", map[string]any{"probe": d.duration("circuit.probe", slots[0])})
}

// setCircuit sets parts of the circuit, which only one sentence may say.
func (d *draft) setCircuit(path string, parts map[string]any) {
	circuit, found := d.doc["circuit"].(map[string]any)
	if !found && d.lines["circuit"] > 0 {
		d.twice("circuit", d.now.line, d.now.original())
	}
	if !found {
		circuit = make(map[string]any)
		d.doc["circuit"] = circuit
	}
	maps.Copy(circuit, parts)
	d.setInner("circuit", path)
}
