package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// asked is what a person wants to know of freshness.
type asked struct {
	selector, at string
	histogram    bool

	picks model.Selector
	past  time.Time // zero: now
}

func freshnessCommand(a *app) *cobra.Command {
	var which asked
	command := &cobra.Command{
		Use: "freshness", Short: "Tell how many models are as fresh as their policies promise, and which are stale for longest", Args: cobra.NoArgs,
		Long: `Tell how many models are fresh, late and stale, and how many have never succeeded yet, by fresh_within and warn_within of their policies, and which ten are stale for longest.
Indexes answer that at once; --selector and --histogram look at each model that they concern.

--at tells how it was, by undoing what the journal has told since; it reaches back as far as the journal does.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := which.read(); err != nil {
				return usageError{err}
			}
			return a.withStored(command.Context(), func(queue *store.Queue) error { return a.freshness(command.Context(), queue, &which) })
		},
	}
	bindSelector(command.Flags(), &which.selector)
	command.Flags().StringVar(&which.at, "at", "", "how it was at `TIME` (RFC 3339), by the journal")
	command.Flags().BoolVar(&which.histogram, "histogram", false, "also count models by the time since their last success")
	return command
}

func (w *asked) read() (err error) {
	if w.picks, err = model.ParseSelector(w.selector); err != nil || w.at == "" {
		return err
	}
	if w.past, err = time.Parse(time.RFC3339, w.at); err != nil {
		return document.Refuse("--at", "an RFC 3339 time", document.Found(w.at))
	}
	if w.past = w.past.UTC(); w.histogram {
		return document.Refuse("--histogram", "no --at with it, as the journal does not tell the age of each model", "both")
	}
	if strings.Contains(","+w.picks.String(), ","+model.SelectStatus) {
		return document.Refuse("--selector", "no status with --at, as it is that of now", document.Found(w.selector))
	}
	return nil
}

// mostWorst is how many stale models are named.
const mostWorst = 10

// survey is what is found out about the freshness of the models of a queue.
type survey struct {
	*asked
	queue  *store.Queue
	now    time.Time
	counts map[*store.Store]store.FreshnessCounts // by part
	worst  []staleView
	ages   []ageBucket
}

func (a *app) freshness(ctx context.Context, queue *store.Queue, which *asked) error {
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return err
	}
	s := survey{asked: which, queue: queue, now: now, counts: map[*store.Store]store.FreshnessCounts{}, worst: []staleView{}}
	if which.picks.All() && !which.histogram {
		err = queue.Each(func(part *store.Store) error { return s.index(ctx, part) })
	} else {
		err = s.walk(ctx)
	}
	if err == nil && !which.past.IsZero() {
		s.now, s.worst = which.past, nil
		err = queue.Each(func(part *store.Store) error { return s.undo(ctx, part, now) })
	}
	if err != nil {
		return err
	}
	sum := store.FreshnessCounts{}
	for _, counts := range s.counts {
		for freshness, count := range counts {
			sum[freshness] += count
		}
	}
	s.keepWorst()
	return a.printFreshness(&freshnessView{
		At: model.FormatTime(s.now), Selector: which.picks.String(), freshnessShare: newFreshnessShare(sum), Worst: s.worst, Histogram: s.ages,
	})
}

// index asks the indexes of a part.
func (s *survey) index(ctx context.Context, part *store.Store) (err error) {
	stats, err := part.Report().Stats(ctx)
	if s.counts[part] = stats.Freshness; err != nil || !s.past.IsZero() {
		return err
	}
	stale, err := part.Report().LongestStale(ctx, 0, mostWorst)
	if err != nil || len(stale) == 0 {
		return err
	}
	uids := make([]string, len(stale))
	for i, one := range stale {
		uids[i] = one.UID
	}
	found, err := explain.ReadModels(ctx, part, uids)
	if err != nil {
		return err
	}
	for _, one := range found {
		s.note(one)
	}
	return s.explain(ctx, part, found)
}

// walk looks at each model that is picked.
func (s *survey) walk(ctx context.Context) error {
	s.ages = newHistogram()
	for _, part := range s.queue.Parts {
		s.counts[part] = store.FreshnessCounts{}
		err := part.Report().EachSelected(ctx, s.picks, func(uids []string) error {
			found, err := explain.ReadModels(ctx, part, uids)
			if err != nil {
				return err
			}
			found = slices.DeleteFunc(explain.PickFrom(found, s.picks), func(one explain.Shown) bool { return !one.Record.Watched() })
			for _, one := range found {
				s.counts[part][one.Record.Freshness]++
				countAge(s.ages, &one.Record.Model, s.now)
				s.note(one)
			}
			s.keepWorst()
			return s.explain(ctx, part, found)
		})
		if err != nil {
			return s.queue.PartError(part, err)
		}
	}
	return nil
}

// note names a model that is stale.
func (s *survey) note(one explain.Shown) {
	since := one.Record.StaleSince()
	if since.IsZero() {
		return
	}
	s.worst = append(s.worst, staleView{
		UID: one.Record.UID, Since: optional(since), For: roughly(s.now.Sub(since)), LastSuccessAt: optional(one.Record.LastSuccessAt), since: since,
	})
}

// explain says why models that are named are stale.
func (s *survey) explain(ctx context.Context, part *store.Store, found []explain.Shown) error {
	found = slices.DeleteFunc(found, func(one explain.Shown) bool {
		return !slices.ContainsFunc(s.worst, func(v staleView) bool { return v.UID == one.Record.UID })
	})
	if err := explain.ReadReasons(ctx, part, found); err != nil {
		return err
	}
	for _, one := range found {
		why := string(one.Status)
		switch {
		case one.Record.Parked():
			why += ": " + one.Because
		case one.Reason != "":
			why += ": " + one.Reason
		}
		for i := range s.worst {
			if s.worst[i].UID == one.Record.UID {
				s.worst[i].Why = why
			}
		}
	}
	return nil
}

// keepWorst keeps those that are stale for longest.
func (s *survey) keepWorst() {
	slices.SortStableFunc(s.worst, func(a, b staleView) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.UID, b.UID)) })
	s.worst = s.worst[:min(len(s.worst), mostWorst)]
}

// undo turns what was found of a part into what was so in the past.
func (s *survey) undo(ctx context.Context, part *store.Store, now time.Time) error {
	reach, err := part.Report().JournalReach(ctx)
	switch {
	case err != nil:
		return err
	case reach.IsZero():
		return document.Refuse("--at", "a journal that tells of it", "none")
	case s.past.Before(reach) || s.past.After(now):
		want := "a time from " + model.FormatTime(reach) + " on, which is as far back as the journal reaches, to now"
		return document.Refuse("--at", want, document.Found(s.at))
	}
	picks, err := s.picker(ctx, part)
	if err != nil {
		return err
	}
	past, err := part.Report().PastFreshness(ctx, s.past, s.counts[part], picks)
	for _, one := range past.Stale[:min(len(past.Stale), mostWorst)] {
		v := staleView{UID: one.UID, Since: optional(one.Since), For: "since before the journal", since: one.Since}
		if !one.Since.IsZero() {
			v.For = roughly(s.past.Sub(one.Since))
		}
		s.worst = append(s.worst, v)
	}
	s.ages = nil
	return err
}

// picker tells which models of a part are picked, as they are now: one that is gone is not, unless all are.
func (s *survey) picker(ctx context.Context, part *store.Store) (func(uid string) bool, error) {
	if s.picks.All() {
		return func(string) bool { return true }, nil
	}
	picked := map[string]bool{}
	err := part.Report().EachSelected(ctx, s.picks, func(uids []string) error {
		found, err := explain.ReadModels(ctx, part, uids)
		for _, one := range explain.PickFrom(found, s.picks) {
			picked[one.Record.UID] = true
		}
		return err
	})
	return func(uid string) bool { return picked[uid] }, err
}
