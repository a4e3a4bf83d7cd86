package store

import (
	"cmp"
	"context"
	"errors"
)

// CountPolicies counts the models that use each policy, of at most about so many models in each part; all: there are no others.
func (q QueueReport) CountPolicies(ctx context.Context, most int) (uses map[string]int, models int, all bool, err error) {
	uses, all = map[string]int{}, true
	err = q.Each(func(part *Store) error {
		looked := 0
		err := part.EachModel(ctx, "", func(uids []string) error {
			if looked >= most {
				return errCounted
			}
			names, err := part.Report().PoliciesOf(ctx, uids)
			for _, name := range names {
				uses[cmp.Or(name, DefaultPolicyName)]++
			}
			looked += len(uids)
			return err
		})
		models += looked
		if errors.Is(err, errCounted) {
			all, err = false, nil
		}
		return err
	})
	return uses, models, all, err
}

// errCounted ends a walk that has counted enough.
var errCounted = errors.New("counted enough")
