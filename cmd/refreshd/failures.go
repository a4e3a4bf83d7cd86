package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func failuresCommand(a *app) *cobra.Command {
	var which failuresFlags
	command := &cobra.Command{
		Use: "failures", Short: "Tell why models are failing: by cause, host, label or policy", Args: cobra.NoArgs,
		Long: `Tell how many models are failing by each signature: by error type and reason, without what differs from model to model, such as
"http_503: GET <url>: 503 Service Unavailable". By host, label or policy, the cause is that of most models of the line.`,
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, _ []string) error {
			return a.failures(ctx, queue, &which)
		}),
	}
	bindSelector(command.Flags(), &which.selector)
	command.Flags().StringVar(&which.by, "by", byError, "a line for each `WHAT`: error, policy, host (of input_url), label:NAME, or a key such as {host(feed_url)}")
	command.Flags().BoolVar(&which.past, "past", false, "by what models were failing within a day, and none is any more")
	command.AddCommand(
		&cobra.Command{Use: "show SIGNATURE", Short: "Tell all that is known of a signature, and ten models", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.showFailure)},
		runFailuresCommand(a))
	return command
}

func runFailuresCommand(a *app) *cobra.Command {
	var wish many
	command := &cobra.Command{
		Use: "run SIGNATURE", Short: "Run all models that are failing by a signature, as model run -l error=SIGNATURE", Args: cobra.ExactArgs(1),
		RunE: a.onStored(func(ctx context.Context, queue *store.Queue, ids []string) (err error) {
			same := model.Command{Type: model.CommandRun}
			if same.By, err = a.wantedBy(); err != nil {
				return err
			}
			if err := model.ValidateFingerprintID(ids[0]); err != nil {
				return usageError{err}
			}
			wish.selector, wish.yes = model.SelectError+"="+ids[0], true
			return a.changeMany(ctx, operate.Operator{Queue: queue, By: same.By}, &wish, &same)
		}),
	}
	wish.bindBounds(command.Flags())
	a.bindBy(command.Flags())
	return command
}

// failuresFlags say which failing models are told of, and how they are sorted.
type failuresFlags struct {
	selector, by string
	past         bool
}

const byError = "error"

// key is what models are sorted by; false: by their signatures.
func (f *failuresFlags) key() (key policy.Key, is bool, err error) {
	label, isLabel := strings.CutPrefix(f.by, "label:")
	template := map[string]string{"host": "{host(input_url)}", "policy": "{policy}"}[f.by]
	switch {
	case f.by == byError:
		return key, false, nil
	case isLabel:
		template = "{label." + label + "}"
	case strings.HasPrefix(f.by, "{"):
		template = f.by
	}
	if key, err = policy.ParseKey(template); err != nil {
		return key, false, usagef("--by: expected error, policy, host, label:NAME or a key such as {host(feed_url)}, found %s", document.Found(f.by))
	}
	return key, true, nil
}

// failureView is a group of failing models as -o json shows it.
type failureView struct {
	By        string   `json:"by"`        // what is the same of them: host=example.com; "": none has it
	Models    int64    `json:"models"`    // that are failing
	Since     *string  `json:"since"`     // by error: its first failure; otherwise since when the first model is failing
	Last      *string  `json:"last"`      // the last failure by this error
	PastSince *string  `json:"past_at"`   // when the last model ceased to fail by it; null: some are failing
	Error     string   `json:"error"`     // id of the signature, of most of them
	Signature string   `json:"signature"` // its text
	Reason    string   `json:"reason"`    // of its last failure
	ErrorType string   `json:"error_type"`
	UIDs      []string `json:"uids"` // of three of them

	since  time.Time
	errors map[string]int64 // how many of them fail by each; nil: all by one
}

func (v *failureView) describe(one *store.FailureGroup) {
	v.Error, v.Signature, v.Reason, v.ErrorType, v.Last = one.ID, one.Text, one.Reason, one.ErrorType, optional(one.LastAt)
}

func (a *app) failures(ctx context.Context, queue *store.Queue, which *failuresFlags) error {
	key, byKey, err := which.key()
	if err != nil {
		return err
	}
	selector, err := model.ParseSelector(which.selector)
	if err != nil {
		return usageError{err}
	}
	if which.past && (byKey || !selector.All()) {
		return usagef("--past: expected neither --by nor -l, as nothing is known of these models")
	}
	read := func(part *store.Store) ([]store.FailureGroup, error) { return part.Report().FailureGroups(ctx) }
	if which.past {
		read = func(part *store.Store) ([]store.FailureGroup, error) { return part.Report().PastFailureGroups(ctx) }
	}
	known, err := queue.Report().SumFailureGroups(read)
	if err != nil {
		return err
	}
	if !byKey && selector.All() {
		return a.printFailures(viewSignatures(known))
	}
	groups, err := groupFailures(ctx, queue, selector, func(m *model.Model) string {
		if !byKey {
			return model.SelectError + "=" + m.FingerprintID
		}
		return key.Of(m.Payload, m.Labels, cmp.Or(m.PolicyName, policy.DefaultName))
	})
	if err != nil {
		return err
	}
	for i := range groups {
		groups[i].nameError(known)
	}
	return a.printFailures(groups)
}

func viewSignatures(known []store.FailureGroup) []failureView {
	views := make([]failureView, len(known))
	for i := range known {
		one := &known[i]
		views[i] = failureView{By: model.SelectError + "=" + one.ID, Models: one.Models, Since: optional(one.FirstAt), PastSince: optional(one.PastAt), UIDs: append([]string{}, one.UIDs...)}
		views[i].describe(one)
	}
	return views
}

// nameError says by which signature most of the group are failing.
func (v *failureView) nameError(known []store.FailureGroup) {
	most := int64(0)
	for i := range known {
		if n := v.errors[known[i].ID]; n > most {
			most = n
			v.describe(&known[i])
		}
	}
}

// groupFailures sorts the failing models that a selector picks, the largest group first.
func groupFailures(ctx context.Context, queue *store.Queue, selector model.Selector, keyOf func(*model.Model) string) ([]failureView, error) {
	failing, err := model.ParseSelector("status=failing," + selector.String())
	if selector.All() {
		failing, err = model.ParseSelector("status=failing")
	}
	if err != nil {
		return nil, err
	}
	groups := map[string]*failureView{}
	err = explain.EachPicked(ctx, queue, failing, func(found []explain.Shown) error {
		for _, one := range found {
			m, by := &one.Record.Model, keyOf(&one.Record.Model)
			if groups[by] == nil {
				groups[by] = &failureView{By: by, UIDs: []string{}, errors: map[string]int64{}, since: m.FailingSince}
			}
			groups[by].add(m)
		}
		return nil
	})
	all := make([]failureView, 0, len(groups))
	for _, group := range groups {
		group.Since = optional(group.since)
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b failureView) int { return cmp.Or(cmp.Compare(b.Models, a.Models), cmp.Compare(a.By, b.By)) })
	return all, err
}

func (v *failureView) add(m *model.Model) {
	v.Models++
	v.errors[m.FingerprintID]++
	if m.FailingSince.Before(v.since) {
		v.since = m.FailingSince
	}
	if v.UIDs = append(v.UIDs, m.UID); len(v.UIDs) > 3 { // the same ones, however the walk goes
		slices.Sort(v.UIDs)
		v.UIDs = v.UIDs[:3]
	}
}

func (a *app) printFailures(views []failureView) error {
	if a.json() {
		return printJSONLines(a.stdout, views, func(v *failureView) any { return *v })
	}
	t := a.newTable("MODELS", "BY", "SINCE", "LAST", "UIDS", "REASON")
	for _, v := range views {
		t.Row(strconv.FormatInt(v.Models, 10), cmp.Or(v.By, "-"), instant(v.Since), instant(v.Last), cmp.Or(strings.Join(v.UIDs, " "), "-"),
			v.cause())
	}
	return t.Flush()
}

// cause is what most of the group have in common.
func (v *failureView) cause() string {
	text := cmp.Or(v.Reason, v.Signature)
	if most := v.errors[v.Error]; v.errors != nil {
		text = fmt.Sprintf("%d by %s: %s", most, v.Error, v.Signature)
	}
	return document.Shorten(text, 120)
}

// instant is a time of JSON in a table.
func instant(at *string) string {
	if at == nil {
		return "-"
	}
	return *at
}

// signatureView is a signature as -o json shows it.
type signatureView struct {
	failureView
	Failures int64    `json:"failures"` // how many there were
	Began    int64    `json:"began"`    // how often a model began to fail by it
	Ended    int64    `json:"ended"`    // how often one ceased to
	Examples []string `json:"examples"` // at most ten uids
}

func (a *app) showFailure(ctx context.Context, queue *store.Queue, ids []string) error {
	if err := model.ValidateFingerprintID(ids[0]); err != nil {
		return usageError{err}
	}
	found, err := queue.Report().SumFailureGroups(func(part *store.Store) ([]store.FailureGroup, error) {
		one, known, err := part.Report().ReadFailureGroup(ctx, ids[0])
		if !known {
			return nil, err
		}
		return []store.FailureGroup{one}, err
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: expected a signature by which models are failing, or were within a day, found none of that name", ids[0])
	}
	if err != nil {
		return err
	}
	one := &found[0]
	v := signatureView{failureView: viewSignatures(found)[0], Failures: one.Failures, Began: one.Began, Ended: one.Ended}
	if v.Examples, err = failingBy(ctx, queue, ids[0]); err != nil {
		return err
	}
	v.UIDs = v.Examples[:min(len(v.Examples), 3)]
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	return a.print(v, [][2]any{
		{"error", v.Error}, {"signature", v.Signature}, {"models", count(v.Models) + "  that are failing by it now"}, {"since", model.FormatTime(one.FirstAt)},
		{"last", model.FormatTime(one.LastAt)}, {"reason", v.Reason}, {"error type", v.ErrorType}, {"of", one.UID}, {"failures", count(v.Failures)},
		{"began", count(v.Began) + "  times a model began to fail by it"}, {"ended", count(v.Ended) + "  times one ceased to"},
		{"uids", strings.Join(v.Examples, " ")},
	})
}

// failingBy names ten models that are failing by a signature.
func failingBy(ctx context.Context, queue *store.Queue, id string) ([]string, error) {
	selector, err := model.ParseSelector(model.SelectError + "=" + id)
	if err != nil {
		return nil, err
	}
	uids := []string{}
	err = explain.EachPicked(ctx, queue, selector, func(found []explain.Shown) error {
		for _, one := range found {
			if uids = append(uids, one.Record.UID); len(uids) == 10 {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	slices.Sort(uids)
	return uids, err
}
