package shadow

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// Proposal is a rule by which a model would differ less from the old system: what that means by the text of the rule, see schedule.Alternatives.
type Proposal struct {
	UID     string `json:"uid"`
	Rule    string `json:"rrule"`
	Differs int    `json:"differs"`  // by this rule
	Differ  int    `json:"differed"` // by its own
}

// other compares the runs of one model by another rule.
type other struct {
	rule       string
	comparison *Comparison
}

func (t *track) addOthers() {
	for _, rule := range schedule.Alternatives(cmp.Or(t.model.Rule, t.model.Policy.Rule)) {
		options := t.comparison.options
		options.Tell = nil
		o := other{rule, New(options)}
		o.comparison.Define(t.sum.UID, func(at time.Time) (*model.Model, error) {
			made, err := t.source(at)
			if err != nil {
				return nil, err
			}
			changed := *made
			changed.Rule, changed.Timezone = rule, made.Zone()
			return &changed, changed.Resolve(changed.Policy, schedule.Parse)
		})
		t.others = append(t.others, o)
	}
}

// proposals ends the comparisons by other rules.
func (t *track) proposals() (better []Proposal, err error) {
	for _, o := range t.others {
		report, err := o.comparison.End()
		if err != nil {
			return nil, err
		}
		p := Proposal{UID: t.sum.UID, Rule: o.rule, Differ: t.sum.Differences()}
		for _, sum := range report.Differing {
			p.Differs += sum.Differences()
		}
		if p.Differs < p.Differ {
			better = append(better, p)
		}
	}
	return better, nil
}
