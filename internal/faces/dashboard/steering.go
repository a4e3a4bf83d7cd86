package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
)

var steeringPage = page{
	path: "steering", title: "Steering", nav: true, file: "steering", read: readSteering,
	live: []string{"steering-holds", "steering-circuits", "steering-limits", "steering-calendars", "steering-bulks"},
}

// steering is what keeps models from starting, and what is done to many at once.
type steering struct {
	Now       time.Time
	Holds     []operate.Hold
	Circuits  []operate.Circuit
	Limits    []operate.Limit
	Calendars []operate.Calendar
	Bulks     []operate.Bulk // what goes on first, and the newest of it

	Key string // that was asked for
	All bool   // all keys of limits and circuits are shown, not only those for which models wait
}

// maxBulks is how many bulks a page shows.
const maxBulks = 50

func readSteering(ctx context.Context, req *request) (any, error) {
	page := &steering{Key: req.get("key"), All: req.get("keys") == "all"}
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
	page.Limits = slices.DeleteFunc(page.Limits, func(l operate.Limit) bool { return l.Key == "" })
	slices.Reverse(page.Bulks)
	page.Bulks = page.Bulks[:min(len(page.Bulks), maxBulks)]
	return page, nil
}

// maxBlockers bounds the blockers that are read in each part. All keys there are would take a walk over the keys of Redis.
const maxBlockers = 200

// readKeys lists by the kind of blocker the keys that a page shows: the one that was asked for, and those for which models wait; or none, which means
// all.
func readKeys(ctx context.Context, req *request) (map[string][]string, error) {
	keys := map[string][]string{}
	if req.get("keys") == "all" {
		return keys, nil
	}
	keys[model.BlockerCircuit] = []string{model.QueueCircuitKey}
	if key := req.get("key"); isKey(key) {
		keys[model.BlockerCircuit], keys[model.BlockerLimit] = append(keys[model.BlockerCircuit], key), []string{key}
	}
	for _, part := range req.queue.Parts {
		blockers, err := part.Fleet().WaitedFor(ctx, maxBlockers)
		if err != nil {
			return nil, req.queue.PartError(part, err)
		}
		for _, blocker := range blockers {
			kind, key := blocker.Split()
			keys[kind] = append(keys[kind], key)
		}
	}
	if len(keys[model.BlockerLimit]) == 0 {
		keys[model.BlockerLimit] = []string{""} // which is the key of nothing: those that were set
	}
	for kind := range keys {
		slices.Sort(keys[kind])
		keys[kind] = slices.Compact(keys[kind])
	}
	return keys, nil
}

// isKey: a text may be what a limit or a circuit counts by.
func isKey(text string) bool {
	return (&model.Limit{Name: text, Running: 1}).Validate() == nil && text[0] != '{'
}

// maxAttempts is how many of the last attempts are drawn of a circuit.
const maxAttempts = 20

// lastAttempts reads the last attempts of a circuit, oldest first: failed or answered.
func lastAttempts(recent string) (words []string) {
	for _, one := range recent[max(0, len(recent)-maxAttempts):] {
		words = append(words, map[bool]string{true: "failed", false: "answered"}[one == '1'])
	}
	return words
}
