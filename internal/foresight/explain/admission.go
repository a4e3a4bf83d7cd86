package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// stops tells what keeps the model from starting, or would if it were due, and what counts the attempt that runs.
func (s *Explanation) stops() (lines []string) {
	kind, name := s.m.ParkedBy.Split()
	turn := ""
	if s.admission.Place > 0 {
		turn = fmt.Sprintf("; %s of %d that wait", words.ShortOrdinal(int(s.admission.Place)), s.admission.Waiting)
	}
	switch circuit := s.admission.Circuit; {
	case s.m.Running():
		for _, key := range model.CountedBy(s.m.Counted, model.BlockerLimit) {
			lines = append(lines, "counted by "+s.limit(key))
		}
		for _, key := range model.CountedBy(s.m.Counted, model.BlockerCircuit) {
			text := "counted by the circuit of " + key
			if circuit != nil && circuit.Key == key && circuit.Probe == s.m.UID {
				text = "is the probe: " + s.circuit(circuit)
			}
			lines = append(lines, text)
		}
		return lines
	case s.m.Parked() && s.m.ParkedBy.Timed():
		return []string{s.because(&s.admission.Gates, s.when)}
	case s.m.Parked() && kind == model.BlockerLimit:
		return []string{"waits for " + s.limit(name) + turn}
	case s.m.Parked() && (circuit == nil || !circuit.Open()):
		return []string{string(s.m.ParkedBy) + " is over: a dispatcher lets it go"}
	case s.m.Parked():
		return []string{"waits for " + s.circuit(circuit) + turn}
	case !s.m.Waiting():
		return nil
	}
	for _, key := range strings.Fields(s.m.Reserved) {
		lines = append(lines, "waits for its slot of "+s.limit(key)+": nobody else gets it")
	}
	return append(lines, s.wouldStop()...)
}

// wouldStop tells what would keep a model from starting that waits for its time: when it is due, or if it were due now.
func (s *Explanation) wouldStop() (lines []string) {
	due := s.m.RefreshAt
	if due.Before(s.Now) {
		due = s.Now
	}
	gates := &s.admission.Gates
	for i := range gates.Holds {
		hold := &gates.Holds[i]
		switch {
		case hold.Ended(s.Now) || !hold.Selector.Matches(s.m, model.StatusDue):
		case hold.Ended(due):
			lines = append(lines, "if it were due now: "+HeldText(hold, s.when))
		default:
			lines = append(lines, "when it is due: "+HeldText(hold, s.when))
		}
	}
	for _, name := range s.m.Policy.Closed {
		if opens, until := gates.Opens(model.NewBlocker(model.BlockerCalendar, name), due); !opens {
			lines = append(lines, "when it is due: "+StopText(gates, model.NewBlocker(model.BlockerCalendar, name), until, s.when))
		}
	}
	for i := range s.admission.Limits {
		limit := &s.admission.Limits[i]
		if room := s.admission.Rooms.Keys[limit.Name]; room != nil && limit.Running > 0 && room.Running >= limit.Running {
			lines = append(lines, "if it were due now, it would wait for "+s.limit(limit.Name))
		}
	}
	if c := s.admission.Circuit; c != nil && c.Open() {
		lines = append(lines, "if it were due now, it would wait for "+s.circuit(c))
	}
	return lines
}

// StopText tells of a hold or a calendar that is closed until an instant.
func StopText(gates *model.Blockers, gate model.Blocker, until time.Time, when func(time.Time) string) string {
	kind, name := gate.Split()
	if hold := gates.Hold(name); kind == model.BlockerHold && hold != nil {
		return HeldText(hold, when)
	}
	return "closed by the calendar " + name + " until " + when(until)
}

// HeldText tells of a hold: by whom, until when and why.
func HeldText(h *model.Hold, when func(time.Time) string) string {
	until, picks := "until it is released", "all models"
	if !h.Until.IsZero() {
		until = "until " + when(h.Until)
	}
	if selector := h.Selector.String(); selector != "" {
		picks = selector
	}
	return fmt.Sprintf("held by %s since %s, %s: %s (hold %s of %s)", cmp.Or(h.By, "somebody"), when(h.Since), until, cmp.Or(h.Reason, "no reason given"), h.ID, picks)
}

func (s *Explanation) limit(key string) string {
	at := slices.IndexFunc(s.admission.Limits, func(limit model.Limit) bool { return limit.Name == key })
	if at < 0 {
		return "limit " + key + ", of which there is none any more"
	}
	limit, room := &s.admission.Limits[at], s.admission.Rooms.Keys[key]
	var parts []string
	if limit.Running > 0 && room != nil {
		parts = append(parts, fmt.Sprintf("%d of %d run", room.Running, limit.Running))
	} else if room != nil {
		parts = append(parts, words.Count(room.Running, "attempt runs", "attempts run"))
	}
	if limit.Rate.Count > 0 {
		parts = append(parts, limit.Rate.String())
	}
	if room != nil && room.Closed.After(s.Now) {
		parts = append(parts, "the next start at "+s.when(room.Closed)+" at the earliest")
	}
	if room != nil && room.Free.After(s.Now) {
		parts = append(parts, "the next free slot at "+s.when(room.Free))
	}
	return "limit " + key + " (" + strings.Join(append(parts, s.origin(key)), ", ") + ")"
}

// origin says who has set a limit: somebody for its key, the policy, or somebody for the queue.
func (s *Explanation) origin(key string) string {
	own, found := s.admission.Gates.Limits[key]
	name := cmp.Or(s.m.PolicyName, policy.DefaultName)
	of := func(template policy.Key) bool { return template.Of(s.m.Payload, s.m.Labels, name) == key }
	set := func(limit *model.Limit) string {
		text := "set by " + cmp.Or(limit.By, "somebody") + " since " + s.when(limit.Since)
		if !limit.Until.IsZero() {
			text += " until " + s.when(limit.Until)
		}
		if limit.Reason != "" {
			text += ": " + limit.Reason
		}
		return text
	}
	holds := func(limit *model.Limit) bool { return limit.Until.IsZero() || limit.Until.After(s.Now) }
	switch {
	case found && holds(&own):
		return set(&own)
	case slices.ContainsFunc(s.m.Policy.Limits, func(limit policy.Limit) bool { return of(limit.Key) }):
		return "by policy " + name
	}
	for _, limit := range s.admission.Gates.QueueLimits {
		if of(limit.Key) && holds(&limit.Limit) {
			return "for the queue " + set(&limit.Limit)
		}
	}
	return "by a limit of the queue that has ended"
}

func (s *Explanation) circuit(c *store.KeyCircuit) string {
	text := "the circuit of " + c.Key + ", open since " + s.when(c.OpenedAt)
	if c.By != "" {
		text += " by " + c.By
		if c.Reason != "" {
			text += ": " + c.Reason
		}
	} else {
		text += fmt.Sprintf(": %d of its last %s failed", strings.Count(c.Recent, "1"), words.Count(len(c.Recent), "attempt", "attempts"))
	}
	if own := s.m.Policy.Circuit; c.By == "" && own != nil {
		text += fmt.Sprintf(", it opens at %d of %d", own.Failures, own.Of)
	}
	switch {
	case c.Probe != "":
		return text + "; " + c.Probe + " tries it"
	case c.ProbeAt.After(s.Now):
		return text + "; the next probe at " + s.when(c.ProbeAt)
	default:
		return text + "; the next model that is due tries it"
	}
}
