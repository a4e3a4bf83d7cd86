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
	Answers  []answer
	Examples []link
	*played
}

// answer is what workers are taken to answer.
type answer struct {
	Name, Text string
	Chosen     bool

	outcomes func() simulate.Outcomes
}

func always(o simulate.Outcome) func() simulate.Outcomes {
	return func() simulate.Outcomes { return simulate.Always(o) }
}

var failed = simulate.Outcome{Result: simulate.Failure, After: time.Minute}

// answers are all that can be chosen; the first one is what is usual.
var answers = []answer{
	{Name: "fails", Text: "every attempt fails after a minute", outcomes: always(failed)},
	{Name: "recovers", Text: "three attempts fail, then one succeeds", outcomes: func() simulate.Outcomes {
		return simulate.Listed([]simulate.Outcome{failed, failed, failed, {Result: simulate.Success, After: 2 * time.Minute}})
	}},
	{Name: "lost", Text: "no worker answers", outcomes: always(simulate.Outcome{Result: simulate.Lost})},
	{Name: "succeeds", Text: "every attempt succeeds after two minutes", outcomes: func() simulate.Outcomes {
		return simulate.Listed(slices.Repeat([]simulate.Outcome{{Result: simulate.Success, After: 2 * time.Minute}}, 6))
	}},
}

// examples are policies to begin with.
var examples = []struct{ name, title, text string }{
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
	// largestPlay is how large a policy may be that somebody tries, in bytes.
	largestPlay = 64 << 10
	// playTime bounds a simulation, and playLimit its attempts: as many as have a row each in the picture.
	playTime  = 2 * time.Second
	playLimit = 24
	// mostPlays is how many simulations run at the same time.
	mostPlays = 2
)

func readPlayground(ctx context.Context, v *visit) (any, error) {
	page := &playground{Text: v.get("text"), Answers: slices.Clone(answers)}
	chosen := max(0, slices.IndexFunc(answers, func(a answer) bool { return a.Name == v.get("answers") }))
	page.Answers[chosen].Chosen = true
	for _, example := range examples {
		page.Examples = append(page.Examples, link{Text: example.title, Address: v.link("playground", "example", example.name)})
		if page.Text == "" && example.name == cmp.Or(v.get("example"), examples[0].name) {
			page.Text = example.text
		}
	}
	if name := v.get("policy"); name != "" && v.get("text") == "" {
		p, err := storedNow(ctx, v.queue.Parts[0], name)
		if err != nil {
			return nil, err
		}
		page.Text = definitions.English(p)
	}
	page.played = &played{}
	switch docs, err := definitions.ReadPolicies("your text", strings.NewReader(page.Text)); {
	case len(page.Text) > largestPlay:
		page.Problem, page.Text = document.Refuse("text", "at most 64 KiB", fmt.Sprintf("%d bytes", len(page.Text))).Error(), ""
	case err != nil:
		page.Problem = err.Error()
	case len(docs) != 1:
		page.Problem = fmt.Sprintf("your text: expected one policy or model, found %d", len(docs))
	default:
		if page.played, err = v.play(ctx, docs[0], "your text", false, answers[chosen].Name); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// played is what a policy says and would do.
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

// play reads a policy or model and simulates it. What is wrong with it is told as a problem.
func (v *visit) play(ctx context.Context, doc definitions.Document, from string, stored bool, how string) (*played, error) {
	select {
	case v.plays <- struct{}{}:
		defer func() { <-v.plays }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	store := v.queue.Parts[0]
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	usual := func() policy.Policy {
		p, err := storedNow(ctx, store, policy.DefaultName)
		if err == nil {
			return p
		}
		if !errors.Is(err, errAbsent) {
			failed = err
		}
		return policy.Default()
	}
	subject, err := definitions.ReadSubject(doc, from, stored, usual, func(name string) (policy.Policy, error) { return storedNow(ctx, store, name) })
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
	return shown, shown.simulate(v, subject, how, now)
}

// simulate draws what would happen from now on.
func (p *played) simulate(v *visit, subject definitions.Subject, how string, now time.Time) error {
	chosen := answers[max(0, slices.IndexFunc(answers, func(a answer) bool { return a.Name == how }))]
	plan := simulate.Plan{Start: now.Truncate(time.Second), Limit: playLimit, Seed: 1}
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
	next, ends := chosen.outcomes(), v.clock().Add(playTime)
	run := simulate.Simulate(*m, func() (simulate.Outcome, bool) {
		if v.clock().After(ends) {
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
	p.About = fmt.Sprintf("What would happen from now on if %s: %d attempts. The table below says the same.", chosen.Text, run.Attempts)
	return nil
}
