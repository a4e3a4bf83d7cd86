package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/admin/adopt"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/shadow"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// ShadowRequest says how to compare models with the log of an old system.
type ShadowRequest struct {
	Models   string // directory or file with models and policies; empty: those of the queue
	Format   string // of the log
	Columns  string // of the log, and
	Outcomes string // its words
	Timezone string // of times without an offset
	Within   string // tolerance between two starts that agree
	From     string // time; empty: the first run
	Until    string // time; empty: the last run

	log     shadow.Log
	options shadow.Options
}

// Validate refuses what is wrong for any log. queue names the lists in the output of redis-cli monitor.
func (r *ShadowRequest) Validate(queue string) error {
	keys, err := store.NewKeys(queue)
	if err != nil {
		return refused(err)
	}
	r.log = shadow.Log{Format: r.Format, Input: keys.Input, Output: keys.Output}
	if !slices.Contains(shadow.Formats, r.Format) {
		return refuse("format", "one of "+strings.Join(shadow.Formats, ", "), document.Found(r.Format))
	}
	if r.log.Columns, err = shadow.ParseColumns(r.Columns); err != nil {
		return refusedAt("columns", err)
	}
	if r.log.Columns.Outcomes, err = shadow.ParseOutcomes(r.Outcomes); err != nil {
		return refusedAt("outcomes", err)
	}
	if r.log.Zone, err = schedule.Zone(r.Timezone); err != nil {
		return refused(err)
	}
	if r.options.Within, err = document.ParseDuration(r.Within); err != nil {
		return refusedAt("within", err)
	}
	if r.options.From, err = r.time(r.From); err != nil {
		return refusedAt("from", err)
	}
	r.options.To, err = r.time(r.Until)
	return refusedAt("until", err)
}

func (r *ShadowRequest) time(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return simulate.ParseTime(text, r.log.Zone)
}

// Shadow is the result of a comparison.
type Shadow struct {
	*shadow.Report

	Zone   *time.Location
	Within time.Duration
}

// Lines are the result for programs: each model that differs, and a summary.
func (s *Shadow) Lines() (lines []any) {
	for _, m := range s.Differing {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			shadow.ModelTotals
		}{"model", m})
	}
	return append(lines, struct {
		Kind string `json:"kind"`
		*shadow.Report
		Differing int                 `json:"differing"` // models
		Kinds     []shadow.KindTotals `json:"kinds"`
	}{"summary", s.Report, len(s.Differing), s.Totals})
}

// Shadow compares a log with our decisions, on a clock that begins at now. It calls each with every difference, unless it is nil. If documents are
// refused, it notes them and compares nothing.
func (in Inputs) Shadow(
	ctx context.Context, r ShadowRequest, now time.Time, from string, wrap func(io.Reader) io.Reader, each func(shadow.Difference, *time.Location),
) (Shadow, error) {
	if each != nil {
		r.options.Found = func(d shadow.Difference) { each(d, r.log.Zone) }
	}
	comparison, err := shadow.New(r.options), error(nil)
	r.log.Now, r.log.Commands.Written = now, adopt.Command
	if r.Models != "" {
		err = in.define(comparison, &r.log.Commands, r.Models, now)
	} else {
		err = in.Connect(ctx, func(o Operator) error {
			r.log.Wire = o.Queue.Wire
			return o.Queue.Each(func(part *store.Store) error {
				return part.Report().EachPicked(ctx, model.Selector{}, func(record *store.Record) error {
					stored, payload := record.Model, record.Payload
					stored.State, stored.Payload = model.State{Phase: stored.Phase}, "" // what it is doing does not count
					stored.Policy.Spread = 0                                            // the old system had none
					source := func(time.Time) (*model.Model, error) { return &stored, nil }
					comparison.Define(stored.UID, source)
					r.log.Commands.Add(stored.UID, payload, stored.Labels, source)
					return nil
				})
			})
		})
	}
	if err != nil {
		return Shadow{}, err
	}
	name, file, err := in.Open(from)
	if err != nil {
		return Shadow{}, err
	}
	defer func() { _ = file.Close() }() // only read
	err = r.log.Read(wrap(file), func(run shadow.Run) error { return cmp.Or(ctx.Err(), comparison.Take(run)) }, comparison.Refuse)
	if err != nil {
		return Shadow{}, fmt.Errorf("%s: %w", name, err)
	}
	report, err := comparison.End()
	return Shadow{report, r.log.Zone, r.options.Within}, err
}

func (in Inputs) define(comparison *shadow.Comparison, commands *shadow.Commands, from string, now time.Time) error {
	directory, err := definitions.ReadDirectory(from)
	if err != nil {
		return err
	}
	for _, one := range directory.Refused {
		in.Note(one.At(one.Err).Error())
	}
	if len(directory.Refused) > 0 {
		return ErrRefused
	}
	policies, err := directory.WholePolicies(policy.Default())
	if err != nil {
		return err
	}
	for _, m := range directory.Models {
		m.Definition.Complete(policies.ByName[policy.DefaultName])
		p, err := policies.Find(&m.Definition)
		if err == nil {
			_, err = simulate.NewModel(m.Definition, p, now)
		}
		if err != nil {
			return m.At(err)
		}
		p.Spread = 0 // the old system had none
		source := func(at time.Time) (*model.Model, error) { return simulate.NewModel(m.Definition, p, at) }
		comparison.Define(m.Definition.UID, source)
		commands.Add(m.Definition.UID, m.Definition.Payload, m.Definition.Labels, source)
	}
	return nil
}

// ErrRefused ends a command that has already reported its refusals.
var ErrRefused = errors.New("failed, as reported above")
