package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

var steeringPage = page{
	path: "steering", title: "Steering", nav: true, file: "steering", read: readSteering,
	live: []string{"steering-holds", "steering-circuits", "steering-limits", "steering-calendars", "steering-bulks"},
}

// steering shows what keeps models from starting, and running bulks.
type steering struct {
	Now       time.Time
	Holds     []flow.HoldStatus
	Circuits  []operate.Circuit
	Limits    []flow.LimitUse
	Calendars []operate.Calendar
	Bulks     []operate.Bulk // running ones first, then the newest

	Key string // that was asked for
}

func readSteering(ctx context.Context, req *request) (any, error) {
	page := &steering{Key: req.get("key")}
	var keys map[string][]string
	for _, read := range []func() error{
		func() (err error) { page.Now, err = req.now(ctx); return err },
		func() (err error) { page.Holds, err = req.operator.Holds(ctx); return err },
		func() (err error) { keys, err = readKeys(ctx, req); return err },
		func() (err error) {
			page.Circuits, err = req.operator.Circuits(ctx, keys[model.BlockerCircuit]...)
			return err
		},
		func() (err error) {
			page.Limits, err = req.operator.Limits(ctx, keys[model.BlockerLimit]...)
			return err
		},
		func() (err error) { page.Calendars, err = req.operator.Calendars(ctx); return err },
		func() (err error) { page.Bulks, err = req.operator.Bulks(ctx); return err },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	page.Limits = slices.DeleteFunc(page.Limits, func(l flow.LimitUse) bool { return l.Key == "" })
	slices.Reverse(page.Bulks)
	page.Bulks = page.Bulks[:min(len(page.Bulks), 50)]
	return page, nil
}

// readKeys lists the keys of the page by the kind of their blocker: the chosen one, and those for which models wait.
func readKeys(ctx context.Context, req *request) (map[string][]string, error) {
	keys := map[string][]string{model.BlockerCircuit: {model.QueueCircuitKey}}
	if key := req.get("key"); (&model.Limit{Name: key, Running: 1}).Validate() == nil && key[0] != '{' { // else nothing counts by it
		keys[model.BlockerCircuit], keys[model.BlockerLimit] = append(keys[model.BlockerCircuit], key), []string{key}
	}
	for _, part := range req.queue.Parts {
		blockers, err := flow.Inspect(part).WaitedFor(ctx, 200) // a walk over all keys would take long
		if err != nil {
			return nil, req.queue.PartError(part, err)
		}
		for _, blocker := range blockers {
			kind, key := blocker.Split()
			keys[kind] = append(keys[kind], key)
		}
	}
	if len(keys[model.BlockerLimit]) == 0 {
		keys[model.BlockerLimit] = []string{""} // the key of nothing: only limits of operators
	}
	for kind := range keys {
		slices.Sort(keys[kind])
		keys[kind] = slices.Compact(keys[kind])
	}
	return keys, nil
}

func (req *request) ending(field string) operate.Ending { return operate.Ending{End: req.get(field)} }

func putHold(ctx context.Context, req *request) (outcome, error) {
	if req.get("selector") == "" && req.get("all") == "" {
		return outcome{}, document.Refuse("selector", "one such as tenant=t1, or the mark that all models are meant", "neither")
	}
	return hold(ctx, req, operate.HoldRequest{ID: req.get("id"), Selector: req.get("selector"), Ending: req.ending("end"), Cancel: req.get("cancel") != ""})
}

func holdModel(ctx context.Context, req *request) (outcome, error) {
	uid, err := req.uid()
	if err != nil {
		return outcome{}, err
	}
	done, err := hold(ctx, req, operate.HoldRequest{Selector: model.SelectUID + "=" + uid, Ending: req.ending("for")})
	return outcome{text: uid + " is held. " + done.text, next: req.Link("model", "uid", uid)}, err
}

func hold(ctx context.Context, req *request, r operate.HoldRequest) (outcome, error) {
	r.Reason = req.get("reason")
	held, bulk, err := req.operator.Hold(ctx, r)
	text := fmt.Sprintf("The hold %s keeps %s from starting.", held.ID, cmp.Or(held.Selector.String(), "all models"))
	if bulk != "" {
		text += " The bulk " + bulk + " takes back what runs."
	}
	return outcome{text: text}, err
}

func openCircuit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	after, err := req.operator.OpenCircuit(ctx, key, req.get("probe"), req.get("reason"))
	return outcome{text: "The circuit " + key + " is open, for " + document.FormatDuration(after) + " at least.", next: req.Link("steering", "key", key)}, err
}

func setLimit(ctx context.Context, req *request) (outcome, error) {
	key := req.get("key")
	r := operate.LimitRequest{Key: key, Running: req.get("running"), Rate: req.get("rate"), Reason: req.get("reason"), Ending: req.ending("end")}
	return outcome{text: "The limit of " + key + " is set."}, req.operator.SetLimit(ctx, r)
}

func runFailures(ctx context.Context, req *request) (outcome, error) {
	id := req.get("error")
	selector, err := operate.SelectFailing(id)
	if err != nil {
		return outcome{}, err
	}
	bulk, err := req.operator.BeginBulk(ctx, operate.BulkRequest{Action: model.CommandRun, Selector: selector, Rate: req.get("rate")})
	return outcome{text: fmt.Sprintf("The bulk %s runs all models that fail with %s.", bulk, id), next: req.Link("steering")}, err
}

// named returns the action that does something to what a field names. text describes it, with %s for the name.
func named(field, text string, do func(operate.Operator, context.Context, string) error) func(context.Context, *request) (outcome, error) {
	return func(ctx context.Context, req *request) (outcome, error) {
		name := req.get(field)
		return outcome{text: fmt.Sprintf(text, name)}, do(req.operator, ctx, name)
	}
}

// keyed is named for a key, and leads to the steering page of that key.
func keyed(text string, do func(operate.Operator, context.Context, string) error) func(context.Context, *request) (outcome, error) {
	act := named("key", text, do)
	return func(ctx context.Context, req *request) (outcome, error) {
		done, err := act(ctx, req)
		done.next = req.Link("steering", "key", req.get("key"))
		return done, err
	}
}

var (
	releaseHold = func(o operate.Operator, ctx context.Context, id string) error {
		_, err := o.Release(ctx, operate.ReleaseRequest{ID: id})
		return err
	}
	cancelBulk = func(o operate.Operator, ctx context.Context, id string) error {
		_, err := o.CancelBulk(ctx, id)
		return err
	}
)

// message returns what changes one rejected message.
func message(
	change func(operate.Operator, context.Context, operate.Messages) (operate.Changed, error),
) func(operate.Operator, context.Context, string) error {
	return func(o operate.Operator, ctx context.Context, id string) error {
		changed, err := change(o, ctx, operate.Messages{IDs: []string{id}})
		return errors.Join(append(changed.Refused, err)...)
	}
}
