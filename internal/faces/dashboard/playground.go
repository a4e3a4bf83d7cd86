package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	html "html/template"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

var playgroundPage = page{path: "playground", title: "Playground", nav: true, file: "playground", read: readPlayground, form: true, drawn: true}

// playground is a policy that somebody tries. Nothing of it is stored.
type playground struct {
	Text     string
	Answers  []*answer
	Answer   *answer // the chosen one
	Examples []example
	*played
}

type answer struct {
	Name, Text string

	outcomes func() simulate.Outcomes
}

func listed(outcomes ...simulate.Outcome) func() simulate.Outcomes {
	return func() simulate.Outcomes { return simulate.Listed(outcomes) }
}

func always(o simulate.Outcome) func() simulate.Outcomes {
	return func() simulate.Outcomes { return simulate.Always(o) }
}

var (
	failed    = simulate.Outcome{Result: simulate.Failure, After: time.Minute}
	succeeded = simulate.Outcome{Result: simulate.Success, After: 2 * time.Minute}
)

// answers are all that can be chosen; the first one is the default.
var answers = []*answer{
	{"fails", "every attempt fails after a minute", always(failed)},
	{"recovers", "three attempts fail, then one succeeds", listed(failed, failed, failed, succeeded)},
	{"lost", "no worker answers", always(simulate.Outcome{Result: simulate.Lost})},
	{"succeeds", "every attempt succeeds after two minutes", listed(slices.Repeat([]simulate.Outcome{succeeded}, 6)...)},
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

const (
	// maxPlay is how large a policy may be that somebody tries, in bytes.
	maxPlay = 64 << 10
	// maxPlays is how many simulations run at the same time.
	maxPlays = 2
)

func readPlayground(ctx context.Context, req *request) (any, error) {
	page := &playground{Text: req.get("text"), Answers: answers, Examples: examples, played: &played{}}
	page.Answer = answers[max(0, slices.IndexFunc(answers, func(a *answer) bool { return a.Name == req.get("answers") }))]
	switch name := req.get("policy"); {
	case page.Text != "":
	case name != "":
		p, err := readStored(ctx, req.queue.Parts[0], name)
		if err != nil {
			return nil, err
		}
		page.Text = definitions.English(p)
	default:
		page.Text = examples[max(0, slices.IndexFunc(examples, func(e example) bool { return e.Name == req.get("example") }))].text
	}
	switch docs, err := definitions.ReadPolicies("your text", strings.NewReader(page.Text)); {
	case len(page.Text) > maxPlay:
		page.Problem, page.Text = document.Refuse("text", "at most 64 KiB", fmt.Sprintf("%d bytes", len(page.Text))).Error(), ""
	case err != nil:
		page.Problem = err.Error()
	case len(docs) != 1:
		page.Problem = fmt.Sprintf("your text: expected one policy or model, found %d", len(docs))
	default:
		if page.played, err = play(ctx, req, docs[0], "your text", false, page.Answer); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// played is a policy in words, and a simulation of it.
type played struct {
	Problem       string
	Warnings      []string
	YAML, English string
	ReadAs        string   // its rule, with the next times; empty: it has none
	Picture       html.URL // of base64 alone
	Table         string
	About         string
}

// Played is itself: for templates, in which it is embedded.
func (p *played) Played() *played { return p }

// play reads a policy or model and simulates it. Errors in it become a problem.
func play(ctx context.Context, req *request, doc definitions.Document, from string, stored bool, answer *answer) (*played, error) {
	select {
	case req.plays <- struct{}{}:
		defer func() { <-req.plays }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	store := req.queue.Parts[0]
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	usual := func() policy.Policy {
		p, err := readStored(ctx, store, policy.DefaultName)
		switch {
		case err == nil:
			return p
		case !errors.Is(err, errAbsent):
			failed = err
		}
		return policy.Default()
	}
	subject, err := definitions.ReadSubject(doc, from, stored, usual, func(name string) (policy.Policy, error) { return readStored(ctx, store, name) })
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return &played{Problem: err.Error()}, nil
	}
	shown := &played{English: definitions.English(subject.Policy)}
	for _, w := range definitions.LintPolicy(doc, subject.Policy, now) {
		shown.Warnings = append(shown.Warnings, doc.Position(w.Field)+": "+w.String())
	}
	var yaml bytes.Buffer
	if err := definitions.WriteYAML(&yaml, subject.Policy); err != nil {
		return nil, err
	}
	shown.YAML = yaml.String()
	return shown, shown.simulate(req.clock, subject, answer, now)
}

// simulate draws the attempts from now on, as many as have a row each in the picture. clock is that of this process, which bounds how long it takes.
func (p *played) simulate(clock func() time.Time, subject definitions.Subject, answer *answer, now time.Time) error {
	plan := simulate.Plan{Start: now.Truncate(time.Second), Limit: 24, Seed: 1}
	m, err := simulate.NewModel(subject.Definition, subject.Policy, plan.Start)
	if err != nil {
		p.Problem = subject.At(err).Error()
		return nil
	}
	if read, err := m.ReadAs(now); err == nil { // else there is no rule
		p.ReadAs = read.String()
	}
	zone, err := time.LoadLocation(m.Zone())
	if err != nil {
		zone = time.UTC
	}
	next, ends := answer.outcomes(), clock().Add(2*time.Second)
	run := simulate.Simulate(*m, func() (simulate.Outcome, bool) {
		if clock().After(ends) {
			return simulate.Outcome{}, false
		}
		return next()
	}, plan)
	drawn := run.Chart(plan, subject.Name, zone)
	var svg, table bytes.Buffer
	if err := cmp.Or(chart.SVG(&svg, drawn), chart.Table(&table, drawn)); err != nil {
		return err
	}
	p.Picture = html.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg.Bytes())) //nolint:gosec // base64 has no markup
	p.Table = table.String()
	p.About = fmt.Sprintf("What would happen from now on if %s: %d attempts. The table below says the same.", answer.Text, run.Attempts)
	return nil
}
