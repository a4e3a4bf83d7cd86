package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

type line struct {
	at    time.Time
	uid   string
	event string
	try   string // attempt_no
	next  string // what happens next, and when
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
