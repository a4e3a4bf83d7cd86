package explain

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

var update = flag.Bool("update", false, "write testdata/situations.md")

// page is what the situations are printed on, and compared with.
const page = "testdata/situations.md"

const preface = `# Situations

What [` + "`refreshd explain`" + `](cli.md#refreshd-explain) says, in UTC unless a zone is named.
`

// situation is a model, what happens to it, and when somebody asks.
type situation struct {
	title      string
	definition string // JSON fields of a put at midnight
	steps      string // "06:00 start | 06:10 failure", as told at life.do
	now        string
	world      func(*world)
	also       []string // definitions that are told alike, but for the clock
}

// world is what surrounds the model.
type world struct {
	blockers model.Blockers
	limiters model.Limiters
	circuit  *flow.KeyCircuit
	place    report.QueuePosition
	turn     [2]int64 // its place among those that wait for its blocker, of so many
	alike    int64    // models that fail by the same fingerprint
	liveness *model.Liveness
	broken   bool
	rejected *Rejection
	queue    model.QueueCircuit
	shown    *time.Location // nil: in the zone of the schedule
}

type section struct {
	title string
	rows  []situation
}

var sections = []section{
	{"Waiting for a time", waiting}, {"Starting", starting}, {"Running", running}, {"Retry or planned refresh", aligned}, {"After a failure", failed},
	{"The end", ends}, {"Stopped from outside", stopping}, {"Freshness and faults", troubles},
}

func TestEachSituationIsToldInShortSentencesAsThePagePrints(t *testing.T) {
	text, count := preface, 0
	for _, section := range sections {
		text += "\n## " + section.title + "\n\n| situation | at | answer |\n|-|-|-|\n"
		for _, row := range section.rows {
			count++
			t.Run(row.title, func(t *testing.T) {
				e := row.explanation(t)
				all := row.told(t, e)
				for _, other := range row.also {
					row.definition = other
					equal(t, clocks.ReplaceAllString(all, "T"), clocks.ReplaceAllString(row.told(t, row.explanation(t)), "T"))
				}
				clock := strings.NewReplacer("tbl_1 at ", "", " (UTC)", "").Replace(e.Heading())
				text += fmt.Sprintf("| %s | %s | %s |\n", row.title, clock, all)
				failIf(t, zones.MatchString(all) && e.zone.String() == e.m.Zone(), "expected the zone in the heading alone, found it in %s", all)
			})
		}
	}
	failIf(t, count < 60, "expected 60 situations, found %d", count)
	words := len(strings.Fields(strings.NewReplacer("|", " ", "|-|-|-|", "").Replace(text)))
	failIf(t, words > 2000, "expected at most 2,000 words, found %d", words)
	if *update {
		must(t, os.WriteFile(page, []byte(text), 0o644)) //nolint:gosec // a page for everybody
	}
	stored, err := os.ReadFile(page)
	must(t, err)
	equal(t, text, string(stored))
}

// told is what the page prints, once all that is told has been found well.
func (row *situation) told(t *testing.T, e *Explanation) string {
	t.Helper()
	glance := e.Summarize()
	all := strings.Replace(join(e.Story()...), " Never succeeded.", "", 1)
	for _, text := range []string{all, glance.Last, join(e.Next()...), e.StatusText()} {
		requireSentences(t, text)
	}
	return all
}

var (
	clocks      = regexp.MustCompile(`\d\d:\d\d`)
	sentenceEnd = regexp.MustCompile(`[.?] `)
	zones       = regexp.MustCompile(`\b(UTC|[A-Z][a-z]+/[A-Z]\w+)\b`)
)

// requireSentences holds for whatever is told.
func requireSentences(t *testing.T, text string) {
	t.Helper()
	for _, sentence := range sentenceEnd.Split(text, -1) {
		count := len(strings.Fields(sentence))
		failIf(t, count > 15, "expected at most 15 words, found %d in %q", count, sentence)
		failIf(t, strings.Contains(sentence, "  ") || strings.Contains(sentence, "()"), "an empty place in %q", sentence)
	}
	failIf(t, text != "" && !strings.HasSuffix(text, "."), "expected a full stop at the end of %q", text)
}

// life is a model and what has happened to it.
type life struct {
	t        *testing.T
	w        world
	m        model.Model
	exists   bool
	taken    bool
	attempts []model.Attempt // newest first
}

func (row *situation) explanation(t *testing.T) *Explanation {
	t.Helper()
	l := &life{t: t, m: model.Model{UID: "tbl_1"}}
	now := at(row.now)
	if l.w.liveness = alive(now); row.world != nil {
		row.world(&l.w)
	}
	l.command(at("00:00"), "put", row.definition)
	for step := range strings.SplitSeq(row.steps, "|") {
		if words := strings.SplitN(strings.TrimSpace(step), " ", 3); len(words) > 1 {
			l.do(at(words[0]), words[1], strings.Join(words[2:], ""))
		}
	}
	return l.explain(now)
}

// at reads "06:00", "06:00:30" or, of the next day, "06:00+1".
func at(text string) time.Time {
	hours, day, _ := strings.Cut(text, "+")
	var days int
	_, _ = fmt.Sscan(day, &days)
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(layout, hours); err == nil {
			return time.Date(2026, 3, 27+days, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
		}
	}
	panic("expected a clock, found " + text)
}

// alive are a dispatcher, a poller and a worker that have just given signs of life.
func alive(now time.Time) *model.Liveness {
	return &model.Liveness{Now: now, Last: map[model.Role]time.Time{model.RoleDispatcher: now, model.RolePoller: now, model.RoleWorker: now}}
}

// do takes one step: what the dispatcher does (start, timeout, withdraw), what an application or a person wants (put, run, enable, disable),
// level, ages (its freshness changes), taken (a worker takes the attempt), or what a worker says. What follows are further JSON fields.
func (l *life) do(now time.Time, verb, extra string) {
	l.t.Helper()
	switch verb {
	case "start":
		if !l.m.Due(now) && !l.m.Parked() {
			l.t.Fatalf("%s: impossible to start what is not due: %s", now, l.m.Why)
		}
		l.apply(l.w.blockers.StartOrPark(&l.m, &l.w.limiters, fmt.Sprint("a", now.Unix()), now), now)
		l.taken = false
	case "timeout":
		l.apply(l.m.Expire(now), now)
	case "withdraw":
		l.apply(l.m.Withdraw(now), now)
	case "level":
		length, err := time.ParseDuration(extra)
		must(l.t, err)
		decision, _ := l.m.Level(length, now)
		l.apply(decision, now)
	case "ages":
		l.apply(l.m.ChangeFreshness(now), now)
	case "taken":
		l.taken = true
	case "put", "run", "enable", "disable":
		l.command(now, verb, extra)
	default:
		l.say(now, verb, extra)
	}
}

func (l *life) command(now time.Time, verb, extra string) {
	l.t.Helper()
	command, err := model.DecodeCommand([]byte(fmt.Sprintf(`{"type":%q,"uid":"tbl_1"%s}`, verb, comma(extra))))
	must(l.t, err)
	l.m.Taken = l.taken
	decision, outcome, err := l.m.Execute(&command, model.Policies{ByName: map[string]policy.Policy{command.Definition.PolicyName: policy.Default()}}, l.exists, now)
	must(l.t, err)
	if outcome == model.Applied {
		l.apply(decision, now)
	}
}

func (l *life) say(now time.Time, kind, extra string) {
	l.t.Helper()
	l.taken = true
	message, err := model.Wire{}.DecodeMessage([]byte(fmt.Sprintf(`{"type":%q,"big_table_uid":"tbl_1","refresh_attempt_uid":%q%s}`, kind, l.m.AttemptUID, comma(extra))))
	must(l.t, err)
	l.m.Past = l.attempts
	decision, outcome := l.m.Handle(message, now)
	if outcome != model.Applied {
		l.t.Fatalf("%s %s: expected it applied, found %s", now, kind, outcome)
	}
	l.apply(decision, now)
}

func comma(fields string) string {
	if fields == "" {
		return ""
	}
	return "," + fields
}

func (l *life) apply(decision model.Decision, now time.Time) {
	l.m.Watch(&decision, now)
	if decision.Definition != nil {
		l.m = *decision.Definition
		l.m.QueueCircuit = l.w.queue
	}
	if l.m.State, l.exists = decision.Next, true; decision.Ended == nil {
		return
	}
	if len(l.attempts) > 0 && decision.Ended.Times > 1 {
		l.attempts = l.attempts[1:]
	}
	l.attempts = slices.Insert(l.attempts, 0, *decision.Ended)
}

func (l *life) explain(now time.Time) *Explanation {
	m := &l.m
	status := m.Status(now, !l.taken)
	record := &store.Record{Exists: true, Model: *m, Broken: l.w.broken}
	if l.w.broken {
		status = model.StatusBroken
	}
	m = &record.Model
	e := &Explanation{
		View: View{Record: record, Status: status, Now: now, Liveness: l.w.liveness, Rejection: l.w.rejected}, Attempts: l.attempts, m: m, zone: cmp.Or(l.w.shown, ZoneOf(m)),
		place: l.w.place, alike: report.FailureGroup{Models: l.w.alike},
	}
	e.admission = flow.Admission{Blockers: l.w.blockers, Limits: l.w.blockers.LimitsOf(m, now), Rooms: l.w.limiters, Circuit: l.w.circuit, Place: l.w.turn[0], Waiting: l.w.turn[1]}
	e.Forecast, e.WaitsFor = l.w.blockers.Forecast(m, &e.admission.Rooms, now)
	return e
}

func calendar(t *testing.T, text string) schedule.Calendar {
	t.Helper()
	var fields map[string]any
	must(t, json.Unmarshal([]byte(text), &fields))
	c, err := schedule.ParseCalendar(fields)
	must(t, err)
	return c
}
