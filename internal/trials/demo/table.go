package demo

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Screen tells how many characters a terminal shows in a row and how many rows it has.
type Screen func() (width, height int)

// The escape sequences of the table.
const (
	cursorHide  = "\x1b[?25l"
	cursorShow  = "\x1b[?25h"
	clearScreen = "\x1b[2J"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	colorOff    = "\x1b[0m"
)

var statusColors = map[model.Status]string{
	model.StatusDisabled:   "\x1b[31m",
	model.StatusDue:        "\x1b[33m",
	model.StatusQueued:     "\x1b[33m",
	model.StatusProcessing: "\x1b[36m",
	model.StatusFinished:   "\x1b[32m",
}

// recentLines is how many lines the table shows below the models, if there is room.
const recentLines = 12

var tableWidths = []int{widthUID, widthEvent, widthTry, widthNext, widthEvent}

// table is the output for a terminal: one row for each model, written over itself.
type table struct {
	textLines // for the summary

	screen Screen
	color  bool

	introduction introduction
	recent       []line // oldest first
	outcomes     map[string]string
	last         snapshot
}

func newTable(out io.Writer, screen Screen, color bool) *table {
	return &table{textLines: textLines{out}, screen: screen, color: color, outcomes: make(map[string]string)}
}

func (t *table) begin(i introduction) {
	t.introduction = i
	fmt.Fprint(t.out, cursorHide, clearScreen)
}

func (t *table) line(l line) {
	switch model.Event(l.event) {
	case model.EventSuccess, model.EventFailure, model.EventTimeout, model.EventWithdrawn, model.EventInterrupted, model.EventPostponed:
		t.outcomes[l.uid] = l.event
	}
	t.recent = append(t.recent, l)
	t.recent = slices.Clone(t.recent[max(0, len(t.recent)-recentLines):])
}

func (t *table) show(s snapshot) {
	t.last = s
	t.draw()
}

// end leaves the last table standing and the cursor below it.
func (t *table) end() {
	t.draw()
	fmt.Fprint(t.out, cursorShow)
}

// draw writes the frame in one piece, so that it never flickers.
func (t *table) draw() {
	width, height := t.screen()
	rows := t.frame(width, height)
	fmt.Fprint(t.out, cursorHome+strings.Join(rows, clearLine+"\r\n")+clearLine+"\r\n"+clearBelow)
}

// frame renders the rows that fit the screen, with the last row left to the cursor.
func (t *table) frame(width, height int) []string {
	seen := fmt.Sprintf("%d of %d behaviours seen. Ctrl-C ends it.", t.last.seen, len(behaviours))
	inside := t.introduction.cli + "  " + strings.Join(t.introduction.commands[:3], "  |  ")
	if t.introduction.pages != "" {
		inside = t.introduction.pages + "  |  " + inside
	}
	rows := []string{t.introduction.title, seen, inside, "", columns(tableWidths, "model", "status", "try", "next", "last", "why")}
	for i := range rows {
		rows[i] = document.Cut(rows[i], width)
	}
	for _, record := range t.last.models {
		rows = append(rows, t.model(record, width))
	}
	rows = append(rows, "")
	room := max(0, height-1-len(rows))
	for _, l := range t.recent[max(0, len(t.recent)-room):] {
		rows = append(rows, document.Cut(l.String(), width))
	}
	return rows[:min(len(rows), max(1, height-1))]
}

// model renders one row. Colors come last: they have no width.
func (t *table) model(record *store.Record, width int) string {
	_, queued := t.last.queued[record.AttemptUID]
	status := record.Status(t.last.now, queued && record.Running())
	why := record.Why // what an owner wants to know of the model now
	switch {
	case record.Disabled:
		why = record.DisabledReason
	case record.Running() && record.UserFriendlyStatus != "":
		why = fmt.Sprintf("%d%% %s", record.Progress, record.UserFriendlyStatus)
	}
	text := document.Cut(columns(tableWidths, document.OneLine(record.UID), string(status), attemptNo(record.AttemptNo),
		next(record.DeadlineAt, record.RefreshAt, t.last.now), t.outcomes[record.UID], document.OneLine(why)), width)
	if color := statusColors[status]; t.color && color != "" {
		return strings.Replace(text, string(status), color+string(status)+colorOff, 1)
	}
	return text
}

// The size of a terminal that does not tell its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// ScreenOf returns the screen of a terminal. It is asked anew each time, so that it may change its size.
func ScreenOf(terminal *os.File) Screen {
	return func() (width, height int) {
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil || width == 0 || height == 0 {
			return defaultWidth, defaultHeight
		}
		return width, height
	}
}
