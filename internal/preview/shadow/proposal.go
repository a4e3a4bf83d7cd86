package shadow

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// Proposal is a rule with which a model would differ less: another reading of the text of its own, see schedule.Alternatives.
type Proposal struct {
	UID     string `json:"uid"`
	Rule    string `json:"rrule"`
	Differs int    `json:"differs"`  // so many times by this rule
	Differ  int    `json:"differed"` // and by its own

	track *track
}

// tryOthers also judges the runs by other rules.
func (t *track) tryOthers() {
	for _, rule := range schedule.Alternatives(cmp.Or(t.model.Rule, t.model.Policy.Rule)) {
		options := t.comparison.options
		options.Tell = nil
		other := newTrack(New(options), t.sum.UID, func(at time.Time) (*model.Model, error) {
			made, err := t.source(at)
			if err != nil {
				return nil, err
			}
			changed := *made
			changed.Rule, changed.Timezone = rule, made.Zone()
			return &changed, changed.Resolve(changed.Policy, schedule.Parse)
		})
		t.others = append(t.others, Proposal{UID: t.sum.UID, Rule: rule, track: other})
	}
}

func (t *track) proposals(from, to time.Time) (better []Proposal, err error) {
	for _, p := range t.others {
		if err := p.track.end(from, to); err != nil {
			return nil, err
		}
		if p.Differs, p.Differ = p.track.sum.Differences(), t.sum.Differences(); p.Differs < p.Differ {
			better = append(better, p)
		}
	}
	return better, nil
}
