package playground

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	html "html/template"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

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
	return in.play(doc, name, true, answers[0])
}

func (in Setting) play(doc definitions.Document, from string, stored bool, answer *answer) (*Result, error) {
	var failed error
	find := func(name string) (policy.Policy, error) {
		p, err := in.Find(name)
		if err != nil && !errors.Is(err, ErrNotStored) {
			failed = err
		}
		return p, err
	}
	usual := func() policy.Policy {
		if p, err := find(policy.DefaultName); err == nil {
			return p
		}
		return policy.Default()
	}
	subject, err := definitions.ReadSubject(doc, from, stored, usual, find)
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return &Result{Problem: err.Error()}, nil
	}
	r := &Result{English: definitions.English(subject.Policy)}
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
	next, ends := answer.outcomes(), in.Clock().Add(2*time.Second)
	run := simulate.Simulate(*m, func() (simulate.Outcome, bool) {
		if in.Clock().After(ends) {
			return simulate.Outcome{}, false
		}
		outcome, more := next()
		if !more && in.Week {
			next = answer.outcomes() // and so on
			outcome, more = next()
		}
		return outcome, more
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
