package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// blocked returns what keeps a waiting model from starting in time, and until when; zero: unknown.
func (s *Explanation) blocked() (blocker model.Blocker, until time.Time) {
	blockers, start := &s.admission.Blockers, s.Now
	if s.m.RefreshAt.After(s.Now) {
		start = s.m.RefreshAt
	}
	switch {
	case !s.m.Waiting():
	case s.m.Parked():
		blocker = s.m.ParkedBy
		_, until = blockers.Opens(blocker, s.Now)
	default:
		blocker, until = blockers.Stop(s.m, start)
		blocker = cmp.Or(blocker, s.Forecast.By)
	}
	if kind, name := blocker.Split(); kind == model.BlockerLimit {
		until, _ = s.room(name).ClosedAt(s.Now)
	}
	return blocker, until
}

func (s *Explanation) room(key string) *model.LimiterState {
	return cmp.Or(s.admission.Rooms.Keys[key], new(model.LimiterState))
}

// opened reports whether the blocker of a parked model has opened, and no dispatcher has noticed yet.
func (s *Explanation) opened(blocker model.Blocker) bool {
	opens, _ := s.admission.Blockers.Opens(blocker, s.Now)
	switch kind, name := blocker.Split(); kind {
	case model.BlockerLimit:
		opens = s.admission.Rooms.Full(s.admission.Limits) == "" && !s.room(name).Closed.After(s.Now)
	case model.BlockerCircuit:
		opens = s.admission.Circuit == nil || !s.admission.Circuit.Open()
	}
	return s.m.Parked() && opens
}

// released says when a blocked model starts.
func (s *Explanation) released(blocker model.Blocker, until time.Time) string {
	kind, name := blocker.Split()
	start, least := "It starts", ""
	if s.Forecast.GiveUp.Possible() {
		start = "It will be disabled"
	} else if s.m.RefreshAt.After(s.Now) {
		start = "Due at " + s.clock(s.m.RefreshAt) + ", it starts"
	}
	if s.WaitsFor != "" && s.WaitsFor != blocker {
		least = " at the earliest"
	}
	opens := cmp.Or(s.Forecast.StartAt, s.room(name).Closed)
	switch {
	case s.opened(blocker) && !s.Forecast.StartAt.After(s.Now):
		return start + " " + s.soon() + ": " + kind + " " + name + " no longer stops it."
	case kind == model.BlockerLimit && opens.After(s.Now) && s.admission.Rooms.Full(s.admission.Limits) == "":
		return join(start+" "+s.at(opens)+", when the limit allows the next start.", s.turn())
	case kind == model.BlockerLimit:
		return join(start+" when a running model of "+name+" ends.", s.turn())
	case kind == model.BlockerCircuit && !s.opened(blocker) && s.m.RefreshAt.After(s.Now):
		return "Due " + s.at(s.m.RefreshAt) + ". " + s.tested()
	case kind == model.BlockerCircuit && !s.opened(blocker):
		return s.tested()
	case until.Equal(model.Never):
		return start + " when somebody releases hold " + name + "."
	}
	if s.Forecast.StartAt.After(until) {
		until = s.Forecast.StartAt
		kind, name = s.Forecast.By.Split()
	}
	if kind == model.BlockerCalendar {
		return start + " " + s.at(until) + least + ", when the calendar " + name + " opens."
	}
	return start + " " + s.at(until) + least + ", after " + kind + " " + name + "."
}

// tested says which model tests the open circuit, and what follows.
func (s *Explanation) tested() string {
	circuit, tests := s.admission.Circuit, "One waiting model starts now as a test."
	switch {
	case circuit.Probe != "":
		return join(circuit.Probe+" tests it now. If that succeeds, this one starts; if not, another test follows.", s.turn())
	case circuit.ProbeAt.After(s.Now):
		tests = words.Sentence(s.at(circuit.ProbeAt) + " one waiting model starts as a test")
	}
	return join(tests, "If that succeeds, all start; if not, another test follows.", s.turn())
}

func (s *Explanation) turn() string {
	if s.admission.Place == 0 {
		return ""
	}
	return fmt.Sprintf("It waits as %s of %d.", words.ShortOrdinal(int(s.admission.Place)), s.admission.Waiting)
}

// Stops lists what keeps the model from starting, or may, and what else affects it.
func (s *Explanation) Stops() (lines []string) {
	blocker, _ := s.blocked()
	for i := range s.admission.Limits {
		if s.m.Waiting() || s.m.Running() {
			lines = append(lines, s.limit(&s.admission.Limits[i]))
		}
	}
	switch c := s.admission.Circuit; {
	case c == nil || !c.Open() || !s.m.Waiting() && !s.m.Running():
	case c.Probe == s.m.UID:
		lines = append(lines, "It tests the circuit of "+c.Key+".", "If it succeeds, the others start too.")
	case s.ui == hint.Dashboard:
		every := time.Duration(0)
		if c.Key == s.m.CircuitKey() {
			every = s.m.Policy.Circuit.Probe
		}
		lines = append(lines, CircuitText(c, every, s.clock))
	case blocker == "":
		lines = append(lines, "The circuit of "+c.Key+" is open.", OpenedText(c, s.clock))
	default:
		lines = append(lines, OpenedText(c, s.clock))
	}
	if s.m.QueueCircuit.Open && !s.m.Disabled {
		lines = append(lines, "The queue's circuit is open: retries are rarer, and no failure disables this model.")
	}
	if at := s.m.RefreshAt; s.m.Phase > 0 && s.m.Waiting() && s.m.Trigger == model.TriggerPlanned && s.isPlanned(at) {
		from, _, _ := s.m.Spread().Occurrence(at)
		lines = append(lines, "Levelling moved its refresh from "+s.clock(from)+" to "+s.clock(at)+".")
	}
	lines = append(lines, s.doubts()...)
	if others := s.alike.Models - 1; others > 0 {
		lines = append(lines, words.Count(int(others), "other model fails", "other models fail")+" alike.", hint.Text(hint.ShowFailures, s.ui, s.m.FingerprintID))
	}
	if s.m.Fault != "" {
		lines = append(lines, words.Sentence("Its definition has a fault: "+s.m.Fault))
	}
	if s.Rejection != nil {
		lines = append(lines, words.Sentence(s.Rejection.Text(s.clock)))
	}
	return lines
}

// doubts lists why the last success is doubted, guard by guard.
func (s *Explanation) doubts() (lines []string) {
	if len(s.Attempts) == 0 || s.Attempts[0].Suspect == "" || s.Attempts[0].Accepted {
		return nil
	}
	last := &s.Attempts[0]
	switch {
	case last.Outcome == model.EventSuccess:
		lines = append(lines, "It counts, but is doubted.")
	case !s.m.Held():
		return nil // it has failed, or something else was wanted meanwhile
	}
	for reason := range strings.SplitSeq(last.Suspect, "; ") {
		lines = append(lines, words.Sentence(reason))
	}
	return lines
}

// StopText describes a blocker, without times if when is nil.
func StopText(blockers *model.Blockers, blocker model.Blocker, until time.Time, when func(time.Time) string) string {
	kind, name := blocker.Split()
	switch hold := blockers.Hold(name); {
	case kind == model.BlockerHold && hold != nil:
		return HeldText(hold, when)
	case kind == model.BlockerLimit && when != nil && until.IsZero():
		return "limit " + name + " is full"
	case kind == model.BlockerLimit && when != nil:
		return "limit " + name + " is closed until " + when(until)
	case kind == model.BlockerCalendar && when != nil && !until.IsZero():
		return stopped(blocker) + " until " + when(until)
	default:
		return stopped(blocker)
	}
}

// Waits says why a model that was run does not start, or with place how many are before it; empty: it starts.
func (s *Explanation) Waits(place bool) string {
	blocker, until := s.blocked()
	switch {
	case blocker != "" && (s.m.Parked() || !s.m.RefreshAt.After(s.Now)): // else it has ended already
		return "it does not start yet: " + StopText(&s.admission.Blockers, blocker, until, UTC)
	case place && s.Status == model.StatusDue && s.dead(model.RoleDispatcher) != "":
		return "it does not start yet: " + s.dead(model.RoleDispatcher)
	case place && s.place.No > 1:
		return inLine(s.place)
	default:
		return ""
	}
}

// HeldText describes a hold, without times if when is nil.
func HeldText(h *model.Hold, when func(time.Time) string) string {
	text := "held by " + cmp.Or(h.By, "somebody")
	if when != nil {
		text += " since " + when(h.Since)
	}
	if when != nil && !h.Until.IsZero() {
		text += " until " + when(h.Until)
	}
	return strings.TrimSuffix(join(text+" (hold "+h.ID+").", quote("Reason", h.Reason)), ".")
}

// limit describes a limit, its use, and who has set it if not its policy.
func (s *Explanation) limit(limit *model.Limit) string {
	text, parts := "Limit "+limit.Name, []string{}
	if rate := limit.Rate; rate.Count > 0 {
		parts = append(parts, "at most "+words.Count(rate.Count, "start", "starts")+" in "+document.FormatDurationInWords(rate.Per))
	}
	if room := s.admission.Rooms.Keys[limit.Name]; limit.Running > 0 && room != nil {
		parts = append(parts, fmt.Sprintf("%d at a time, and %s", limit.Running, words.Count(room.Running, "runs", "run")))
	}
	if len(parts) > 0 {
		text += " allows " + strings.Join(parts, ", ")
	}
	if set, found := s.admission.Blockers.Limits[limit.Name]; found && !set.Ended(s.Now) {
		text += ". " + cmp.Or(set.By, "Somebody") + " has set it"
		if !set.Until.IsZero() {
			text += " until " + s.clock(set.Until)
		}
	}
	if until, by := s.room(limit.Name).ClosedAt(s.Now); by != "" {
		text += ". It is closed until " + s.clock(until) + " by the answer to " + by
	}
	return text + "."
}

// CircuitText says what an open circuit means: what fails, how many wait, and how often one is tried; zero: that is not known.
func CircuitText(c *flow.KeyCircuit, every time.Duration, when func(time.Time) string) string {
	text, opened := "", OpenedText(c, when)
	if _, name, _ := strings.Cut(c.Key, "="); c.By == "" && c.Recent != "" {
		text = fmt.Sprintf("%s fails: %d of %d.", cmp.Or(name, c.Key), strings.Count(c.Recent, "1"), len(c.Recent))
		opened = "Its circuit opened at " + when(c.OpenedAt) + "."
	}
	text = join(text, words.Count(int(c.Parked), "model waits", "models wait")+".")
	if every > 0 {
		text = join(text, "One is tried every "+strings.TrimPrefix(document.FormatDurationInWords(every), "1 ")+".")
	}
	return join(text, opened)
}

// OpenedText says when and why a circuit opened.
func OpenedText(c *flow.KeyCircuit, when func(time.Time) string) string {
	text := "It opened at " + when(c.OpenedAt)
	if c.By != "" {
		return join("It was opened by "+c.By+" at "+when(c.OpenedAt)+".", quote("Reason", c.Reason))
	}
	if c.Recent != "" {
		text += fmt.Sprintf(": %d of the last %s failed", strings.Count(c.Recent, "1"), words.Count(len(c.Recent), "attempt", "attempts"))
	}
	return text + "."
}
