package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// output prints what happens: as text without control characters, or as a JSON object on one line.
type output struct {
	to   io.Writer
	json bool
}

// print prints one thing. As with fmt.Fprintln, a reader that has gone is no reason to fail.
func (o output) print(text string, object map[string]any) {
	if !o.json {
		fmt.Fprintln(o.to, text)
		return
	}
	encoder := json.NewEncoder(o.to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(object)
}

type introduction struct {
	title    string
	cli      string // how to look inside
	commands []string
	pages    string // for a browser; "": none
}

func (o output) begin(i introduction) {
	lines := []string{i.title, ""}
	for _, s := range scenarios {
		lines = append(lines, "  "+fit(s.uid, widthUID)+"  "+s.about)
	}
	lines = append(lines, "", "Look inside while it runs:")
	if i.pages != "" {
		lines = append(lines, "  "+i.pages+" in a browser")
	}
	for _, command := range i.commands {
		lines = append(lines, "  "+i.cli+" "+command)
	}
	lines = append(lines, "", columns("time", "model", "event", "try", "next", "why"))
	o.print(strings.Join(lines, "\n"), map[string]any{"title": i.title, "cli": i.cli, "commands": i.commands, "dashboard": i.pages})
}

func (o output) line(l line) {
	o.print(l.String(), map[string]any{
		"at": model.FormatTime(l.at), "uid": l.uid, "event": l.event, "try": l.try, "next": l.next, "why": l.why,
	})
}

func (o output) summary(check *checklist, counters map[string]int64) {
	type seen struct {
		UID  string `json:"uid"`
		Text string `json:"behaviour"`
		Seen bool   `json:"seen"`
	}
	lines, list := []string{"", fmt.Sprintf("Seen: %d of %d", check.count(), len(behaviours))}, make([]seen, len(behaviours))
	for i, behaviour := range behaviours {
		box := map[bool]string{true: "[x]", false: "[ ]"}[check.ticked[i]]
		lines = append(lines, "  "+box+" "+fit(behaviour.uid, widthUID)+"  "+behaviour.text)
		list[i] = seen{behaviour.uid, behaviour.text, check.ticked[i]}
	}
	var counted []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		counted = append(counted, fmt.Sprintf("%s %d", document.OneLine(name), counters[name]))
	}
	lines = append(lines, "Counted: "+strings.Join(counted, ", "))
	o.print(strings.Join(lines, "\n"), map[string]any{"seen": list, "counters": counters})
}

type line struct {
	at    time.Time
	uid   string
	event string
	try   string // attempt_no
	next  string // the next event, and when
	why   string
}

// transitionLine describes a transition. planned is the planned refresh that the journal named before: it does not repeat it.
func transitionLine(e model.JournalEntry, planned time.Time) line {
	why := e.Why
	switch { // in the owner's words, or the worker's
	case e.DisabledReason != "":
		why += " · " + e.DisabledReason
	case e.Reason != "" && e.Event != model.EventTimeout: // there the event says it already
		why += " · " + e.Reason
	}
	refreshAt := e.RefreshAt
	if refreshAt.IsZero() && planned.After(e.At) && !e.Final && !strings.HasPrefix(e.Why, "finished") {
		refreshAt = planned
	}
	return line{
		at: e.At, uid: e.UID, event: string(e.Event), try: attemptNo(e.AttemptNo),
		next: next(e.DeadlineAt, refreshAt, e.At), why: strings.TrimSpace(why),
	}
}

func noticeLine(e model.Notification) line {
	why := "the owner is told: it is well again"
	if e.Notice == policy.NoticeDisabled {
		why = "the owner is told: " + e.Reason
	}
	return line{at: e.At, uid: e.UID, event: "outbox", next: "-", why: why}
}

func statusLine(now time.Time, record *store.Record) line {
	return line{
		at: now, uid: record.UID, event: string(model.EventStatus), try: attemptNo(record.AttemptNo),
		next: fmt.Sprintf("%d%%", record.Progress), why: record.UserFriendlyStatus,
	}
}

// actLine is an act of a person or program outside refreshd.
func actLine(at time.Time, uid, text string) line {
	return line{at: at, uid: uid, event: "--", next: "-", why: text}
}

func attemptNo(no int) string {
	if no == 0 {
		return ""
	}
	return strconv.Itoa(no)
}

func next(deadlineAt, refreshAt, now time.Time) string {
	switch {
	case !deadlineAt.IsZero():
		return "deadline " + until(deadlineAt, now)
	case !refreshAt.IsZero():
		return "refresh " + until(refreshAt, now)
	default:
		return "when saved"
	}
}

func until(at, now time.Time) string {
	switch left := at.Sub(now); {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return fmt.Sprintf("+%.1fs", left.Seconds())
	case left < time.Hour:
		return fmt.Sprintf("+%dm", int(left.Minutes()))
	default:
		return fmt.Sprintf("+%dh", int(left.Hours()))
	}
}

const widthUID = 10

// lineWidths are the widths of time, model, event, try and next; why has the rest.
var lineWidths = []int{len("07:00:00.000"), widthUID, 11, 3, len("deadline +10.0s")}

func (l line) String() string {
	return columns(l.at.UTC().Format("15:04:05.000"), document.OneLine(l.uid), document.OneLine(l.event), l.try, l.next, document.OneLine(l.why))
}

// columns aligns the cells of a line.
func columns(cells ...string) string {
	for i, width := range lineWidths {
		cells[i] = fit(cells[i], width)
	}
	return strings.TrimRight(strings.Join(cells, "  "), " ")
}

func fit(text string, width int) string { return fmt.Sprintf("%-*s", width, document.Cut(text, width)) }
