package english

import (
	"fmt"
	"maps"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// What the sentences about limits and the circuit mean, which set the parts of one field together.

func (d *draft) addLimit(key, running, count, per string) {
	limits, _ := d.doc["limits"].([]any)
	if d.lines["limits"] > 0 && len(limits) == 0 {
		d.twice("limits", d.now.line, d.now.original())
	}
	field := element("limits", len(limits))
	limit := map[string]any{"key": key}
	if running != "" {
		limit["running"] = number(countOf(running))
	}
	if count != "" {
		limit["rate"] = number(countOf(count)) + "/" + d.duration(field+".rate", period(per))
	}
	d.doc["limits"] = append(limits, limit)
	d.setInner("limits", field)
}

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

func (out *printer) limits(p *policy.Policy) {
	if len(p.Limits) == 0 {
		out.sayUsual("Set no limits")
	}
	for _, limit := range p.Limits {
		running := fmt.Sprintf("un at most %d at a time", limit.Running)
		rate := fmt.Sprintf("tart at most %d in %s", limit.Rate.Count, document.FormatDurationInWords(limit.Rate.Per))
		switch {
		case limit.Rate.Count == 0:
			out.say("R%s for each %s", running, limit.Key)
		case limit.Running == 0:
			out.say("S%s for each %s", rate, limit.Key)
		default:
			out.say("R%s and s%s for each %s", running, rate, limit.Key)
		}
	}
	switch p.RetryAfterScope {
	case policy.ScopeModel:
		out.say("Let a retry_after close no keys")
	case policy.ScopeKey:
		out.say("Let a retry_after close keys")
	default:
		out.sayUsual("Let a retry_after close keys only after http_429")
	}
	if c := p.Circuit; c == nil {
		out.sayUsual("Open no circuit")
	} else {
		out.say("Open the circuit of each %s after %s of %d attempts", c.Key, words.Count(c.Failures, "failure", "failures"), c.Of)
		if c.On != nil {
			out.say("Count only %s for the circuit", names(c.On, bareFailure))
		}
		out.say("Probe an open circuit after %s", document.FormatDurationInWords(c.Probe))
	}
	if len(p.Closed) == 0 {
		out.sayUsual("Stay closed on no calendar")
	} else {
		out.say("Stay closed on %s", names(p.Closed, func(text string) string { return bare(text, isCalendar(text)) }))
	}
	out.length("Keep the model fresh within %s", p.FreshWithin, "Promise no freshness")
	if p.WarnWithin > 0 {
		out.say("Warn after %s without a success", document.FormatDurationInWords(p.WarnWithin))
	}
}

func bareFailure(text string) string {
	if statusClass.MatchString(text) {
		return text
	}
	return bareName(text)
}
