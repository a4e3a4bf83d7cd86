package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// blocked is what keeps a model that waits from starting in time, and until when; zero: nobody knows.
func (s *Explanation) blocked() (gate model.Blocker, until time.Time) {
	if !s.m.Waiting() {
		return "", until
	}
	gates, at := &s.admission.Gates, s.Now
	if s.m.Parked() {
		_, until = gates.Opens(s.m.ParkedBy, at)
		return s.m.ParkedBy, until
	}
	if s.m.RefreshAt.After(at) {
		at = s.m.RefreshAt
	}
	return gates.Stop(s.m, at)
}

// hold is the hold that keeps the model from starting; nil: none.
func (s *Explanation) hold() *model.Hold {
	gate, _ := s.blocked()
	if kind, name := gate.Split(); kind == model.BlockerHold {
		return s.admission.Gates.Hold(name)
	}
	return nil
}

// released tells when a model starts that something blocks.
func (s *Explanation) released(gate model.Blocker, until time.Time) []string {
	kind, name := gate.Split()
	start, circuit := "It starts", s.admission.Circuit
	if s.Forecast.GiveUp.Possible() {
		start = "It is disabled"
	} else if !s.m.Parked() {
		start = "Due at " + s.clock(s.m.RefreshAt) + ", it starts"
	}
	turn := s.turn()
	switch opens, _ := s.admission.Gates.Opens(gate, s.Now); {
	case kind == model.BlockerLimit:
		return append([]string{start + " when one that runs ends."}, turn...)
	case kind == model.BlockerCircuit && (circuit == nil || !circuit.Open()):
		return []string{start + " in a moment: the circuit has closed."}
	case kind == model.BlockerCircuit && circuit.Probe != "":
		return append([]string{circuit.Probe + " tries now.", "If that succeeds, this one starts."}, turn...)
	case kind == model.BlockerCircuit && circuit.ProbeAt.After(s.Now):
		return append([]string{"One of those that wait tries " + s.at(circuit.ProbeAt) + ".", "If that succeeds, all start."}, turn...)
	case kind == model.BlockerCircuit:
		return append([]string{"One of those that wait tries now.", "If that succeeds, all start."}, turn...)
	case opens && s.m.Parked():
		return []string{start + " in a moment: " + kind + " " + name + " is over."}
	case until.Equal(model.Never):
		return []string{start + " when somebody releases hold " + name + "."}
	case s.Forecast.StartAt.After(until):
		return []string{start + " " + s.at(s.Forecast.StartAt) + ", after " + kind + " " + name + "."}
	case kind == model.BlockerCalendar:
		return []string{start + " " + s.at(until) + ", when calendar " + name + " opens."}
	default:
		return []string{start + " " + s.at(until) + ", when hold " + name + " ends."}
	}
}

func (s *Explanation) turn() []string {
	if s.admission.Place == 0 {
		return nil
	}
	return []string{fmt.Sprintf("It is %s of %d in line.", words.ShortOrdinal(int(s.admission.Place)), s.admission.Waiting)}
}

// Stops tells what counts the attempt that runs, what keeps the model from starting or would, and what else bears on it.
func (s *Explanation) Stops() (told []string) {
	gate, _ := s.blocked()
	switch kind, name := gate.Split(); {
	case s.m.Running():
		told = s.counted()
	case kind == model.BlockerLimit:
		told = append(told, words.Sentence(s.limit(name)))
	case kind == model.BlockerCircuit && s.admission.Circuit != nil && s.admission.Circuit.Open():
		told = append(told, s.circuit(s.admission.Circuit))
	case gate == "" && s.m.Waiting():
		told = s.wouldStop()
	}
	if s.m.QueueCircuit.Open && !s.m.Disabled {
		told = append(told, "The circuit of the queue is open: no failure is final, and retries are rarer.")
	}
	if s.m.Phase > 0 && !s.m.OneShot() {
		told = append(told, "Level has moved it by "+document.FormatDurationInWords(s.m.Phase)+".")
	}
	if end := s.m.GivesUpAt(); !end.IsZero() && !s.m.Disabled && s.m.Trigger != model.TriggerGiveUp {
		told = append(told, "It is disabled at "+s.clock(end)+" if nothing succeeds before.")
	}
	if others := s.alike.Models - 1; others > 0 {
		told = append(told, words.Count(int(others), "other model fails", "other models fail")+" alike: refreshd failures show "+s.m.FingerprintID+".")
	}
	if s.m.Fault != "" {
		told = append(told, words.Sentence("Its definition has a fault: "+s.m.Fault))
	}
	if s.Rejection != nil {
		told = append(told, words.Sentence(s.Rejection.Text(s.clock)))
	}
	return told
}

// counted tells what counts the attempt that runs.
func (s *Explanation) counted() (told []string) {
	circuit := s.admission.Circuit
	for _, key := range model.CountedBy(s.m.Counted, model.BlockerLimit) {
		told = append(told, words.Sentence(s.limit(key)))
	}
	for _, key := range model.CountedBy(s.m.Counted, model.BlockerCircuit) {
		if circuit != nil && circuit.Key == key && circuit.Probe == s.m.UID {
			told = append(told, "It tries the open circuit of "+key+", which closes if it succeeds.")
		} else {
			told = append(told, "The circuit of "+key+" counts it.")
		}
	}
	return told
}

// wouldStop tells what would keep a model from starting if it were due now.
func (s *Explanation) wouldStop() (told []string) {
	for i := range s.admission.Gates.Holds {
		if hold := &s.admission.Gates.Holds[i]; !hold.Ended(s.Now) && hold.Selector.Matches(s.m, model.StatusDue) {
			told = append(told, words.Sentence("due now, it would be "+HeldText(hold, s.clock)))
		}
	}
	for i := range s.admission.Limits {
		limit := &s.admission.Limits[i]
		if room := s.admission.Rooms.Keys[limit.Name]; room != nil && limit.Running > 0 && room.Running >= limit.Running {
			told = append(told, words.Sentence("due now, it would wait for "+s.limit(limit.Name)))
		}
	}
	for _, key := range strings.Fields(s.m.Reserved) {
		told = append(told, words.Sentence(s.limit(key)))
	}
	if c := s.admission.Circuit; c != nil && c.Open() {
		told = append(told, "Due now, it would wait for a circuit.", s.circuit(c))
	}
	return told
}

// StopText tells of a hold or a calendar that is closed until an instant, without times if when is nil.
func StopText(gates *model.Blockers, gate model.Blocker, until time.Time, when func(time.Time) string) string {
	kind, name := gate.Split()
	if hold := gates.Hold(name); kind == model.BlockerHold && hold != nil {
		return HeldText(hold, when)
	}
	text := "the calendar " + name + " is closed"
	if when != nil {
		text += " until " + when(until)
	}
	return text
}

// HeldText tells of a hold: by whom, until when and why, without times if when is nil.
func HeldText(h *model.Hold, when func(time.Time) string) string {
	text := "held by " + cmp.Or(h.By, "somebody")
	if when != nil {
		text += " since " + when(h.Since)
		if !h.Until.IsZero() {
			text += " until " + when(h.Until)
		}
	}
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text + " (hold " + h.ID + ")"
}

func (s *Explanation) limit(key string) string {
	at := slices.IndexFunc(s.admission.Limits, func(limit model.Limit) bool { return limit.Name == key })
	if at < 0 {
		return "limit " + key + " is gone"
	}
	limit, room := &s.admission.Limits[at], s.admission.Rooms.Keys[key]
	var parts []string
	if limit.Running > 0 && room != nil {
		parts = append(parts, fmt.Sprintf("%d of %d run", room.Running, limit.Running))
	}
	if limit.Rate.Count > 0 {
		parts = append(parts, "at most "+limit.Rate.String())
	}
	return "limit " + key + s.origin(key) + ": " + words.List(parts)
}

// origin says who has set a limit at run time; empty: its policy has.
func (s *Explanation) origin(key string) string {
	limit, found := s.admission.Gates.Limits[key]
	if !found || limit.Ended(s.Now) {
		return ""
	}
	text := ", set by " + cmp.Or(limit.By, "somebody")
	if !limit.Until.IsZero() {
		text += " until " + s.clock(limit.Until)
	}
	return text
}

// circuit tells when a circuit opened, and why.
func (s *Explanation) circuit(c *store.KeyCircuit) string {
	text := "The circuit of " + c.Key + " opened at " + s.clock(c.OpenedAt)
	if c.By == "" {
		return fmt.Sprintf("%s: %d of its last %s failed.", text, strings.Count(c.Recent, "1"), words.Count(len(c.Recent), "attempt", "attempts"))
	}
	if text += " by " + c.By; c.Reason != "" {
		text += ": " + c.Reason
	}
	return words.Sentence(text)
}
