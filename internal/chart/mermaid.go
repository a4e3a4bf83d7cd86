package chart

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// mermaidAttempts bounds the attempts of one diagram: mermaid refuses more than 50,000 characters.
const mermaidAttempts = 150

// mermaidTexts bounds one text, in characters.
const mermaidTexts = 60

// Mermaid writes one gantt chart as the source documents draw it (S0-47). Its times are wall clock times of the charts'
// zone, because mermaid knows no zones; bars have a length instead of an end, so that the end of summer time cannot turn
// one around. Several charts become sections of one diagram. What does not fit is counted in the last section.
func Mermaid(w io.Writer, charts ...Chart) error {
	var text strings.Builder
	fmt.Fprintln(&text, "gantt")
	if title := inert(titleOf(charts)); title != "" {
		fmt.Fprintf(&text, "    title %s\n", title)
	}
	fmt.Fprintln(&text, "    dateFormat YYYY-MM-DDTHH:mm:ss")
	fmt.Fprintf(&text, "    axisFormat %s\n", mermaidAxis(charts))
	left := 0
	for i := range charts {
		g := gantt{text: &text, chart: &charts[i], room: mermaidAttempts / len(charts)}
		if len(charts) > 1 {
			g.prefix = inert(charts[i].name())
		}
		left += g.write()
	}
	if left > 0 {
		fmt.Fprintf(&text, "\n    section %d more attempts are left out\n", left)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write mermaid: %w", err)
	}
	return nil
}

// mermaidAxis shows what the length of the run makes useful.
func mermaidAxis(charts []Chart) string {
	var longest time.Duration
	for i := range charts {
		start, end := charts[i].bounds()
		if events := ordered(charts[i].Events); len(events) > 0 {
			start, end = events[0].At, events[len(events)-1].At
		}
		longest = max(longest, end.Sub(start))
	}
	switch {
	case longest <= 10*time.Minute:
		return "%H:%M:%S"
	case longest <= 24*time.Hour:
		return "%H:%M"
	case longest <= 7*24*time.Hour:
		return "%a %H:%M"
	default:
		return "%d %b"
	}
}

// gantt writes one chart.
type gantt struct {
	text   *strings.Builder
	chart  *Chart
	prefix string // of each section
	room   int    // for attempts
	days   bool   // a section for each day
	day    string // of the section that is open
	opened bool
}

// task is one line: a bar or, without a length, a milestone.
type task struct {
	at     time.Time
	name   string
	tag    string
	length time.Duration
}

// write returns how many attempts are left out.
func (g *gantt) write() int {
	events := ordered(g.chart.Events)
	attempts := attemptsOf(events)
	left := max(0, len(attempts)-g.room)
	_, end := g.chart.bounds()
	if left > 0 {
		end = attempts[g.room].start
		attempts = attempts[:g.room]
	}
	tasks := g.tasks(attempts, marks(events), end)
	g.days = len(tasks) > 0 && g.date(tasks[0].at) != g.date(tasks[len(tasks)-1].at)
	width := 0
	for _, task := range tasks {
		width = max(width, columns(task.name))
	}
	for _, task := range tasks {
		g.section(task.at)
		g.task(task, width)
	}
	return left
}

// tasks are the lines up to end, in the order of time.
func (g *gantt) tasks(attempts []attempt, marks []Event, end time.Time) []task {
	var tasks []task
	starts := map[int64]bool{}
	for _, attempt := range attempts {
		starts[attempt.start.Unix()] = true
		tasks = append(tasks, attemptTasks(&attempt, end)...)
	}
	for _, mark := range marks {
		if !mark.At.After(end) {
			name := mark.Kind.icon() + " " + capital(string(mark.Kind)) + inParentheses(sentence(mark.Why, mark.Reason))
			tasks = append(tasks, task{at: mark.At, name: name})
		}
	}
	for _, planned := range g.planned(end) {
		if !starts[planned.Unix()] {
			tasks = append(tasks, task{at: planned, name: "🗓 Planned"})
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return a.at.Compare(b.at) })
	return tasks
}

// planned are the planned refreshes of the time that the attempts take, up to end, and the one that comes next.
func (g *gantt) planned(end time.Time) []time.Time {
	shown := joint([]run{newRun(g.chart)})
	var planned []time.Time
	for _, at := range g.chart.Planned {
		if !at.Before(shown.from) && !at.After(shown.to) && !at.After(end) && len(planned) < g.room {
			planned = append(planned, at)
		}
	}
	return planned
}

func attemptTasks(a *attempt, end time.Time) []task {
	bar := task{at: a.start, name: "⚙️ " + a.name(), tag: barTag(a), length: max(time.Second, a.until(end).Sub(a.start))}
	if a.retry {
		bar.name = "🔄 " + a.name()
	}
	tasks := []task{bar}
	if !a.retry {
		tasks = []task{{at: a.start, name: "🚀 Start"}, bar}
	}
	if a.running() {
		return tasks
	}
	name := a.outcome.icon() + " " + capital(strings.ReplaceAll(string(a.outcome), "_", " "))
	if a.outcome.failed() {
		name += fmt.Sprintf(" %d%s", max(1, a.no), inParentheses(a.why))
	}
	return append(tasks, task{at: a.end, name: name})
}

func barTag(a *attempt) string {
	switch {
	case a.running():
		return "active"
	case a.outcome.failed():
		return "crit"
	case a.outcome == Success:
		return "done"
	default:
		return ""
	}
}

func (g *gantt) date(at time.Time) string { return at.In(g.chart.location()).Format(time.DateOnly) }

// section opens a section when a run of several days reaches another one, and the first one of a named chart.
func (g *gantt) section(at time.Time) {
	day := ""
	if g.days {
		day = at.In(g.chart.location()).Format("Mon 2 Jan")
	}
	if g.opened && day == g.day {
		return
	}
	g.opened, g.day = true, day
	if name := strings.TrimSpace(g.prefix + " " + day); name != "" {
		fmt.Fprintf(g.text, "\n    section %s\n", name)
	} else {
		fmt.Fprintln(g.text)
	}
}

func (g *gantt) task(t task, width int) {
	name := inert(t.name)
	fields := []string{t.at.In(g.chart.location()).Format("2006-01-02T15:04:05"), mermaidLength(t.length)}
	if t.length == 0 {
		t.tag = "milestone"
	}
	if t.tag != "" {
		fields = append([]string{t.tag}, fields...)
	}
	fmt.Fprintf(g.text, "    %s%s : %s\n", name, strings.Repeat(" ", max(0, width-columns(name))), strings.Join(fields, ", "))
}

func mermaidLength(length time.Duration) string {
	seconds := int64(length / time.Second)
	if length%time.Second > 0 {
		seconds++
	}
	switch {
	case seconds%60 != 0:
		return fmt.Sprintf("%ds", seconds)
	case seconds%3600 != 0 || seconds == 0:
		return fmt.Sprintf("%dm", seconds/60)
	default:
		return fmt.Sprintf("%dh", seconds/3600)
	}
}

// inert takes from a text what means something to mermaid: ends of names and lines, comments, directives, entities, HTML.
func inert(text string) string {
	text = mermaidMeanings.Replace(plain(text))
	return cut(strings.Join(strings.Fields(text), " "), mermaidTexts)
}

var mermaidMeanings = strings.NewReplacer(":", " ", ";", ",", "#", "", "%", "％", "{", "(", "}", ")", "<", "‹", ">", "›",
	"`", "'", `"`, "'", `\`, "/", "---", "—")

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + cut(text, mermaidTexts-20) + ")"
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
