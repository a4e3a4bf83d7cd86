package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// PolicyResult is the outcome for a policy.
type PolicyResult struct {
	Name      string             `json:"name"`
	Result    string             `json:"result"`
	Warnings  []string           `json:"warnings"`          // each with its position
	Plan      *Impact            `json:"plan"`              // null: not asked for
	Completed []string           `json:"completed"`         // fields that the policy names nothing of, and has from the policy `default`
	ReadAs    *schedule.ParsedAs `json:"read_as,omitempty"` // how the policy, or its rule, was read that was written in English
	Position  string             `json:"-"`                 // of the policy

	Differences []definitions.Difference `json:"-"` // from what is stored
}

// CheckPolicy returns the warnings about a policy, and how it was read.
func CheckPolicy(s definitions.Source, now time.Time) PolicyResult {
	r := PolicyResult{Name: s.Policy.Name, Result: "ok", Completed: s.Taken(), ReadAs: s.ReadAs(now), Position: s.Position("")}
	for _, w := range definitions.LintPolicy(s.Document, s.Policy, now) {
		r.Warnings = append(r.Warnings, document.OneLine(s.Position(w.Field)+": "+w.String()))
	}
	return r
}

// PutPolicies stores the policies of a file, or a stored one, and calls each with the results. With plan it only returns their effects. A name that
// is not empty renames the only one.
func (in Inputs) PutPolicies(ctx context.Context, from, name string, plan bool, each func(PolicyResult) error) error {
	sources, err := in.named(ctx, from, name)
	if err != nil {
		return err
	}
	return in.Connect(ctx, func(o Operator) error {
		for _, source := range sources {
			result, err := o.putPolicy(Acting(ctx, o), source, plan, 0, o.Queue.Fleet().PutPolicy)
			if err == nil {
				err = each(result)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// named reads policies of a file, or a stored one. A name that is not empty renames the only one.
func (in Inputs) named(ctx context.Context, from, name string) ([]definitions.Source, error) {
	sources, err := in.drafts(ctx, from)
	if err != nil {
		return nil, err
	}
	if name != "" && len(sources) > 1 {
		return nil, refuse("name", "one policy to be called so", fmt.Sprint(len(sources)))
	}
	for i := range sources {
		source := &sources[i]
		if name != "" {
			source.Policy.Name, source.Draft = name, source.Draft.Rename(name)
		}
		if err := policy.ValidateName(cmp.Or(source.Policy.Name, source.Draft.Name())); err != nil {
			return nil, source.At(err)
		}
	}
	return sources, definitions.Complete(sources, func() (policy.Policy, error) { return in.storedPolicy(ctx, policy.DefaultName) })
}

// putPolicy stores a policy by put, or with plan measures its effect, see measureImpact.
func (o Operator) putPolicy(
	ctx context.Context, source definitions.Source, plan bool, most int, put func(context.Context, policy.Policy) error,
) (result PolicyResult, err error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return result, err
	}
	p, before, everywhere := source.Policy, false, true // an earlier put may have ended halfway
	result = CheckPolicy(source, now)
	err = o.Queue.Each(func(part *store.Store) error {
		found, err := part.Policies(ctx, []string{p.Name})
		stored, is := found[p.Name]
		stored.Name = p.Name
		if part == o.Queue.Parts[0] {
			before, result.Differences = is, definitions.Compare(stored, p)
		}
		everywhere = everywhere && is && stored.Equal(p)
		return err
	})
	if err != nil {
		return result, err
	}
	switch {
	case plan:
		result.Result = "planned"
		result.Plan, err = o.measureImpact(ctx, p.Name, p, most)
		return result, err
	case everywhere:
		result.Result = ResultUnchanged
		return result, nil
	case before:
		result.Result = ResultUpdated
	default:
		result.Result = ResultCreated
	}
	return result, put(ctx, p)
}

// StoredPolicy is a stored policy in a list.
type StoredPolicy struct {
	Name     string         `json:"name"`
	Readable bool           `json:"readable"`
	Policy   *policy.Policy `json:"policy"` // null: it cannot be read
}

// Policies lists the stored policies.
func (o Operator) Policies(ctx context.Context) ([]StoredPolicy, error) {
	names, err := o.Queue.Parts[0].Report().PolicyNames(ctx)
	if err != nil {
		return nil, err
	}
	found, err := o.Queue.Parts[0].Policies(ctx, names)
	policies := make([]StoredPolicy, len(names))
	for i, name := range names {
		policies[i].Name = name
		if p, readable := found[name]; readable {
			p.Name = name
			policies[i] = StoredPolicy{name, true, &p}
		}
	}
	return policies, err
}

// RemovePolicy removes a stored policy. While models use it that has to be forced.
func (o Operator) RemovePolicy(ctx context.Context, name string, force bool) (PolicyResult, error) {
	used := 0
	if !force {
		if _, err := o.eachUser(ctx, name, 0, func(*store.Record) { used++ }); err != nil {
			return PolicyResult{}, err
		}
	}
	if used > 0 {
		return PolicyResult{}, hint.For(fmt.Errorf("%s: expected a policy that no model uses, found %d", name, used), hint.RemoveUsedPolicy, name)
	}
	removed, err := o.Queue.Fleet().RemovePolicy(ctx, name)
	return PolicyResult{Name: name, Result: ResultRemoved}, requireNamed(removed, err, name, "the name of a stored policy")
}

// PolicyChange is how two policies differ.
type PolicyChange struct {
	Differences []definitions.Difference `json:"differences"`
	Plan        *Impact                  `json:"plan"` // null: the first one is not stored
}

// ComparePolicies compares two policies, field by field. If the first one is stored, it also measures what the second would change for its models.
func (in Inputs) ComparePolicies(ctx context.Context, before, after string) (change PolicyChange, err error) {
	var both [2]definitions.Source
	for i, from := range []string{before, after} {
		sources, err := in.Policies(ctx, from)
		if err == nil && len(sources) > 1 {
			err = fmt.Errorf("%s: expected one policy, found %d", from, len(sources))
		}
		if err != nil {
			return change, err
		}
		both[i] = sources[0]
	}
	change.Differences = definitions.Compare(both[0].Policy, both[1].Policy)
	if both[0].Stored {
		err = in.Connect(ctx, func(o Operator) error {
			change.Plan, err = o.measureImpact(ctx, both[0].Policy.Name, both[1].Policy, 0)
			return err
		})
	}
	return change, err
}

// Impact is the effect of a policy on the models that use it. If it plans otherwise, models that wait for a planned refresh get a new plan; for the
// others it takes effect at their next decision.
type Impact struct {
	Models    int `json:"models"`      // use the policy
	Changed   int `json:"changed"`     // would decide otherwise than now: another planned refresh, deadline or retry
	DueAtOnce int `json:"due_at_once"` // are due now, so that they start under it at once
	Running   int `json:"running"`     // decide when their attempt ends
	Disabled  int `json:"disabled"`    // decide nothing until they are enabled or updated
	Replanned int `json:"replanned"`   // would start at another time than they wait for, or wait for none any more
	// FirstStarts are when the first of these would start, different instants, earliest first.
	FirstStarts []string `json:"first_starts"`
	looked      int      // at the first models of the queue alone, and how many; 0: at all
}

// Sentences describes it, with times as clock writes them.
func (i *Impact) Sentences(clock func(time.Time) string) (sentences []string) {
	least, anew := "", "None is planned anew."
	if i.looked > 0 {
		sentences = []string{fmt.Sprintf("The numbers are of a sample, the first %d models of the queue.", i.looked)}
		least, anew = "at least ", "None of these is planned anew."
	}
	if i.Replanned > 0 {
		starts := redis.Map(i.FirstStarts, func(text string) string {
			at, _ := time.Parse(time.RFC3339, text) // as it was written
			return clock(at)
		})
		anew = strings.TrimSuffix(fmt.Sprintf("Planned anew: %s%d, first at %s", least, i.Replanned, strings.Join(starts, ", ")), ", first at ") + "."
	}
	return append(sentences, words.Sentence(fmt.Sprintf("%s%s it, %[1]s%[3]d would decide otherwise", least, words.Count(i.Models, "model uses", "models use"), i.Changed)),
		fmt.Sprintf("Due at once: %s%d. Running: %[1]s%[3]d. Disabled: %[1]s%[4]d.", least, i.DueAtOnce, i.Running, i.Disabled), anew, "The others decide at their next refresh.")
}

// String describes it in a line.
func (i *Impact) String() string { return strings.Join(i.Sentences(explain.UTC), " ") }

// mostAsked bounds the models that a page reads, as each costs a call of Redis, and maxFirstStarts those that it names.
const mostAsked, maxFirstStarts = 400, 3

// measureImpact decides for the models that use a policy what they would do under another one. It reads at most the first most models of the queue;
// 0: all.
func (o Operator) measureImpact(ctx context.Context, name string, policy policy.Policy, most int) (*Impact, error) {
	now, err := o.Queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	total, schedules := &Impact{}, schedule.Cache{}
	total.looked, err = o.eachUser(ctx, name, most, func(record *store.Record) {
		total.Models++
		switch {
		case record.Disabled:
			total.Disabled++
		case record.Running():
			total.Running++
		case record.Due(now):
			total.DueAtOnce++
		}
		before, alike := forecastOfRun(&record.Model, now), record.Policy.PlansAlike(policy)
		// A failure to compile for this model counts as a difference.
		if err := record.Resolve(policy, schedules.Get); err != nil || forecastOfRun(&record.Model, now) != before {
			total.Changed++
		}
		if alike {
			return
		}
		decision, outcome := record.Replan(now)
		if outcome != model.Applied {
			return
		}
		total.Replanned++
		at := model.FormatTime(decision.Next.RefreshAt)
		if place, known := slices.BinarySearch(total.FirstStarts, at); at != "" && !known {
			total.FirstStarts = slices.Insert(total.FirstStarts, place, at)
			total.FirstStarts = total.FirstStarts[:min(len(total.FirstStarts), maxFirstStarts)]
		}
	})
	return total, err
}

// forecastOfRun forecasts a run by hand, which any model can do in any state.
func forecastOfRun(m *model.Model, now time.Time) model.Forecast {
	asked := *m
	run, _ := asked.Run(true, now) // forced: it cannot be refused
	asked.State = run.Next
	f := asked.Forecast(now)
	f.Success.Ended, f.Failure.Ended, f.TimedOut.Ended = nil, nil, nil // the branches, which are compared, say the same
	return f
}

// eachUser visits the models that use a policy. It reads at most the first most models of the queue, 0: all, and returns a bound that it met.
func (o Operator) eachUser(ctx context.Context, name string, most int, visit func(*store.Record)) (bounded int, err error) {
	looked := 0
	err = o.Queue.Each(func(part *store.Store) error {
		if bounded > 0 {
			return nil
		}
		return untilEnough(part.Report().EachPicked(ctx, model.Selector{}, func(record *store.Record) error {
			if looked++; record.Uses(name) {
				visit(record)
			}
			if looked != most {
				return nil
			}
			bounded = looked
			return errEnough
		}))
	})
	return bounded, err
}

// Inputs are where policies and models come from that are only looked at, or are yet to be stored. A queue is connected to only where one of them
// is named that is stored there.
type Inputs struct {
	Open    func(path string) (name string, in io.ReadCloser, err error) // a file, or standard input (-); the name is for people
	Connect func(ctx context.Context, do func(Operator) error) error
	// Known: the address of Redis is given. Otherwise policies are completed with the built-in one.
	Known bool
	// Note is called when the stored default cannot be read, so that the built-in one completes policies, and when a document is refused.
	Note func(text string)
}

// documents reads the policies of a file, or a stored policy if there is no such file. They are decoded, but not checked.
func (in Inputs) documents(ctx context.Context, from string) (name string, docs []definitions.Document, err error) {
	name, file, err := in.Open(from)
	if errors.Is(err, os.ErrNotExist) && policy.ValidateName(from) == nil {
		doc, err := in.stored(ctx, from)
		return name, []definitions.Document{doc}, err
	}
	if err != nil {
		return name, nil, err
	}
	defer func() { _ = file.Close() }() // only read
	docs, err = definitions.ReadPolicies(name, file)
	return name, docs, err
}

func (in Inputs) stored(ctx context.Context, name string) (doc definitions.Document, err error) {
	doc = definitions.Document{Stored: true, Position: func(string) string { return "stored policy " + name }}
	err = in.Connect(ctx, func(o Operator) error {
		text, found, err := o.Queue.Parts[0].Report().PolicyText(ctx, name)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("%s: expected a file or the name of a stored policy, found neither", name)
		}
		if err := json.Unmarshal([]byte(text), &doc.Value); err != nil {
			return doc.At(fmt.Errorf("expected JSON: %w", err))
		}
		return nil
	})
	return doc, err
}

func (in Inputs) storedPolicy(ctx context.Context, name string) (p policy.Policy, err error) {
	doc, err := in.stored(ctx, name)
	if err != nil {
		return p, err
	}
	if p, err = policy.ParseStored(doc.Value); err != nil {
		err = doc.At(err)
	}
	p.Name = name
	return p, err
}

// drafts reads policies that are not completed yet, unless they are stored.
func (in Inputs) drafts(ctx context.Context, from string) ([]definitions.Source, error) {
	name, docs, err := in.documents(ctx, from)
	if err == nil && len(docs) == 0 {
		err = fmt.Errorf("%s: expected a policy, found nothing", name)
	}
	if err != nil {
		return nil, err
	}
	return definitions.Drafts(docs, from)
}

// Policies reads one policy or more, of a file or stored under that name, and completes them. An error names the position of the first that is none.
func (in Inputs) Policies(ctx context.Context, from string) ([]definitions.Source, error) {
	sources, err := in.drafts(ctx, from)
	if err == nil {
		err = definitions.Complete(sources, func() (policy.Policy, error) { return in.usual(ctx), nil })
	}
	if err != nil {
		return nil, err
	}
	return sources, nil
}

// usual completes policies that are not stored: the stored policy `default` if it can be read, or else the built-in one.
func (in Inputs) usual(ctx context.Context) policy.Policy {
	if !in.Known {
		return policy.Default()
	}
	usual, err := in.storedPolicy(ctx, policy.DefaultName)
	if err != nil {
		in.Note("completed with the built-in policy: " + err.Error())
		return policy.Default()
	}
	return usual
}
