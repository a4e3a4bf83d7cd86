package dashboard

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

var steeringPage = page{
	path: "steering", title: "Steering", nav: true, file: "steering", read: readSteering,
	live: []string{"steering-holds", "steering-circuits", "steering-limits", "steering-calendars", "steering-bulks"},
}

// steering is what keeps models from starting, and what is done to many at once.
type steering struct {
	Holds     []hold
	Circuits  []circuit
	Limits    []limit
	Calendars []calendar
	Bulks     []bulk

	Asked    string // the key that was asked for
	All      bool   // all keys of limits and circuits are shown, not only those for which models wait
	AllLink  string
	SomeLink string
}

func readSteering(ctx context.Context, v *visit) (any, error) {
	now, err := v.queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	page := &steering{
		Asked: v.get("key"), All: v.get("keys") == "all", AllLink: v.link("steering", "keys", "all"), SomeLink: v.link("steering"),
	}
	if page.Holds, err = readHolds(ctx, v, now); err != nil {
		return nil, err
	}
	keys, err := readKeys(ctx, v)
	if err != nil {
		return nil, err
	}
	if page.Circuits, err = readCircuits(ctx, v, keys[model.BlockerCircuit], now); err != nil {
		return nil, err
	}
	if page.Limits, err = readLimits(ctx, v, keys[model.BlockerLimit], now); err != nil {
		return nil, err
	}
	if page.Calendars, err = readCalendars(ctx, v, now); err != nil {
		return nil, err
	}
	page.Bulks, err = readBulks(ctx, v, now)
	return page, err
}

// mostGates is how many gates for which models wait are looked at in each part. All keys there are would take a walk over the keys of Redis.
const mostGates = 200

// readKeys lists by the kind of their gates the keys that a page shows: the one that was asked for, and those for which models wait; or none, which means
// all.
func readKeys(ctx context.Context, v *visit) (map[string][]string, error) {
	keys := map[string][]string{}
	if v.get("keys") == "all" {
		return keys, nil
	}
	keys[model.BlockerCircuit] = []string{model.QueueCircuitKey}
	for _, kind := range []string{model.BlockerCircuit, model.BlockerLimit} {
		if asked := v.get("key"); isKey(asked) {
			keys[kind] = append(keys[kind], asked)
		}
	}
	for _, part := range v.queue.Parts {
		gates, err := part.Fleet().WaitedFor(ctx, mostGates)
		if err != nil {
			return nil, v.queue.PartError(part, err)
		}
		for _, gate := range gates {
			kind, name := gate.Split()
			keys[kind] = append(keys[kind], name)
		}
	}
	if len(keys[model.BlockerLimit]) == 0 {
		keys[model.BlockerLimit] = []string{""} // which is the key of nothing: those that were set
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
