package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

var steeringPage = page{
	path: "steering", title: "Steering", nav: true, file: "steering", read: readSteering,
	live: []string{"steering-holds", "steering-circuits", "steering-limits", "steering-calendars", "steering-bulks"},
}

// steering is what keeps models from starting, and what is done to many at once.
type steering struct {
	Now       time.Time
	Holds     []store.HoldSum
	Circuits  []circuit
	Limits    []store.LimitUse
	Calendars []calendar
	Bulks     []store.Bulk // what goes on first, and the newest of it

	Key string // that was asked for
	All bool   // all keys of limits and circuits are shown, not only those for which models wait
}

// maxBulks is how many bulks a page shows.
const maxBulks = 50

func readSteering(ctx context.Context, req *request) (any, error) {
	page := &steering{Key: req.get("key"), All: req.get("keys") == "all"}
	fleet := req.queue.Fleet()
	var err error
	if page.Now, err = req.now(ctx); err != nil {
		return nil, err
	}
	if page.Holds, err = fleet.Holds(ctx); err != nil {
		return nil, err
	}
	keys, err := readKeys(ctx, req)
	if err != nil {
		return nil, err
	}
	if page.Circuits, err = readCircuits(ctx, req, keys[model.BlockerCircuit]); err != nil {
		return nil, err
	}
	if page.Limits, err = fleet.LimitUses(ctx, keys[model.BlockerLimit]...); err != nil {
		return nil, err
	}
	page.Limits = slices.DeleteFunc(page.Limits, func(l store.LimitUse) bool { return l.Limit.Name == "" })
	if page.Calendars, err = readCalendars(ctx, req, page.Now); err != nil {
		return nil, err
	}
	page.Bulks, err = fleet.Bulks(ctx)
	slices.Reverse(page.Bulks)
	page.Bulks = page.Bulks[:min(len(page.Bulks), maxBulks)]
	return page, err
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

// readEnd reads when something ends that begins at now: a length of time, or an RFC 3339 time; "": when somebody ends it.
func readEnd(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if length, err := document.ParseDuration(text); err == nil && length > 0 {
		return now.Add(length), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !at.After(now) {
		return at, document.Refuse(field, "a length of time such as 2h, or an RFC 3339 time after "+model.FormatTime(now), document.Found(text))
	}
	return at.UTC().Truncate(time.Millisecond), nil
}
