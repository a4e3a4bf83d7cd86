package english

import (
	"fmt"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// limits says what each key allows.
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
}

func (out *printer) circuit(p *policy.Policy) {
	c := p.Circuit
	if c == nil {
		out.sayUsual("Open no circuit")
		return
	}
	out.say("Open the circuit of each %s after %s of %d attempts", c.Key, words.Count(c.Failures, "failure", "failures"), c.Of)
	if c.On != nil {
		out.say("Count only %s for the circuit", names(c.On, bareFailure))
	}
	out.say("Probe an open circuit after %s", document.FormatDurationInWords(c.Probe))
}

// promises says when the model rests, and how old its last success may be. Who says fresh_within and no warn_within has none.
func (out *printer) promises(p *policy.Policy) {
	if len(p.Closed) == 0 {
		out.sayUsual("Stay closed on no calendar")
	} else {
		out.say("Stay closed on %s", names(p.Closed, bareCalendar))
	}
	out.length("Keep the model fresh within %s", p.FreshWithin, "Promise no freshness")
	if p.WarnWithin > 0 {
		out.say("Warn after %s without a success", document.FormatDurationInWords(p.WarnWithin))
	}
}
