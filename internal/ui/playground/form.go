// Package playground simulates a policy, and shows it in HTML: a picture, a table, and how it was read. It knows no Redis and no HTTP, so that it
// also runs in a browser, see cmd/playground.
package playground

import (
	_ "embed" // the templates
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model/document"
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

	outcomes func() simulate.Outcomes
}

var (
	failed    = simulate.Outcome{Result: simulate.Failure, After: time.Minute}
	succeeded = simulate.Outcome{Result: simulate.Success, After: 2 * time.Minute}
)

// answers can be chosen; the first one is the default.
var answers = []*answer{
	{"fails", "every attempt fails after a minute", func() simulate.Outcomes { return simulate.Always(failed) }},
	{"recovers", "three attempts fail, then one succeeds", func() simulate.Outcomes {
		return simulate.Listed([]simulate.Outcome{failed, failed, failed, succeeded})
	}},
	{"lost", "no worker answers", func() simulate.Outcomes { return simulate.Always(simulate.Outcome{Result: simulate.Lost}) }},
	{"succeeds", "every attempt succeeds after two minutes", func() simulate.Outcomes { return simulate.Listed(slices.Repeat([]simulate.Outcome{succeeded}, 6)) }},
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
		f.Result, err = in.play(docs[0], from, false, f.Answer)
		return err
	}
	return nil
}
