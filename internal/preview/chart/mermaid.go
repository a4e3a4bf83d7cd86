package chart

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/refreshd/refreshd/model/document"
)

// mermaidAttempts bounds the attempts of one diagram: mermaid refuses more than 50,000 characters.
const mermaidAttempts = 150

const mermaidTexts = 60

// Mermaid writes one gantt chart. Its times are wall clock times of the charts' zone, because mermaid knows no zones; bars have
// a length instead of an end, which might lie before the start when summer time ends. Several charts become sections of one
// diagram. What does not fit is counted in the last section.
func Mermaid(w io.Writer, charts ...Chart) error {
	runs := readAll(charts)
	var text strings.Builder
	fmt.Fprintln(&text, "gantt")
	if title := inert(titleOf(runs)); title != "" {
		fmt.Fprintf(&text, "    title %s\n", title)
	}
	fmt.Fprintln(&text, "    dateFormat YYYY-MM-DDTHH:mm:ss")
	fmt.Fprintf(&text, "    axisFormat %s\n", mermaidAxis(runs))
	left := 0
	for _, r := range runs {
		g := gantt{text: &text, run: r, room: mermaidAttempts / len(runs)}
		if len(runs) > 1 {
			g.prefix = inert(r.name())
		}
		g.write()
		left += max(0, len(r.attempts)-g.room)
	}
	if left > 0 {
		fmt.Fprintf(&text, "\n    section %d more attempts are left out\n", left)
	}
	return write(w, "mermaid", text.String())
}

func mermaidAxis(runs []*run) string {
	var longest time.Duration
	for _, r := range runs {
		start, end := r.Start, r.End
		if n := len(r.Events); n > 0 {
			start, end = r.Events[0].At, r.Events[n-1].At
		}
		longest = max(longest, end.Sub(start))
	}
	switch {
	case longest <= 10*time.Minute:
		return "%H:%M:%S"
	case longest <= oneDay:
		return "%H:%M"
	case longest <= 7*oneDay:
		return "%a %H:%M"
	default:
		return "%d %b"
	}
}

type gantt struct {
	*run
	text   *strings.Builder
	prefix string // of each section
	room   int    // for attempts
}

// task is one line: a bar or, without a length, a milestone.
type task struct {
	at     time.Time
	name   string
	tag    string
	length time.Duration
}

func (g *gantt) write() {
	tasks := g.tasks()
	if len(tasks) == 0 {
		return
	}
	day := func(t task, layout string) string { return t.at.In(g.Location).Format(layout) }
	severalDays := day(tasks[0], time.DateOnly) != day(tasks[len(tasks)-1], time.DateOnly)
	width := 0
	for _, t := range tasks {
		width = max(width, uniseg.StringWidth(t.name))
	}
	open := ""
	for i, t := range tasks {
		section := g.prefix
		if severalDays {
			section = strings.TrimSpace(section + " " + day(t, "Mon 2 Jan"))
		}
		switch {
		case i > 0 && section == open:
		case section == "":
			fmt.Fprintln(g.text)
		default:
			fmt.Fprintf(g.text, "\n    section %s\n", section)
		}
		open = section
		seconds := int64(math.Ceil(t.length.Seconds()))
		length := fmt.Sprintf("%dh", seconds/3600)
		if seconds%60 != 0 {
			length = fmt.Sprintf("%ds", seconds)
		} else if seconds%3600 != 0 || seconds == 0 {
			length = fmt.Sprintf("%dm", seconds/60)
		}
		if t.length == 0 {
			t.tag = "milestone"
		}
		if t.tag != "" {
			t.tag += ", "
		}
		name := inert(t.name)
		padding := strings.Repeat(" ", max(0, width-uniseg.StringWidth(name)))
		fmt.Fprintf(g.text, "    %s%s : %s%s, %s\n", name, padding, t.tag, day(t, "2006-01-02T15:04:05"), length)
	}
}

func (g *gantt) tasks() []task {
	end, room := g.End, g.room
	if len(g.attempts) > room {
		end = g.attempts[room].begin.At
	}
	var tasks []task
	starts := map[int64]bool{}
	for _, row := range g.rows {
		if a := row.attempt; a == nil {
			if !row.at.After(end) {
				name := row.mark.Kind.look().icon + " " + capital(row.mark.Kind.text()) + inParentheses(sentence(row.mark.Why, row.mark.Reason))
				tasks = append(tasks, task{at: row.at, name: name})
			}
		} else if room > 0 {
			room--
			starts[a.begin.At.Unix()] = true
			tasks = append(tasks, a.tasks(end)...)
		}
	}
	// The planned refreshes of the time that the attempts take, and the one that comes next.
	shown, planned := joint([]*run{g.run}), 0
	for _, at := range g.Planned {
		if !at.Before(shown.from) && !at.After(shown.to) && !at.After(end) && planned < g.room {
			planned++
			if !starts[at.Unix()] {
				tasks = append(tasks, task{at: at, name: "🗓 Planned"})
			}
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return a.at.Compare(b.at) })
	return tasks
}

// inert takes from a text what means something to mermaid: ends of names and lines, comments, directives, entities, HTML.
func inert(text string) string {
	text = mermaidMeanings.Replace(document.OneLine(text))
	return document.Cut(strings.Join(strings.Fields(text), " "), mermaidTexts)
}

var mermaidMeanings = strings.NewReplacer(":", " ", ";", ",", "#", "", "%", "％", "{", "(", "}", ")", "<", "‹", ">", "›",
	"`", "'", `"`, "'", `\`, "/", "---", "—")

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + document.Cut(text, mermaidTexts-20) + ")"
}

func (a *attempt) tasks(end time.Time) []task {
	bar := task{at: a.begin.At, name: "⚙️ " + a.name(), tag: a.end.Kind.look().tag, length: max(time.Second, a.until(end).Sub(a.begin.At))}
	tasks := []task{{at: a.begin.At, name: "🚀 Start"}, bar}
	if a.begin.isRetry() {
		bar.name = "🔄 " + a.name()
		tasks = []task{bar}
	}
	if a.running() {
		return tasks
	}
	name := a.end.Kind.look().icon + " " + capital(a.end.Kind.text())
	if a.end.Kind.failed() {
		name += fmt.Sprintf(" %d%s", max(1, a.begin.AttemptNo), inParentheses(a.end.Why))
	}
	return append(tasks, task{at: a.end.At, name: name})
}
