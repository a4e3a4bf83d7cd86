package attention

import (
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/explain"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/scripts"
)

// Finding is one thing that is stopped or wrong.
type Finding struct {
	Code    string `json:"code"` // short and stable
	Text    string `json:"text"`
	Command string `json:"command"` // that shows more of it

	Page   string   `json:"-"` // of the dashboard that shows more, below the base of the queue
	Fields []string `json:"-"` // of its address, in pairs of name and value
}

// None is what is said without findings.
const None = "Nothing is stopped."

const (
	// lateness is after how long a model that is due is told: a dispatcher that lives has started it before, unless it had no room.
	lateness = time.Minute
	// mostOfAKind is how many holds and circuits are told one by one.
	mostOfAKind = 5
)

// Findings decides what is told of a queue, the most important first. Instants are told in UTC, and no length of time that grows by itself, so
// that the text changes only if something happens.
func (q *Queue) Findings() []Finding {
	found := []Finding{} // null never
	for _, gone := range q.Gone {
		text := sentence(gone.notice())
		if gone.Parts < q.Parts {
			text += fmt.Sprintf(", in %d of %d parts", gone.Parts, q.Parts)
		}
		found = append(found, Finding{Code: string(gone.Party) + "-missing", Text: text + ".", Command: "refreshd doctor"})
	}
	found = append(found, q.held()...)
	found = append(found, q.open()...)
	if q.Due > 0 && q.At.Sub(q.OldestDue) > lateness {
		text := words.Count(int(q.Due), "model is due", "models are due") + ", since " + explain.UTC(q.OldestDue) + " at the longest."
		found = append(found, Finding{"due", text, "refreshd model ls --sort due", "models", []string{"sort", "due"}})
	}
	for _, kind := range []string{model.GateCalendar, model.GateLimit} {
		if n := q.ParkedBy[kind]; n > 0 {
			text := words.Count(int(n), "model waits", "models wait") + " for " + map[string]string{model.GateCalendar: "calendars", model.GateLimit: "limits"}[kind] + "."
			found = append(found, Finding{"parked-" + kind, text, "refreshd model ls -l status=parked", "models", []string{"l", "status=parked"}})
		}
	}
	if q.Disabled > 0 {
		text := words.Count(int(q.Disabled), "model is disabled", "models are disabled") + "."
		found = append(found, Finding{"disabled", text, "refreshd model ls -l status=disabled", "models", []string{"l", "status=disabled"}})
	}
	if n := q.Freshness[model.FreshnessNever]; n > 0 {
		text := words.Count(int(n), "model has", "models have") + " never succeeded yet."
		found = append(found, Finding{"never", text, "refreshd model ls -l status=never", "models", []string{"l", "status=never"}})
	}
	return found
}

// notice is what is told of a party that is gone, without for how long.
func (g *Gone) notice() string {
	if g.Party == model.PartyWorker {
		return "attempts wait, and no worker takes any"
	}
	return fmt.Sprintf("no %s lives", g.Party)
}

// held tells of the holds that have not ended.
func (q *Queue) held() (found []Finding) {
	more := 0
	for i := range q.Holds {
		hold := &q.Holds[i]
		if hold.Ended(q.At) {
			continue
		}
		code, whose := "held", "Models"
		if hold.Selector.All() {
			code, whose = "all-held", "All models"
		} else if len(found) >= mostOfAKind {
			more++
			continue
		}
		text := whose + " are " + explain.HeldText(&hold.Hold, explain.UTC) + waiting(hold.Parked)
		found = append(found, Finding{code, text, "refreshd hold ls", "steering", nil})
	}
	if more > 0 {
		found = append(found, Finding{"held", words.Count(more, "more hold keeps", "more holds keep") + " models from starting.", "refreshd hold ls", "steering", nil})
	}
	return found
}

// open tells of the circuits that are open.
func (q *Queue) open() (found []Finding) {
	for i := range q.Circuits[:min(len(q.Circuits), mostOfAKind)] {
		c := &q.Circuits[i]
		f := Finding{"circuit-open", "The circuit of " + c.Key + " is open" + since(c) + waiting(c.Parked), "refreshd circuit ls", "steering", []string{"key", c.Key}}
		if c.Key == model.QueueCircuitKey {
			f.Code, f.Command = "queue-circuit-open", "refreshd circuit show queue"
			f.Text = "The circuit of the whole queue is open" + since(c) + "; nobody is disabled meanwhile."
		}
		found = append(found, f)
	}
	if more := len(q.Circuits) - len(found); more > 0 {
		found = append(found, Finding{"circuit-open", words.Count(more, "more circuit is", "more circuits are") + " open.", "refreshd circuit ls", "steering", nil})
	}
	return found
}

func since(c *scripts.KeyCircuit) string {
	text := " since " + explain.UTC(c.OpenedAt)
	if c.By != "" {
		text += " by " + c.By
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

func waiting(parked int64) string {
	return "; " + words.Count(int(parked), "model waits", "models wait") + " for it."
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
