// Package playground simulates a policy, and shows it in HTML: a picture, a table, and how it was read. It knows no Redis and no HTTP, so that it
// also runs in a browser, see cmd/playground.
package playground

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	html "html/template"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Templates are those of html/template: "playground" shows a Form, "played" a Result.
//
//go:embed playground.html
var Templates string

// Form is a policy to try. Nothing of it is stored.
type Form struct {
	Text     string
	Answers  []*answer
	Answer   *answer // the chosen one
	Examples []example
	*Result
}

type answer struct {
	Name, Text string

	outcomes simulate.Outcomes
}

var (
	failed    = simulate.Outcome{Result: simulate.Failure, After: time.Minute}
	succeeded = simulate.Outcome{Result: simulate.Success, After: 2 * time.Minute}
)

// answers can be chosen; the first one is the default.
var answers = []*answer{
	{"fails", "every attempt fails after a minute", simulate.Always(failed)},
	{"recovers", "three attempts fail, then one succeeds", slices.Values([]simulate.Outcome{failed, failed, failed, succeeded})},
	{"lost", "no worker answers", simulate.Always(simulate.Outcome{Result: simulate.Lost})},
	{"succeeds", "every attempt succeeds after two minutes", slices.Values(slices.Repeat([]simulate.Outcome{succeeded}, 6))},
}

type example struct{ Name, Title, text string }

var examples = []example{
	{"english", "in English", `- This policy is called twice-daily
- Refresh the feed twice per day at 6 AM and 4 PM in the time zone Europe/Berlin
- Allow 1 hour for a response
- On the first failure, retry immediately
- On the second failure, retry after 5 minutes
- On the third failure, retry after 15 minutes
- On the fourth failure:
  - Reset attempt_no
  - Wait until the next scheduled refresh
- Give up after one week of unsuccessful attempts:
  - Disable auto-refresh
`},
	{"yaml", "in YAML", `name: hourly
rrule: FREQ=HOURLY
timezone: Europe/Berlin
timeout: 10m
retries: [0, 2m, 5m, 15m]
alignment: until_success
on_exhausted: next_planned
`},
}

// maxText bounds a policy to try, in bytes.
const maxText = 64 << 10

// ReadForm reads the fields text, answers and example; without a text, an example is tried.
func ReadForm(get func(field string) string) *Form {
	f := &Form{Text: get("text"), Answers: answers, Examples: examples, Result: &Result{}}
	f.Answer = answers[max(0, slices.IndexFunc(answers, func(a *answer) bool { return a.Name == get("answers") }))]
	if f.Text == "" {
		f.Text = examples[max(0, slices.IndexFunc(examples, func(e example) bool { return e.Name == get("example") }))].text
	}
	return f
}

// Play simulates the text. A wrong text becomes a problem; an error is one of Setting.Find.
func (f *Form) Play(in Setting) error {
	const from = "your text"
	docs, err := definitions.ReadPolicies(from, strings.NewReader(f.Text))
	switch {
	case len(f.Text) > maxText:
		f.Problem, f.Text = document.Refuse("text", "at most 64 KiB", fmt.Sprintf("%d bytes", len(f.Text))).Error(), ""
	case err != nil:
		f.Problem = err.Error()
	case len(docs) != 1:
		f.Problem = fmt.Sprintf("%s: expected one policy or model, found %d", from, len(docs))
	default:
		f.Result, err = in.play(docs[0], from, f.Answer)
		return err
	}
	return nil
}

// Setting is where a policy is tried.
type Setting struct {
	Now   time.Time                                // when the simulation begins
	Clock func() time.Time                         // of this process; bounds how long the simulation takes
	Find  func(name string) (policy.Policy, error) // a stored policy, or ErrNotStored
	Week  bool                                     // simulate a week; else as many attempts as have a row each in the picture
}

// ErrNotStored says that no policy of a name is stored.
var ErrNotStored = errors.New("expected one that is stored, found none of that name")

// Result is a policy in words, and a simulation of it.
type Result struct {
	Problem       string
	Warnings      []string
	YAML, English string
	ReadAs        string   // its rule, with the next times; empty: it has none
	Picture       html.URL // of base64 alone
	Table         string
	About         string
}

// PlayStored simulates a stored policy whose attempts all fail.
func (in Setting) PlayStored(doc definitions.Document, name string) (*Result, error) {
	doc.Stored = true
	return in.play(doc, name, answers[0])
}

func (in Setting) play(doc definitions.Document, from string, answer *answer) (*Result, error) {
	var failed error
	find := func(name string) (policy.Policy, error) {
		p, err := in.Find(name)
		if err != nil && !errors.Is(err, ErrNotStored) {
			failed = err
		}
		return p, err
	}
	known, err := find(policy.DefaultName)
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		known = policy.Default()
	}
	subject, err := definitions.ReadSubject(doc, from, func() policy.Policy { return known }, find)
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return &Result{Problem: err.Error()}, nil
	}
	r := &Result{English: definitions.EnglishBeside(subject.Policy, known)}
	m, err := simulate.NewModel(subject.Definition, subject.Policy, in.Now.Truncate(time.Second))
	if err != nil {
		return &Result{Problem: subject.At(err).Error()}, nil
	}
	warnings := definitions.LintPolicy(doc, subject.Policy, in.Now)
	if subject.Model {
		warnings = new(definitions.ModelLinter).Lint(m, subject.Definition.Dtstart != "", in.Now)
	}
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, doc.Position(w.Field)+": "+w.String())
	}
	var yaml bytes.Buffer
	if err := definitions.WriteYAML(&yaml, subject.Policy); err != nil {
		return nil, err
	}
	r.YAML = yaml.String()
	return r, r.simulate(in, subject.Name, m, answer)
}

func (r *Result) simulate(in Setting, name string, m *model.Model, answer *answer) error {
	plan, when := simulate.Plan{Start: in.Now.Truncate(time.Second), Limit: 24, Seed: 1}, "from now on"
	if in.Week {
		plan.Limit, plan.Until, when = 500, plan.Start.AddDate(0, 0, 7), "in the next week"
	}
	if read, err := m.ReadAs(in.Now); err == nil { // else there is no rule
		r.ReadAs = read.String()
	}
	zone, err := schedule.Zone(m.Zone())
	if err != nil {
		zone = time.UTC
	}
	ends := in.Clock().Add(2 * time.Second)
	run := simulate.Simulate(*m, func(yield func(simulate.Outcome) bool) {
		for again := true; again; again = in.Week { // and so on
			for outcome := range answer.outcomes {
				if in.Clock().After(ends) || !yield(outcome) {
					return
				}
			}
		}
	}, plan)
	drawn := run.Chart(plan, name, zone)
	var svg, table bytes.Buffer
	if err := cmp.Or(chart.SVG(&svg, drawn), chart.Table(&table, drawn)); err != nil {
		return err
	}
	r.Picture = html.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg.Bytes())) //nolint:gosec // base64 has no markup
	r.Table = table.String()
	r.About = fmt.Sprintf("What would happen %s if %s: %d attempts. The table below says the same.", when, answer.Text, run.Attempts)
	return nil
}
