package shadow

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// Proposal is a rule by which a model would differ less from the old system: what others mean by the text of its own, see schedule.Alternatives.
type Proposal struct {
	UID     string `json:"uid"`
	Rule    string `json:"rrule"`
	Differs int    `json:"differs"`  // so many times by this rule
	Differ  int    `json:"differed"` // and by its own

	comparison *Comparison // of this model alone
}

// tryOthers begins to compare by other rules too.
func (t *track) tryOthers() {
	for _, rule := range schedule.Alternatives(cmp.Or(t.model.Rule, t.model.Policy.Rule)) {
		options := t.comparison.options
		options.Tell = nil
		p := Proposal{UID: t.sum.UID, Rule: rule, comparison: New(options)}
		p.comparison.Define(p.UID, func(at time.Time) (*model.Model, error) {
			made, err := t.source(at)
			if err != nil {
				return nil, err
			}
			changed := *made
			changed.Rule, changed.Timezone = rule, made.Zone()
			return &changed, changed.Resolve(changed.Policy, schedule.Parse)
		})
		t.others = append(t.others, p)
	}
}

// proposals are the other rules that fit better.
func (t *track) proposals() (better []Proposal, err error) {
	for _, p := range t.others {
		report, err := p.comparison.End()
		if err != nil {
			return nil, err
		}
		for _, sum := range report.Differing {
			p.Differs += sum.Differences()
		}
		if p.Differ = t.sum.Differences(); p.Differs < p.Differ {
			better = append(better, p)
		}
	}
	return better, nil
}
