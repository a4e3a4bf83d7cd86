package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/listing"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Model is a model as it was at one instant. Every field is always there in JSON: a time that is not set is null, a text "".
type Model struct {
	UID    string       `json:"uid"`
	Status model.Status `json:"status"`

	model.State
	RefreshFor string        `json:"refresh_for"` // what the next attempt, or the one that runs, is for
	PlannedAt  time.Time     `json:"planned_at"`
	Phase      string        `json:"phase"`      // empty: none
	Reserved   []string      `json:"reserved"`   // keys with a reserved slot at refresh_at
	CountedBy  []string      `json:"counted_by"` // limits and circuit that count the attempt
	DisabledBy model.Stopper `json:"refresh_disabled_by"`
	GivesUpAt  time.Time     `json:"gives_up_at"`

	RetryStats

	Labels   map[string]string `json:"labels"`
	Host     string            `json:"host"` // of the input_url; empty: none, or a label of that name
	Rule     string            `json:"rrule"`
	Timezone string            `json:"timezone"`
	Dtstart  string            `json:"dtstart"`
	Policy   string            `json:"policy"`
	InForce  policy.Policy     `json:"policy_definition"`
	Payload  json.RawMessage   `json:"payload"`

	Rev   int64  `json:"rev"`
	Fault string `json:"fault"`
	// Rejected is the newest rejected message about the model; a list shows none.
	Rejected *explain.Rejection `json:"rejected"`

	View explain.View `json:"-"`
}

// newModel leaves out plan and payload if brief: they take long.
func newModel(s explain.View, brief bool) Model {
	r := s.Record
	m := Model{
		UID: r.UID, Status: s.Status, State: r.State, Reserved: strings.Fields(r.Reserved), CountedBy: strings.Fields(r.Counted),
		DisabledBy: r.DisabledBy, GivesUpAt: r.GivesUpAt(),
		RetryStats: NewRetryStats(int64(r.TotalRetries), int64(r.SuccessfulRetries), int64(r.RetriedCycles)),
		Labels:     r.Labels, Host: r.Host, Rule: r.Rule, Timezone: r.Timezone, Dtstart: r.Dtstart, Policy: cmp.Or(r.PolicyName, store.DefaultPolicyName), InForce: r.Policy,
		Fault: r.Fault, Rejected: s.Rejection, View: s,
	}
	m.Rev, _ = strconv.ParseInt(r.Rev(), 10, 64) // 0 is good enough for a rev that is no number
	if !r.RefreshAt.IsZero() || r.Running() {
		m.RefreshFor = cmp.Or(string(r.Trigger), "planned")
	}
	if r.Phase > 0 {
		m.Phase = document.FormatDuration(r.Phase)
	}
	if brief {
		return m
	}
	if m.PlannedAt = r.Planned(s.Now); json.Valid([]byte(r.Payload)) {
		m.Payload = json.RawMessage(r.Payload)
	}
	return m
}

// SoleModel is a model that is shown alone.
type SoleModel struct {
	Model

	Missing *explain.MissingRole `json:"missing"` // who has to go on, and is not there
}

// ReadModel reads a model that must be stored.
func ReadModel(ctx context.Context, queue *store.Queue, uid string) (SoleModel, error) {
	part := queue.Of(uid)
	found, err := explain.ReadModel(ctx, part, uid)
	if err == nil {
		err = found.ReadLiveness(ctx, part)
	}
	if err != nil {
		return SoleModel{}, err
	}
	return SoleModel{newModel(found, false), found.Missing()}, nil
}

// ListedModel is a model in a list.
type ListedModel struct {
	Model

	Because    string `json:"because"`     // why it waits
	LastReason string `json:"last_reason"` // why it is disabled, or why it failed last; empty: it neither fails nor is disabled
}

// ListRequest selects and orders models.
type ListRequest struct {
	Selector, Status, Prefix string // empty: all models
	Sort                     string // due, failing, or empty: none
	After                    string // the cursor of the page before; empty: the first page
	Limit                    int    // of models; 0: none
	Brief                    bool   // without plan and payload

	which   listing.Query
	nothing bool // no uid can begin like that
}

// Orders are the orders of a list.
var Orders = []string{listing.SortDue, listing.SortFailing}

// Validate refuses what is wrong for any queue.
func (r *ListRequest) Validate() (err error) {
	var terms []string
	switch {
	case r.Status != "" && !slices.Contains(model.SelectStatuses, r.Status):
		return refuse("status", "one of "+strings.Join(model.SelectStatuses, ", "), document.Found(r.Status))
	case r.Sort != "" && !slices.Contains(Orders, r.Sort):
		return refuse("sort", "one of "+strings.Join(Orders, ", "), document.Found(r.Sort))
	}
	if r.Selector != "" {
		terms = append(terms, r.Selector)
	}
	if r.Status != "" {
		terms = append(terms, model.SelectStatus+"="+r.Status)
	}
	if r.nothing = r.Prefix != "" && !document.IsUID(r.Prefix); r.Prefix != "" && !r.nothing {
		terms = append(terms, model.SelectUID+"="+r.Prefix+"*")
	}
	if r.which.Picks, err = model.ParseSelector(strings.Join(terms, ",")); err != nil {
		return refused(err)
	}
	r.which.Sort = r.Sort
	r.which.From, err = listing.ParseCursor(r.After, r.Sort)
	return refused(err)
}

// List hands over models as they are found. It returns the cursor of the next page; empty: there is none.
func (o Operator) List(ctx context.Context, r ListRequest, visit func([]ListedModel) error) (next string, err error) {
	if err := r.Validate(); err != nil || r.nothing {
		return "", err
	}
	listed := 0
	err = listing.Walk(ctx, o.Queue, r.which, func(found []listing.Item, _ listing.Cursor) error {
		if r.Limit > 0 {
			found = found[:min(len(found), r.Limit-listed)]
		}
		models := redis.Map(found, func(one listing.Item) ListedModel {
			return ListedModel{newModel(one.View, r.Brief), one.Because, one.Reason}
		})
		if err := visit(models); err != nil {
			return err
		}
		if listed += len(found); r.Limit > 0 && listed == r.Limit {
			next = found[len(found)-1].Cursor.String()
			return errEnough
		}
		return nil
	})
	return next, untilEnough(err)
}

// Attempt is an attempt that has ended.
type Attempt struct {
	model.Attempt

	Times      int    `json:"times"` // in a row; more than 1 only of attempts that do not count
	DurationMS int64  `json:"duration_ms"`
	WaitMS     *int64 `json:"wait_ms"` // until its worker said that the work began, and from then on; null where it did not say so
	WorkMS     *int64 `json:"work_ms"`
	DelayMS    *int64 `json:"delay_ms"` // of the retry; null where none was considered
	JitterMS   int64  `json:"jitter_ms"`
}

// NewAttempts adds the lengths of attempts.
func NewAttempts(past []model.Attempt) []Attempt {
	return redis.Map(past, func(one model.Attempt) Attempt {
		a := Attempt{Attempt: one, Times: max(1, one.Times), DurationMS: one.Duration.Milliseconds()}
		if wait, work, known := one.Lengths(); known {
			a.WaitMS, a.WorkMS = new(wait.Milliseconds()), new(work.Milliseconds())
		}
		if one.Overlap != "" {
			a.DelayMS, a.JitterMS = new(one.Delay.Milliseconds()), one.Jitter.Milliseconds()
		}
		return a
	})
}

// Log is the log of an attempt.
type Log struct {
	Attempt

	Text string `json:"log"` // its end, without secrets; empty: there is none, or it is not kept any more
}

// ReadLog reads the log of the attempt of a model that ended last, or of an older one: 1 is the last.
func ReadLog(ctx context.Context, queue *store.Queue, uid string, number int) (Log, error) {
	part := queue.Of(uid)
	past, err := report.Of(part).History(ctx, uid)
	switch {
	case err != nil:
		return Log{}, err
	case len(past) == 0:
		return Log{}, refuse("log", "an attempt in the history of "+uid, "none")
	case number < 1 || number > len(past):
		return Log{}, refuse("log", fmt.Sprintf("1 to %d, for the attempts that the history of %s has", len(past), uid), fmt.Sprint(number))
	}
	found := Log{Attempt: NewAttempts(past[number-1 : number])[0]}
	log, err := report.Of(part).Log(ctx, found.AttemptUID)
	if log != nil {
		found.Text = log.Text
	}
	return found, err
}

// Explanation is a model explained.
type Explanation struct {
	UID        string               `json:"uid"`
	Status     model.Status         `json:"status"`
	RefreshAt  time.Time            `json:"refresh_at"`
	RefreshWhy string               `json:"refresh_why"`
	GivesUpAt  time.Time            `json:"gives_up_at"`
	Missing    *explain.MissingRole `json:"missing"`
	WaitsFor   model.Blocker        `json:"waits_for"` // of the next start, if nobody knows when that opens; empty: nothing
	Summary    explain.Summary      `json:"telling"`
	Story      []string             `json:"story"` // what is printed, without what may come next
	Trace      []string             `json:"trace,omitempty"`
	Next       Forecasts            `json:"next"`

	Heading string   `json:"-"`
	Follows []string `json:"-"` // Next, for people
}

// Forecasts are the possible ends of the next attempt. Null: impossible.
type Forecasts struct {
	StartAt time.Time     `json:"start_at"` // of the next attempt; null: it runs already, none will, or nobody knows when
	Success *model.Branch `json:"success"`
	Failure *model.Branch `json:"failure"`
	Lost    *model.Branch `json:"lost"`
	GiveUp  *model.Branch `json:"give_up"`
}

// Explain explains why a model refreshes when it does; trace adds the rules that decided.
func Explain(ctx context.Context, queue *store.Queue, uid string, trace bool) (Explanation, error) {
	e, err := explain.Read(ctx, queue.Of(uid), uid)
	if err != nil {
		return Explanation{}, err
	}
	branch := func(b model.Branch) *model.Branch {
		if !b.Possible() {
			return nil
		}
		return &b
	}
	r, f := e.Record, &e.Forecast
	found := Explanation{
		UID: r.UID, Status: e.Status, RefreshAt: r.RefreshAt, RefreshWhy: r.Why, GivesUpAt: e.GivesUpAt(), Missing: e.Missing(), WaitsFor: e.WaitsFor,
		Summary: e.Summarize(), Story: e.Story(), Next: Forecasts{f.StartAt, branch(f.Success), branch(f.Failure), branch(f.TimedOut), branch(f.GiveUp)},
		Heading: e.Heading(), Follows: e.Next(),
	}
	if trace {
		found.Trace = e.Trace()
	}
	return found, nil
}

// maxNames bounds completions: more than a screen has.
const maxNames = 60

// UIDsLike are uids that begin with a text, in no order.
func UIDsLike(ctx context.Context, o Operator, begun string) (found []string, err error) {
	picks, err := model.ParseSelector(model.SelectUID + "=" + begun + "*")
	if err != nil {
		return nil, err
	}
	err = o.Queue.Each(func(part *store.Store) error {
		for place := store.WalkBegins; place != store.WalkEnds && len(found) <= maxNames; {
			uids, to, err := part.WalkModels(ctx, picks, place, 1)
			if found = append(found, uids...); err != nil {
				return err
			}
			place = to
		}
		return nil
	})
	return found, err
}

// PoliciesLike are the names of stored policies that begin with a text.
func PoliciesLike(ctx context.Context, o Operator, begun string) ([]string, error) {
	names, err := o.Queue.Parts[0].Report().PolicyNames(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return policy.IsInline(name) || !strings.HasPrefix(name, begun) }), err
}
