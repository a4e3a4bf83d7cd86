// Package alerts finds what is stopped or wrong in a queue. Each finding is a sentence with a command and a page that show more. The command line
// and the dashboard begin with them.
package alerts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/zonedata"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// Queue is a queue at a glance. Reading it costs the same with any number of models.
type Queue struct {
	report.Stats

	Holds    []flow.HoldStatus
	Circuits []flow.KeyCircuit // that are open
	Missing  []Missing
	Doubtful []model.Role // for which something waits, and of which nobody knows whether they live
	Zones    []string     // planned by different zone data
	Parts    int
}

// Missing is a role that nobody fills in some parts of the queue.
type Missing struct {
	model.Missing
	Parts int
}

// Read reads a queue.
func Read(ctx context.Context, queue *store.Queue) (q Queue, err error) {
	q.Parts = len(queue.Parts)
	if q.Stats, err = report.OfQueue(queue).Stats(ctx); err != nil {
		return q, err
	}
	if q.Holds, err = flow.OfQueue(queue).Holds(ctx); err != nil {
		return q, err
	}
	if q.Circuits, err = flow.OfQueue(queue).OpenCircuits(ctx); err != nil {
		return q, err
	}
	parts := map[model.Role][]model.Missing{}
	err = queue.Each(func(part *store.Store) error {
		liveness, err := part.Report().Liveness(ctx)
		for _, missing := range liveness.Dead() {
			parts[missing.Role] = append(parts[missing.Role], missing)
		}
		for _, doubtful := range liveness.Doubtful() {
			q.Doubtful = append(q.Doubtful, doubtful.Role)
		}
		doubts, failed := store.ZoneDoubts(ctx, part.Report(), zonedata.Here())
		q.Zones = append(q.Zones, doubts...)
		return cmp.Or(err, failed)
	})
	slices.Sort(q.Doubtful)
	slices.Sort(q.Zones)
	q.Zones = slices.Compact(q.Zones)
	for _, role := range model.Roles {
		if missing := parts[role]; missing != nil {
			q.Missing = append(q.Missing, Missing{missing[0], len(missing)})
		}
	}
	return q, err
}

// Finding is one thing that is stopped or wrong.
type Finding struct {
	Code    string `json:"code"` // short and stable
	Text    string `json:"text"`
	Do      string `json:"do"`
	Command string `json:"command"` // that shows more of it

	Page   string   `json:"-"` // of the dashboard that shows more, below the base of the queue
	Fields []string `json:"-"` // of its address, in pairs of name and value
}

// None stands for no findings, where nothing waits for a role that may not live.
const None = "Nothing is stopped."

// Calm stands for no findings. It does not say that nothing is stopped before that is known.
func (q *Queue) Calm() string {
	if len(q.Doubtful) == 0 {
		return None
	}
	what := map[model.Role]string{
		model.RoleDispatcher: "models are due or attempts out of time, and no dispatcher has given a sign of life of late",
		model.RoleWorker:     "attempts wait, and no worker has taken any of late",
		model.RolePoller:     "messages wait, and no poller has given a sign of life of late",
	}
	return "It is not known whether anything is stopped: " + what[q.Doubtful[0]] + "."
}

const (
	// lateness is how long a model may be due without a finding: a living dispatcher starts it before, unless it has no room.
	lateness = time.Minute
	// mostOfAKind bounds the holds and circuits that have a finding each.
	mostOfAKind = 5
)

// Findings lists what is stopped or wrong, the most important first. It changes only if something happens.
func (q *Queue) Findings() []Finding {
	found := []Finding{} // null never
	for _, missing := range q.Missing {
		text, do := fmt.Sprintf("No %s is running", missing.Role), "Start one: until then no attempt starts."
		switch missing.Role {
		case model.RolePoller:
			do = "Start one: until then no result counts."
		case model.RoleWorker:
			text, do = "Attempts wait, and no worker takes any", "Start a worker: until then nothing is refreshed."
		}
		if missing.Parts < q.Parts {
			text += fmt.Sprintf(", in %d of %d parts", missing.Parts, q.Parts)
		}
		found = append(found, Finding{Code: string(missing.Role) + "-missing", Text: text + ".", Do: do, Command: "refreshd doctor"})
	}
	for _, doubt := range q.Zones {
		found = append(found, Finding{Code: "zone-data", Text: "There are " + doubt + ".", Do: "Run the same release everywhere.", Command: "refreshd doctor"})
	}
	found = append(found, bounded(q.held(), "held", "more hold keeps models from starting.", "more holds keep models from starting.")...)
	found = append(found, bounded(q.open(), "circuit-open", "more circuit is open.", "more circuits are open.")...)
	if q.Due > 0 && !q.OldestDue.IsZero() && q.At.Sub(q.OldestDue) > lateness { // both are read one after the other
		text := words.Count(int(q.Due), "model is due", "models are due") + ", since " + explain.UTC(q.OldestDue) + " at the longest."
		do := "Look whether workers and dispatchers keep up."
		found = append(found, Finding{"due", text, do, "refreshd model ls --sort due", "models", []string{"sort", "due"}})
	}
	for _, row := range []struct {
		models                      int64
		code, status, one, many, do string
	}{
		{q.ParkedBy[model.BlockerCalendar], "parked-" + model.BlockerCalendar, "parked", "model waits for calendars", "models wait for calendars",
			"They start when the calendar opens."},
		{q.ParkedBy[model.BlockerLimit], "parked-" + model.BlockerLimit, "parked", "model waits for limits", "models wait for limits",
			"They start as slots become free."},
		{q.ParkedBy[model.BlockerSuspect], "parked-" + model.BlockerSuspect, "parked", "result waits for a verdict", "results wait for a verdict",
			"Accept or reject them: no time ends their wait."},
		{q.Disabled, "disabled", "disabled", "model is disabled", "models are disabled", "Mend the cause, then save or enable what is disabled."},
		{q.Freshness[model.FreshnessNever], "never", "never", "model has never succeeded yet", "models have never succeeded yet",
			"Some may be new. Look at those that have failed."},
	} {
		if row.code == "never" && q.Failing == 0 { // they have not been tried yet
			continue
		}
		if row.models > 0 {
			status, text := "status="+row.status, words.Count(int(row.models), row.one, row.many)+"."
			command := "refreshd model ls -l " + status
			if row.code == "parked-"+model.BlockerSuspect {
				command = "refreshd suspect ls"
			}
			found = append(found, Finding{row.code, text, row.do, command, "models", []string{"l", status}})
		}
	}
	return found
}

// bounded keeps the first findings of a code, and counts the rest.
func bounded(found []Finding, code, one, many string) []Finding {
	count, last := 0, Finding{}
	found = slices.DeleteFunc(found, func(f Finding) bool {
		if f.Code == code {
			count, last = count+1, f
		}
		return f.Code == code && count > mostOfAKind
	})
	if more := count - mostOfAKind; more > 0 {
		last.Text, last.Fields = words.Count(more, one, many), nil
		found = append(found, last)
	}
	return found
}

func (q *Queue) held() (found []Finding) {
	for i := range q.Holds {
		hold, code, whose, do := &q.Holds[i], "held", "Models", "Release what nobody needs to be held."
		if hold.Selector.All() {
			code, whose, do = "all-held", "All models", "Release it as soon as its reason is gone."
		}
		if !hold.Ended(q.At) {
			text := whose + " are " + explain.HeldText(&hold.Hold, explain.UTC) + waiting(hold.Parked)
			found = append(found, Finding{code, text, do, "refreshd hold ls", "steering", nil})
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return store.TrueFirst(a.Code == "all-held", b.Code == "all-held") })
	return found
}

func (q *Queue) open() (found []Finding) {
	for i := range q.Circuits {
		c := &q.Circuits[i]
		code, text, do := "circuit-open", "The circuit of "+c.Key+" is open. ", "Mend the cause; it closes when a probe succeeds."
		command := "refreshd circuit ls"
		if c.Key == model.QueueCircuitKey {
			code, text, do = "queue-circuit-open", "The circuit of the whole queue is open, so no failure disables a model. ", "Look for a cause on your side."
			command = "refreshd circuit show queue"
		}
		text += strings.TrimSuffix(explain.OpenedText(c, explain.UTC), ".") + waiting(c.Parked)
		found = append(found, Finding{code, text, do, command, "steering", []string{"key", c.Key}})
	}
	return found
}

func waiting(parked int64) string {
	return ". " + words.Count(int(parked), "model waits", "models wait") + " for it."
}
