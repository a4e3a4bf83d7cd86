// Package adopt turns the schedules of other systems into models and their policies. What it cannot carry over is a Note, with its line.
package adopt

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// Options apply to all schedules of a text.
type Options struct {
	Timezone string        // IANA name, of schedules that name none
	Timeout  time.Duration // of models that bring none along; 0: they have none, and cannot be saved
	System   bool          // each line of a crontab has a user before its command
	Users    []string      // of the machine, beside the usual ones: a crontab whose lines begin with them may be one of the system
	Now      time.Time     // changes of the clocks are looked for in the year after it
}

// Kind says what became of a schedule, or of a part of it.
type Kind string

// The kinds of notes.
const (
	Refused Kind = "refused"  // the line is wrong: it has no model
	LeftOut Kind = "left_out" // nothing here corresponds to it: a schedule has no model
	Differs Kind = "differs"  // there is a model, which does not do quite the same
	Carried Kind = "carried"  // it is carried over in another form
)

// Note is one line of the list of what was not simply carried over.
type Note struct {
	Line int    `json:"line"`
	Kind Kind   `json:"kind"`
	UID  string `json:"uid,omitempty"` // of the model; empty: none
	Text string `json:"text"`
}

// Model is a definition, and the line that it comes from.
type Model struct {
	model.Model

	Line int
}

// Adopted is what becomes of a text. The policies of the models have no more than Timeout and Spread.
type Adopted struct {
	Models []Model
	Notes  []Note // by line

	source   string // such as crontab
	options  Options
	jobs     []*job
	policies []string // in YAML
}

func (a *Adopted) note(line int, kind Kind, format string, values ...any) {
	a.Notes = append(a.Notes, Note{Line: line, Kind: kind, Text: fmt.Sprintf(format, values...)})
}

// WritePolicies prints the policies of all models in YAML, as refreshd apply reads them: what was never retried is not, and goes on at its next time,
// what cron missed is skipped, but a worker's exit codes 64, 65, 77 and 78 disable it.
func (a *Adopted) WritePolicies(to io.Writer) error {
	_, err := io.WriteString(to, strings.Join(a.policies, ""))
	return err
}

// WriteModels prints the models in YAML, each under the line that it comes from.
func (a *Adopted) WriteModels(to io.Writer) error {
	for i := range a.Models {
		fmt.Fprintf(to, "---\n# %s line %d\n", a.source, a.Models[i].Line)
		if err := definitions.WriteModel(to, &a.Models[i].Model); err != nil {
			return err
		}
	}
	return nil
}

// job is one schedule of another system.
type job struct {
	line       int
	rule, zone string
	cron       string // what is to be read as a rule
	title      string // for the list, where a line may have many jobs; empty: there the line says enough
	name       string // the readable part of the uid
	same       string // what two jobs have in common that do the same
	payload    map[string]any
	labels     map[string]any
	timeout    time.Duration // 0: that of Options
	spread     time.Duration
	isBash     bool // the shell of cron, of these commands
	notes      []Note

	uid    string
	starts *schedule.Schedule
}

func (j *job) note(kind Kind, format string, values ...any) {
	note := Note{Line: j.line, Kind: kind, Text: fmt.Sprintf(format, values...)}
	if !slices.Contains(j.notes, note) {
		j.notes = append(j.notes, note)
	}
}

// byHand says where a rule goes that is proposed: most of them are none that cron reads.
const byHand = ": mend it, or write a model into models.yaml by hand, with the rrule that you mean"

// check refuses a rule that we read otherwise, or not at all, and notes where it runs at another time when clocks are changed.
func (a *Adopted) check(j *job) error {
	dtstart, err := schedule.Midnight(a.options.Now, j.zone)
	if err != nil {
		return err
	}
	read, err := schedule.Read(j.rule)
	if err != nil {
		return fmt.Errorf("%w%s", err, byHand)
	}
	compiled, err := schedule.Parse(read.Rule, j.zone, dtstart)
	if err != nil {
		return fmt.Errorf("%w%s", err, byHand)
	}
	j.starts = compiled
	if a.source == "crontab" {
		for _, difference := range compiled.CronDifferences(a.options.Now, j.rule) {
			j.note(Differs, "%s", difference)
		}
		return nil
	}
	for _, change := range compiled.ClockChanges(a.options.Now, 366) {
		j.note(Differs, "%s here; %s may do otherwise", change, a.source)
	}
	return nil
}

func (a *Adopted) define(j *job) (m Model, err error) {
	timeout := cmp.Or(j.timeout, a.options.Timeout)
	m.Policy.Timeout, m.Policy.Spread, m.PolicyName = timeout, j.spread, a.source+"-"+document.FormatDuration(timeout)
	spread := ""
	if j.spread > 0 {
		text := document.FormatDuration(j.spread)
		m.PolicyName, spread = m.PolicyName+"-spread-"+text, "spread: "+text+"\n"
	}
	misfire := ""
	if a.source == "crontab" { // cron makes up for nothing
		misfire = "misfire: skip\n"
	}
	fields := map[string]any{"uid": j.uid, "rrule": j.rule, "timezone": j.zone, "policy": m.PolicyName, "payload": j.payload, "labels": j.labels}
	d, err := model.ParseDefinition(fields)
	m.UID, m.Payload, m.Timezone, m.Labels = d.UID, d.Payload, j.zone, d.Labels
	m.Rule, m.Line = j.rule, j.line // the rule as it was written
	policy := fmt.Sprintf("---\nname: %s\ntimeout: %s\n%s%sretries: []\non_exhausted: next_planned\n", m.PolicyName, document.FormatDuration(timeout), spread, misfire)
	if err == nil && !slices.Contains(a.policies, policy) {
		a.policies = append(a.policies, policy)
	}
	return m, err
}

// complete makes the models of the jobs.
func (a *Adopted) complete() *Adopted {
	refused := func(j *job, err error) bool {
		if err != nil {
			a.note(j.line, Refused, "%s%s", j.title, strings.TrimPrefix(err.Error(), "rrule: "))
		}
		return err != nil
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(j *job) bool { return refused(j, a.check(j)) })
	nameAll(a.jobs, a.options.Timezone)
	for _, j := range a.jobs {
		m, err := a.define(j)
		if refused(j, err) {
			continue
		}
		a.Models = append(a.Models, m)
		for _, note := range j.notes {
			note.UID = m.UID
			a.Notes = append(a.Notes, note)
		}
	}
	slices.SortStableFunc(a.Notes, func(x, y Note) int { return x.Line - y.Line })
	return a
}
