package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

var failuresPage = page{path: "failures", title: "Failures", nav: true, file: "failures", read: readFailures, live: []string{"failures-list"}}

// failures are the causes by which models fail.
type failures struct {
	Causes  []cause
	Unnamed int   // how many more there are
	Models  int64 // that fail by those that are named
	Past    []cause
}

// cause is one signature.
type cause struct {
	store.FailureGroup

	Name        string // its text
	Reason      string // an example
	Since, Last moment
	Share       int64 // of the largest, in percent
	Models      string
	Examples    []link
}

// mostFailures is how many causes a page shows of each kind.
const mostFailures = 100

func readFailures(ctx context.Context, v *visit) (any, error) {
	now, err := v.queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	known, err := v.queue.Report().SumFailureGroups(func(part *store.Store) ([]store.FailureGroup, error) { return part.Report().FailureGroups(ctx) })
	if err != nil {
		return nil, err
	}
	past, err := v.queue.Report().SumFailureGroups(func(part *store.Store) ([]store.FailureGroup, error) { return part.Report().PastFailureGroups(ctx) })
	if err != nil {
		return nil, err
	}
	page := &failures{Unnamed: max(0, len(known)-mostFailures)}
	for _, one := range known[:min(len(known), mostFailures)] {
		shown := newCause(v.site, one, now)
		shown.Share = max(1, 100*one.Models/max(1, known[0].Models))
		page.Causes = append(page.Causes, shown)
		page.Models += one.Models
	}
	for _, one := range past[:min(len(past), mostFailures)] {
		page.Past = append(page.Past, newCause(v.site, one, now))
	}
	return page, nil
}

func newCause(site *site, one store.FailureGroup, now time.Time) cause {
	shown := cause{
		FailureGroup: one, Name: cmp.Or(one.Text, one.ID), Reason: one.Reason, Since: newMoment(one.FirstAt, now), Last: newMoment(one.LastAt, now),
		Models: site.link("models", "l", model.SelectError+"="+one.ID),
	}
	if !one.PastAt.IsZero() {
		shown.Last = newMoment(one.PastAt, now)
	}
	for _, uid := range one.UIDs {
		shown.Examples = append(shown.Examples, link{Text: uid, Address: site.link("model", "uid", uid)})
	}
	return shown
}

// runFailures begins a bulk that runs what fails by one cause.
func runFailures(ctx context.Context, v *visit) (outcome, error) {
	id := v.get("error")
	if err := model.ValidateFingerprintID(id); err != nil {
		return outcome{}, err
	}
	selector, err := model.ParseSelector(model.SelectError + "=" + id)
	if err != nil {
		return outcome{}, err
	}
	wish := model.Bulk{Action: model.BulkRun, Selector: selector, By: v.by}
	if wish.Rate, err = model.ParseBulkRate(v.get("rate")); err != nil {
		return outcome{}, err
	}
	bulk, err := v.queue.Fleet().BeginNewBulk(ctx, wish)
	return outcome{told: fmt.Sprintf("The bulk %s runs all models that fail by %s.", bulk, id), next: v.link("steering")}, err
}
