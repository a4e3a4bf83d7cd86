package english

import "maps"

// What the sentences about limits and the circuit mean, which set the parts of one field together.

func (d *draft) limit(slots []string) error {
	return d.addLimit(slots[3], inDigits(slots[0]), inDigits(slots[1]), slots[2])
}

func (d *draft) limitRunning(slots []string) error {
	return d.addLimit(slots[1], inDigits(slots[0]), "", "")
}

func (d *draft) limitRate(slots []string) error {
	return d.addLimit(slots[2], "", inDigits(slots[0]), slots[1])
}

func inDigits(count string) string { return number(countOf(count)) }

// addLimit adds a limit; a part that is empty was not said.
func (d *draft) addLimit(key, running, count, per string) error {
	limits, _ := d.doc["limits"].([]any)
	if d.lines["limits"] > 0 && len(limits) == 0 {
		return d.twice("limits", d.now.line, d.now.original())
	}
	field := element("limits", len(limits))
	limit := map[string]any{"key": key}
	if running != "" {
		limit["running"] = running
	}
	if count != "" {
		length, err := d.duration(field+".rate", period(per))
		if err != nil {
			return err
		}
		limit["rate"] = count + "/" + length
	}
	d.doc["limits"] = append(limits, limit)
	return d.setInner("limits", field)
}

func (d *draft) circuit(slots []string) error {
	err := d.setCircuit("circuit.key", map[string]any{"key": slots[0], "open_after": inDigits(slots[1]) + " of " + inDigits(slots[2])})
	d.lines["circuit.open_after"] = d.lines["circuit.key"]
	return err
}

func (d *draft) circuitOn(slots []string) error {
	types, err := d.errorTypes(slots[0], true)
	if err != nil {
		return err
	}
	return d.setCircuit("circuit.on", map[string]any{"on": types})
}

func (d *draft) circuitProbe(slots []string) error {
	length, err := d.duration("circuit.probe", slots[0])
	if err != nil {
		return err
	}
	return d.setCircuit("circuit.probe", map[string]any{"probe": length})
}

// setCircuit sets parts of the circuit, which only one sentence may say.
func (d *draft) setCircuit(path string, parts map[string]any) error {
	circuit, found := d.doc["circuit"].(map[string]any)
	if !found && d.lines["circuit"] > 0 {
		return d.twice("circuit", d.now.line, d.now.original())
	}
	if !found {
		circuit = make(map[string]any)
		d.doc["circuit"] = circuit
	}
	maps.Copy(circuit, parts)
	return d.setInner("circuit", path)
}
