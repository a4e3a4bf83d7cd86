package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/fingerprint"
	"github.com/refreshd/refreshd/model/policy"
)

// ByFingerprint groups failing models by the fingerprint of their last failure. The command line also accepts its old word, `error`.
const ByFingerprint = "fingerprint"

// FailuresRequest selects and groups failing models.
type FailuresRequest struct {
	Selector string
	By       string // ByFingerprint, policy, host, label:NAME or a key
	Past     bool   // fingerprints with which no model fails any more

	picks model.Selector
	key   policy.Key
	byKey bool // otherwise by fingerprint
}

// Validate refuses what is wrong for any queue.
func (r *FailuresRequest) Validate() (err error) {
	label, isLabel := strings.CutPrefix(r.By, "label:")
	template := map[string]string{"host": "{host(input_url)}", "policy": "{policy}"}[r.By]
	switch {
	case isLabel:
		template = "{label." + label + "}"
	case strings.HasPrefix(r.By, "{"):
		template = r.By
	}
	if r.byKey = r.By != ByFingerprint && r.By != model.SelectError; r.byKey {
		if r.key, err = policy.ParseKey(template); err != nil {
			return refuse("by", "fingerprint, policy, host, label:NAME or a key such as {host(feed_url)}", document.Found(r.By))
		}
	}
	if r.picks, err = model.ParseSelector(r.Selector); err != nil {
		return refused(err)
	}
	if r.Past && (r.byKey || !r.picks.All()) {
		return refuse("past", "neither `by` nor `selector` with it, as nothing is known of these models", "one of them")
	}
	return nil
}

// Failures is a group of failing models that have something in common.
type Failures struct {
	By string `json:"by"` // such as host=example.com; empty: the models without one
	report.FailureGroup

	fingerprints map[string]int64 // models by the ID of their fingerprint; nil: all have the same
}

// Summary describes the fingerprint of most models.
func (f *Failures) Summary() string {
	if f.fingerprints == nil {
		return cmp.Or(f.Reason, f.Text)
	}
	return fmt.Sprintf("%d by %s: %s", f.fingerprints[f.ID], f.ID, f.Text)
}

func newFailures(one report.FailureGroup) Failures {
	return Failures{By: model.SelectError + "=" + one.ID, FailureGroup: one}
}

// Failures groups the failing models, the largest group first.
func (o Operator) Failures(ctx context.Context, r FailuresRequest) ([]Failures, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	known, err := report.OfQueue(o.Queue).FailureGroups(func(part *store.Store) ([]report.FailureGroup, error) {
		if r.Past {
			return report.Of(part).PastFailureGroups(ctx)
		}
		return report.Of(part).FailureGroups(ctx)
	})
	if err != nil {
		return nil, err
	}
	if !r.byKey && r.picks.All() {
		return redis.Map(known, newFailures), nil
	}
	groups, err := o.groupFailures(ctx, r.picks, func(m *model.Model) string {
		if !r.byKey {
			return model.SelectError + "=" + m.FingerprintID
		}
		return r.key.Of(m.Payload, m.Labels, cmp.Or(m.PolicyName, policy.DefaultName))
	})
	for i := range groups {
		most := int64(0)
		for _, one := range known {
			if f := &groups[i]; f.fingerprints[one.ID] > most {
				most = f.fingerprints[one.ID]
				f.ID, f.Text, f.Reason, f.ErrorType, f.LastAt = one.ID, one.Text, one.Reason, one.ErrorType, one.LastAt
			}
		}
	}
	return groups, err
}

func (o Operator) groupFailures(ctx context.Context, selector model.Selector, keyOf func(*model.Model) string) ([]Failures, error) {
	failing, err := model.ParseSelector(strings.Trim("status=failing,"+selector.String(), ","))
	if err != nil {
		return nil, err
	}
	groups := map[string]*Failures{}
	err = o.Queue.Each(func(part *store.Store) error {
		return part.Report().EachPicked(ctx, failing, func(m *store.Record) error {
			by := keyOf(&m.Model)
			if groups[by] == nil {
				groups[by] = &Failures{By: by, fingerprints: map[string]int64{}, FailureGroup: report.FailureGroup{FirstAt: m.FailingSince}}
			}
			group := groups[by]
			group.Models++
			group.fingerprints[m.FingerprintID]++
			if m.FailingSince.Before(group.FirstAt) {
				group.FirstAt = m.FailingSince
			}
			group.UIDs = append(group.UIDs, m.UID)
			slices.Sort(group.UIDs) // the same three, however the walk goes
			group.UIDs = group.UIDs[:min(len(group.UIDs), 3)]
			return nil
		})
	})
	all := make([]Failures, 0, len(groups))
	for _, group := range groups {
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b Failures) int { return cmp.Or(cmp.Compare(b.Models, a.Models), cmp.Compare(a.By, b.By)) })
	return all, err
}

// FailureDetails describe a fingerprint.
type FailureDetails struct {
	Failures
	Count    int64    `json:"failures"`
	Began    int64    `json:"began"`    // times that a model began to fail with it
	Ended    int64    `json:"ended"`    // times that a model stopped failing with it
	Examples []string `json:"examples"` // at most ten uids
}

// SelectFailing returns the selector of the models that fail with a fingerprint.
func SelectFailing(id string) (string, error) {
	return model.SelectError + "=" + id, refused(fingerprint.ValidateID(id))
}

// Failure reads a fingerprint by its ID.
func (o Operator) Failure(ctx context.Context, id string) (d FailureDetails, err error) {
	selector, err := SelectFailing(id)
	if err != nil {
		return d, err
	}
	groups, err := report.OfQueue(o.Queue).FailureGroups(func(part *store.Store) ([]report.FailureGroup, error) {
		one, known, err := report.Of(part).FailureGroup(ctx, id)
		if !known {
			return nil, err
		}
		return []report.FailureGroup{one}, err
	})
	if err := requireNamed(len(groups) > 0, err, id, "a fingerprint with which models are failing, or were within a day"); err != nil {
		return d, err
	}
	one := groups[0]
	d = FailureDetails{Failures: newFailures(one), Count: one.Failures, Began: one.Began, Ended: one.Ended}
	picks, err := model.ParseSelector(selector)
	if err != nil {
		return d, err
	}
	err = o.Queue.Each(func(part *store.Store) error {
		return untilEnough(part.Report().EachPicked(ctx, picks, func(one *store.Record) error {
			if len(d.Examples) == maxExamples {
				return errEnough
			}
			d.Examples = append(d.Examples, one.UID)
			return nil
		}))
	})
	slices.Sort(d.Examples)
	d.UIDs = d.Examples[:min(len(d.Examples), 3)]
	return d, err
}
