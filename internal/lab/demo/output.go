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

type output interface {
	begin(i introduction)
	line(l line)
	summary(check *checklist, counters map[string]int64)
}

type introduction struct {
	title    string
	cli      string // how to look inside
	commands []string
	pages    string // for a browser; "": none
}

// textLines prints one line for each event, without control characters.
type textLines struct{ out io.Writer }

func (t textLines) begin(i introduction) {
	fmt.Fprintln(t.out, i.title+"\n")
	for _, s := range scenarios {
		fmt.Fprintln(t.out, "  "+fit(s.uid, widthUID)+"  "+s.about)
	}
	fmt.Fprintln(t.out, "\nLook inside while it runs:")
	if i.pages != "" {
		fmt.Fprintln(t.out, "  "+i.pages+" in a browser")
	}
	for _, command := range i.commands {
		fmt.Fprintln(t.out, "  "+i.cli+" "+command)
	}
	fmt.Fprintln(t.out, "\n"+columns(lineWidths, "time", "model", "event", "try", "next", "why"))
}

func (t textLines) line(l line) { fmt.Fprintln(t.out, l) }

func (t textLines) summary(check *checklist, counters map[string]int64) {
	fmt.Fprintf(t.out, "\nSeen: %d of %d\n", check.count(), len(behaviours))
	for i, behaviour := range behaviours {
		box := "[ ]"
		if check.ticked[i] {
			box = "[x]"
		}
		fmt.Fprintf(t.out, "  %s %s  %s\n", box, fit(behaviour.uid, widthUID), behaviour.text)
	}
	var counted []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		counted = append(counted, fmt.Sprintf("%s %d", document.OneLine(name), counters[name]))
	}
	fmt.Fprintln(t.out, "Counted: "+strings.Join(counted, ", "))
}

// jsonLines prints one JSON object for each event, and one as summary.
type jsonLines struct{ out io.Writer }

func (j jsonLines) begin(i introduction) {
	j.print(map[string]any{"title": i.title, "cli": i.cli, "commands": i.commands, "dashboard": i.pages})
}

func (j jsonLines) line(l line) {
	j.print(map[string]any{
		"at": model.FormatTime(l.at), "uid": l.uid, "event": l.event, "try": l.try, "next": l.next, "why": l.why,
	})
}

func (j jsonLines) summary(check *checklist, counters map[string]int64) {
	type seen struct {
		UID  string `json:"uid"`
		Text string `json:"behaviour"`
		Seen bool   `json:"seen"`
	}
	list := make([]seen, len(behaviours))
	for i, behaviour := range behaviours {
		list[i] = seen{behaviour.uid, behaviour.text, check.ticked[i]}
	}
	j.print(map[string]any{"seen": list, "counters": counters})
}

func (j jsonLines) print(value any) {
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // as with fmt.Fprintln, a reader that has gone is no reason to fail
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
	return columns(lineWidths, l.at.UTC().Format("15:04:05.000"), document.OneLine(l.uid), document.OneLine(l.event), l.try, l.next, document.OneLine(l.why))
}

// columns aligns cells; the last one has no width.
func columns(widths []int, cells ...string) string {
	var text strings.Builder
	for i, width := range widths {
		text.WriteString(fit(cells[i], width) + "  ")
	}
	return strings.TrimRight(text.String()+cells[len(widths)], " ")
}

func fit(text string, width int) string { return fmt.Sprintf("%-*s", width, document.Cut(text, width)) }
