package dashboard

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
)

var failuresPage = page{path: "failures", title: "Failures", nav: true, file: "failures", read: readFailures, live: []string{"failures-list"}}

type failures struct {
	Now     time.Time
	Groups  []operate.Failures
	Unnamed int // groups that are not shown
	Models  int64
	Past    []operate.Failures
}

const maxGroups = 100

// Share is how many models a group has beside the largest, in percent.
func (f *failures) Share(models int64) int64 { return max(1, 100*models/max(1, f.Groups[0].Models)) }

func readFailures(ctx context.Context, req *request) (any, error) {
	now, err := req.now(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := req.operator.Failures(ctx, operate.FailuresRequest{By: operate.ByFingerprint})
	if err != nil {
		return nil, err
	}
	past, err := req.operator.Failures(ctx, operate.FailuresRequest{By: operate.ByFingerprint, Past: true})
	page := &failures{Now: now, Groups: groups[:min(len(groups), maxGroups)], Past: past[:min(len(past), maxGroups)]}
	page.Unnamed = len(groups) - len(page.Groups)
	for _, group := range page.Groups {
		page.Models += group.Models
	}
	return page, err
}
