package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// line is one thing that happened, in words.
type line struct {
	at    time.Time
	uid   string
	event string
	try   string // attempt_no
	next  string // what happens by itself next, and when
	why   string
}

func transitionLine(e model.JournalEntry) line {
	l := line{at: e.At, uid: e.UID, event: string(e.Event), try: attemptNo(e.AttemptNo), why: e.Why}
	switch {
	case !e.DeadlineAt.IsZero():
		l.next = "deadline " + until(e.DeadlineAt, e.At)
	case !e.RefreshAt.IsZero():
		l.next = "refresh " + until(e.RefreshAt, e.At)
	}
	if told := reason(e); told != "" {
		l.why = strings.TrimSpace(l.why + " · " + told)
	}
	return l
}

func noticeLine(e model.Notification) line {
	why := "the owner is told: it is well again"
	if e.Notice == policy.NoticeDisabled {
		why = "the owner is told: " + e.Reason
	}
	return line{at: e.At, uid: e.UID, event: "outbox", why: why}
}

func statusLine(now time.Time, record *scripts.Record) line {
	return line{
		at: now, uid: record.UID, event: string(model.EventStatus), try: attemptNo(record.AttemptNo),
		next: fmt.Sprintf("%d%%", record.Progress), why: record.UserFriendlyStatus,
	}
}

// actLine is something that a person or a program outside refreshd does.
func actLine(at time.Time, uid, text string) line {
	return line{at: at, uid: uid, event: "--", why: text}
}

func attemptNo(no int) string {
	if no == 0 {
		return ""
	}
	return strconv.Itoa(no)
}

// The widths of the columns before why.
const (
	widthTime  = len("07:00:00.000")
	widthUID   = 10
	widthEvent = 11
	widthTry   = 3
	widthNext  = len("deadline +10.0s")
)

// lineHead names the columns.
var lineHead = columns("time", "model", "event", "try", "next", "why")

func (l line) String() string {
	return columns(l.at.UTC().Format("15:04:05.000"), plain(l.uid), plain(l.event), l.try, l.next, plain(l.why))
}

func columns(at, uid, event, try, next, why string) string {
	text := fit(at, widthTime) + "  " + fit(uid, widthUID) + "  " + fit(event, widthEvent) + "  " + fit(try, widthTry) + "  " +
		fit(next, widthNext) + "  " + why
	return strings.TrimRight(text, " ")
}

// reason is what is known of a failure beside the consequence: the owner's words, or the worker's.
func reason(e model.JournalEntry) string {
	if e.DisabledReason != "" {
		return e.DisabledReason
	}
	if e.Event == model.EventTimeout {
		return "" // the event says it already
	}
	return e.Reason
}
