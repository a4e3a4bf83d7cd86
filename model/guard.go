package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// maxMetrics is how many numbers of a success are kept.
const maxMetrics = 16

// leastGood is the number of good results from which the usual value is known.
const leastGood = 3

// readMetrics reads the numbers of a success. Ignored names the unusable ones; of too many the first in the order of their names are kept.
func (m *Message) readMetrics(doc *document.Reader) {
	const field = "metrics"
	fields, is := doc.Fields[field].(map[string]any)
	if !is && doc.Fields[field] != nil {
		m.Ignored = append(m.Ignored, field)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		number, _ := fields[name].(json.Number)
		n, err := number.Float64()
		if err != nil || math.Abs(n) > policy.MaxMetric || !policy.IsMetricName(name) || len(m.Metrics) == maxMetrics {
			m.Ignored = append(m.Ignored, field+"."+document.Shorten(Masked(name), document.MaxFound))
			continue
		}
		if m.Metrics == nil {
			m.Metrics = map[string]float64{}
		}
		m.Metrics[name] = n + 0 // a negative zero is zero
	}
	if most := maxMetrics + 1; len(m.Ignored) > most { // no need to report a thousand bad names
		m.Ignored = m.Ignored[:most]
	}
}

// FormatMetrics renders the numbers of a success for people: rows 40, bytes 1200.
func FormatMetrics(metrics map[string]float64) string {
	parts := make([]string, 0, len(metrics))
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		parts = append(parts, name+" "+policy.FormatMetric(metrics[name]))
	}
	return strings.Join(parts, ", ")
}

// Note is the attempt's own account: why it failed, why it is doubted, and its numbers.
func (a *Attempt) Note() string {
	notes := []string{a.Reason, "", FormatMetrics(a.Metrics), ""}
	if a.Unpublished {
		notes[3] = "not published"
	}
	if a.Suspect != "" && a.Suspect != a.Reason {
		notes[1] = "doubted: " + a.Suspect
		if a.Accepted {
			notes[1] += ", accepted"
		}
	}
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// Good reports whether the attempt is a measure of the usual: a success with something new that nobody doubts, or an accepted one.
func (a *Attempt) Good() bool {
	return a.Accepted || a.Outcome == EventSuccess && a.Suspect == "" && !a.FoundNothingNew()
}

// FoundNothingNew reports whether a success says so. Nobody judges its numbers: they are those in force.
func (a *Attempt) FoundNothingNew() bool { return isUnchanged(a.Changed) }

func isUnchanged(changed *bool) bool { return changed != nil && !*changed }

// Doubt returns why guards doubt a success with these numbers; empty: they do not. past is the history without it, newest first. A missing number
// is doubted if it is expected. The usual value comes from the history, or else from Usual of the model.
func Doubt(guards []policy.Guard, metrics map[string]float64, past []Attempt, usually string) string {
	var reasons []string
	for _, guard := range guards {
		n, carried := metrics[guard.Metric]
		if !carried {
			if reason := guard.Metric + ": missing, and the last good results had it"; expected(guard.Metric, past, usually) && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
			continue
		}
		usual, known := 0.0, true
		if guard.Relative() {
			usual, known = usualOf(guard, past, usually)
		}
		if known && !guard.Allows(n, usual) {
			reasons = append(reasons, guard.Reason(n, usual))
		}
	}
	return document.Shorten(strings.Join(reasons, "; "), document.MaxText)
}

// expected reports whether the last good results carry a number. If failures leave the history too few, the usual value before counts.
func expected(metric string, past []Attempt, usually string) bool {
	seen := 0
	for i := range past {
		if !past[i].Good() {
			continue
		}
		if _, carried := past[i].Metrics[metric]; !carried {
			return false
		}
		if seen++; seen == leastGood {
			return true
		}
	}
	_, known := parseUsual(usually)[metric]
	return known
}

// usualOf is the median of the last good results that carry the number, back to an accepted one, which begins a new level. If failures fill the
// history, the usual value from before counts. false: unknown.
func usualOf(guard policy.Guard, past []Attempt, usually string) (usual float64, known bool) {
	var good []float64
	for i := range past {
		if n, carried := past[i].Metrics[guard.Metric]; carried && past[i].Good() && len(good) < cmp.Or(guard.Of, policy.DefaultGuardOf) {
			good = append(good, n)
		}
		if past[i].Accepted {
			break
		}
	}
	if len(good) < leastGood {
		usual, known = parseUsual(usually)[guard.Metric]
		return usual, known
	}
	slices.Sort(good)
	return good[(len(good)-1)/2]/2 + good[len(good)/2]/2, true // of an odd number both are the middle one
}

// Usually returns Usual of the model after a good result: the usual value of each number that a guard names. past begins with that result.
func Usually(guards []policy.Guard, past []Attempt, usually string) string {
	known := map[string]float64{}
	for _, guard := range guards {
		usual, is := usualOf(guard, past, usually)
		if n, carried := past[0].Metrics[guard.Metric]; past[0].Accepted {
			usual, is = n, carried
		}
		if _, found := known[guard.Metric]; is && (guard.Relative() || !found) { // a comparison precedes a mere expectation
			known[guard.Metric] = usual
		}
	}
	if len(known) == 0 {
		return ""
	}
	text, _ := json.Marshal(known) // finite numbers
	return string(text)
}

// learn updates the usual values after a good result. older are the attempts before it.
func (d *Decision) learn(m *Model, older []Attempt) {
	d.Next.Usual = Usually(m.Policy.Guard, slices.Concat([]Attempt{*d.Ended}, older), m.Usual)
}

func parseUsual(text string) (usual map[string]float64) {
	_ = json.Unmarshal([]byte(text), &usual) // a text that somebody else wrote there is unknown
	return usual
}

// Doubts reports whether the guards must see the numbers of a message: only then the history is needed.
func (m *Model) Doubts(message *Message) bool {
	unchanged := isUnchanged(message.Changed) && !message.Unpublished // a withheld result is not in force
	return len(m.Policy.Guard) > 0 && !unchanged && !m.Outdated && !m.Unpublished
}

// judge decides about a success: it counts, or a guard doubts it and the policy decides. An undoubted success that was not published is made again.
// m.Past is the history without it.
func (m *Model) judge(message Message, now time.Time) (decision Decision) {
	verdict, reason := m.verdict(&message)
	switch {
	case verdict == VerdictFail:
		decision = m.Fail(policy.Doubted(reason), now)
		reason = ""
	case verdict == VerdictHold:
		decision = m.holdSuspect(reason, message, now)
	case message.Unpublished:
		decision = m.deferAttempt(EventInterrupted, 0, "not published: again at once", now)
		reason = ""
	default:
		decision = m.Succeed(now, message.Changed)
	}
	decision.Ended.Metrics, decision.Ended.Suspect, decision.Ended.Unpublished = message.Metrics, reason, message.Unpublished
	if decision.Event == EventSuccess && reason == "" && m.Doubts(&message) {
		decision.learn(m, m.Past)
	}
	decision.NotifiesSuspect = reason != "" && m.Policy.Notifies(policy.NoticeSuspect)
	return decision
}

// BySuspect parks a model whose last success is doubted. Time never opens it.
var BySuspect = NewBlocker(BlockerSuspect, "guard")

// Held reports whether the model waits until somebody accepts or rejects its last result.
func (s *State) Held() bool { return s.ParkedBy == BySuspect }

// holdSuspect parks the model behind a doubted success. The attempt is not counted, and the last success stays: so the model becomes stale if
// nobody decides.
func (m *Model) holdSuspect(reason string, message Message, now time.Time) Decision {
	decision := Decision{Event: EventSuspect, Next: m.State, Recheck: Never}
	next := &decision.Next
	next.AttemptNo, next.Deferrals, next.Deaths = max(0, next.AttemptNo-1), 0, 0
	if m.plan(next, now); next.RefreshAt.IsZero() { // with nothing planned it would start at once, if it were not held
		next.RefreshAt = now
	}
	next.ParkedBy, next.ParkedSince, next.Unpublished = BySuspect, now, message.Unpublished
	next.Why = "suspect: " + reason
	decision.end(m, now, policy.Failure{}, message.Changed)
	return decision
}

// accept ends the doubt about the last success: it counts from when it ended, and is a good result. If it counts already, only the doubt ends. If
// it was not published, it is made again at once.
func (m *Model) accept(now time.Time) (decision Decision, outcome Outcome) {
	ended, known := m.doubted()
	ended.Accepted = true
	switch {
	case m.Held() && m.Unpublished:
		decision, _ = m.Run(false, now)
		decision.Event, decision.Next.Why, decision.Next.Unpublished = EventAccept, "accepted: again, to publish it", true
		if known {
			decision.Ended = &ended
		}
	case m.Held():
		decision = m.released(ended, now).Succeed(m.ParkedSince, ended.Changed)
		decision.settle(ended)
		if next := &decision.Next; !next.RefreshAt.IsZero() && next.RefreshAt.Before(now) { // as behind a hold: once, and on time
			next.wait(now, TriggerPlanned, "accepted: was planned while it was held")
			decision.Ended.RefreshAt, decision.Ended.Why = next.RefreshAt, next.Why
		}
	case known && ended.Outcome == EventSuccess:
		decision = Decision{Event: EventAccept, Next: m.State, Ended: &ended}
	default:
		return Decision{}, Unchanged
	}
	if decision.Replaces = known; known {
		decision.learn(m, m.Past[1:])
	}
	return decision, Applied
}

// reject takes the doubted success that holds the model for a failure: its retries go on.
func (m *Model) reject(now time.Time) (Decision, Outcome) {
	if !m.Held() {
		return Decision{}, Unchanged
	}
	ended, known := m.doubted()
	reason := ended.Suspect
	if reason == "" { // the history keeps nothing
		reason = "rejected by hand"
	}
	decision := m.released(ended, now).Fail(policy.Doubted(reason), now)
	decision.settle(ended)
	decision.Replaces = known
	return decision, Applied
}

// doubted is the attempt that ended last, if its success is doubted and nobody has accepted it; false: there is no record of it.
func (m *Model) doubted() (ended Attempt, known bool) {
	if len(m.Past) > 0 && m.Past[0].AttemptUID == m.LastAttemptUID && m.Past[0].Suspect != "" && !m.Past[0].Accepted {
		return m.Past[0], true
	}
	return Attempt{EndedAt: m.ParkedSince, StartedAt: m.ParkedSince}, false
}

// released is the held model as it was when the attempt ended that is doubted: so it can succeed or fail now. Held time does not count towards giving up.
func (m *Model) released(ended Attempt, now time.Time) *Model {
	was := *m
	was.AttemptNo++
	was.notTried(&was.State, now.Sub(m.ParkedSince))
	was.AttemptUID, was.StartedAt, was.ProcessingAt, was.DeadlineAt, was.Worker = m.LastAttemptUID, ended.StartedAt, ended.ProcessingAt, ended.DeadlineAt, ended.Worker
	return &was
}

// settle keeps in the record of an attempt that is decided about now how it ended then.
func (d *Decision) settle(ended Attempt) {
	d.Ended.EndedAt, d.Ended.Duration = ended.EndedAt, ended.Duration
	d.Ended.Unpublished, d.Ended.Accepted = ended.Unpublished, ended.Accepted
	d.Ended.Metrics, d.Ended.Suspect, d.Ended.Ignored, d.Ended.LogBytes, d.Ended.LogURL = ended.Metrics, ended.Suspect, ended.Ignored, ended.LogBytes, ended.LogURL
}
