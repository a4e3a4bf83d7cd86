package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

func putCommand(a *app) *cobra.Command {
	var format string
	var verbose bool
	command := &cobra.Command{
		Use:   "put FILE|-",
		Short: "Save models from YAML, JSON or JSON lines",
		Long: `Save the models of a file, or of standard input.

YAML may hold many documents, or a list; JSON an object, several, or a list; both are read to the end before the first
model is saved, so that a file cut off in the middle saves nothing. JSON lines (an object on each line) are saved as they
are read, so that a million of them need no memory.

What model get -o json and model ls -o json show is saved again too, edited or not: of its fields only those of the
definition count. A document with an error is named and makes the exit code 1; the others are saved. To save what is saved already changes
nothing. At the end it says how many models it has saved; with --verbose it names each. Of rules in English it tells
once how each was read: in a canonical sentence, with its next three times.

The file must be a regular one. YAML and JSON may have 64 MiB, a document 4 MiB.`,
		Args: oneFile,
		RunE: func(command *cobra.Command, args []string) error {
			if err := oneOf("format", format, definitions.Formats); err != nil {
				return err
			}
			return a.withQueue(command.Context(), func(queue *store.Queue) error {
				return a.put(command.Context(), queue, args[0], format, verbose)
			})
		},
	}
	a.bindBy(command.Flags())
	command.Flags().BoolVar(&verbose, "verbose", false, "name each model that is saved")
	command.Flags().StringVar(&format, "format", definitions.FormatAuto, "`FORMAT` of the file: "+strings.Join(definitions.Formats, ", "))
	return command
}

func (a *app) put(ctx context.Context, queue *store.Queue, path, format string, verbose bool) error {
	name, in, err := a.openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	by, err := a.wantedBy()
	if err != nil {
		return err
	}
	tally := newTally(a)
	tally.brief = !verbose
	saving := startSaving(ctx, queue, tally)
	err = definitions.ReadModels(name, a.showProgress(in), format, func(m definitions.Model) error {
		saving.add(putRequest(m, by))
		return saving.ctx.Err()
	})
	if err == nil {
		saving.send()
	}
	err = cmp.Or(saving.end(), err)
	tally.warn()
	if err != nil {
		return err
	}
	return tally.end()
}

// saving carries out batches of requests, some of them at a time, and tells of them in their order.
type saving struct {
	ctx     context.Context // it ends when a batch has failed
	queue   *store.Queue
	tally   *tally
	batch   []*operate.Request   // that is being filled
	counts  map[*store.Store]int // how many of it each part gets
	last    []*flight            // that were begun last
	flights chan *flight         // that are to be told of
	told    chan error           // the first failure, when all was told
}

// flight is a batch that is being carried out.
type flight struct {
	batch []*operate.Request
	uids  map[string]bool
	ended chan struct{} // closed when err is known
	err   error
}

// inFlight is how many batches are carried out at a time: while Redis works on one, others are read, decided and told of.
const inFlight = 3

func startSaving(ctx context.Context, queue *store.Queue, tally *tally) *saving {
	ctx, stop := context.WithCancel(ctx)
	s := &saving{ctx: ctx, queue: queue, tally: tally, flights: make(chan *flight, inFlight-1), told: make(chan error, 1)}
	s.counts = make(map[*store.Store]int)
	go func() { s.told <- s.tell(stop) }()
	return s
}

// maxBatch bounds what the batches of all parts hold together, at about the memory of four.
const maxBatch = 4 * operate.BatchSize

// add fills the batch, and begins with it when a part has got enough for a commit.
func (s *saving) add(r *operate.Request) {
	part := s.queue.Of(r.Command.UID)
	s.batch = append(s.batch, r)
	if s.counts[part]++; s.counts[part] == operate.BatchSize || len(s.batch) == maxBatch {
		s.send()
	}
}

// send begins with the batch, but not before those have ended that have a model of it too: what is saved last must be saved last.
func (s *saving) send() {
	f := &flight{batch: s.batch, uids: make(map[string]bool, len(s.batch)), ended: make(chan struct{})}
	for _, request := range f.batch {
		f.uids[request.Command.UID] = true
	}
	for _, other := range s.last {
		if other.shares(f) {
			<-other.ended
		}
	}
	go func() {
		defer close(f.ended)
		f.err = operate.Execute(s.ctx, s.queue, f.batch)
	}()
	s.flights <- f
	clear(s.counts)
	s.batch, s.last = nil, append(s.last, f)[max(0, len(s.last)+1-2*inFlight):]
}

func (f *flight) shares(other *flight) bool {
	for uid := range other.uids {
		if f.uids[uid] {
			return true
		}
	}
	return false
}

// tell tells of each batch when it has ended, up to the first that has failed.
func (s *saving) tell(stop func()) (failed error) {
	defer stop()
	for f := range s.flights {
		<-f.ended
		switch {
		case failed != nil:
		case f.err != nil:
			failed = fmt.Errorf("after %d documents: %w", s.tally.documents, f.err)
		default:
			failed = s.tally.tell(f.batch)
		}
		if failed != nil {
			stop()
		}
	}
	return failed
}

// end waits until all was told.
func (s *saving) end() error {
	close(s.flights)
	return <-s.told
}

// putRequest is the request to save a model of a file, refused already if it is none.
func putRequest(m definitions.Model, by string) *operate.Request {
	r := &operate.Request{Command: model.Command{Type: model.CommandPut, UID: m.Definition.UID, Definition: m.Definition, By: by}, Position: m.Position, InWords: m.InWords()}
	if m.Err != nil {
		r.Refuse(m.Err)
	}
	return r
}

// tally tells what became of requests and counts it.
type tally struct {
	app       *app
	brief     bool // what was done is counted only, in a table
	documents int
	results   map[string]int
	linter    definitions.ModelLinter
	read      map[rule]bool // that its author was told of
	warned    map[policy.Warning]*sharedWarning
	warnings  []*sharedWarning // in the order in which they were met
}

type sharedWarning struct {
	text   string // with the position in the first of them
	models int
}

func newTally(a *app) *tally {
	return &tally{app: a, results: make(map[string]int), read: make(map[rule]bool), warned: make(map[policy.Warning]*sharedWarning)}
}

// outcome is what is told of one command with -o json.
type outcome struct {
	UID       string    `json:"uid"`
	Result    string    `json:"result"`
	RefreshAt time.Time `json:"refresh_at"`
	Error     string    `json:"error,omitempty"`
	// Warnings are what is seldom meant, each told of the first model that it is about.
	Warnings []string `json:"warnings,omitempty"`
	// ReadAs is how a rule in English was read, told of the first model that has it.
	ReadAs *schedule.Understood `json:"read_as,omitempty"`
}

type rule struct{ text, timezone string }

// mostRead bounds how many different rules are told of: nobody reads more.
const mostRead = 100

func (t *tally) tell(requests []*operate.Request) error {
	var lines strings.Builder
	t.documents += len(requests)
	for _, request := range requests {
		t.results[request.Result]++
		told := outcome{UID: request.Command.UID, Result: request.Result, RefreshAt: request.Next}
		if request.Refused != nil {
			told.Error = request.Problem()
			t.app.complain(told.Error)
		}
		if request.Saved != nil && request.Refused == nil {
			anchored := request.Command.Definition.Dtstart != ""
			told.Warnings = t.lint(request, t.linter.Lint(request.Saved, anchored, time.Now()))
			told.ReadAs = t.readAs(request, time.Now())
		}
		if t.app.json() {
			if err := print.JSONLine(&lines, told); err != nil {
				return err
			}
		} else if request.Refused == nil && !t.brief {
			fmt.Fprintf(&lines, "%-9s  %s\n", told.Result, told.UID)
		}
	}
	_, err := io.WriteString(t.app.stdout, lines.String())
	return err
}

// readAs tells how the rule of a model was read, unless it was written as a rule, or another model has told of it.
func (t *tally) readAs(request *operate.Request, now time.Time) *schedule.Understood {
	m := request.Saved
	same := rule{cmp.Or(m.Rule, m.Policy.Rule), m.Zone()}
	if !request.InWords || t.read[same] || len(t.read) == mostRead {
		return nil
	}
	t.read[same] = true
	read, err := m.ReadAs(now)
	if err != nil {
		return nil // it was parsed
	}
	return t.app.readAs(request.Position, &read)
}

// lint notes the warnings about a model, and returns those that no model before it had.
func (t *tally) lint(request *operate.Request, warnings []policy.Warning) (first []string) {
	for _, w := range warnings {
		shared := t.warned[w]
		if shared == nil {
			shared = &sharedWarning{text: plain(request.Position(w.Field) + ": " + w.String())}
			t.warned[w], t.warnings, first = shared, append(t.warnings, shared), append(first, shared.text)
		}
		shared.models++
	}
	return first
}

// warn tells each warning once, and how many models it is about.
func (t *tally) warn() {
	for _, shared := range t.warnings {
		text := "warning: " + shared.text
		if shared.models > 1 {
			text += fmt.Sprintf(" (%d models)", shared.models)
		}
		fmt.Fprintln(t.app.stderr, text)
	}
}

// end sums up what was saved; it is an error when anything was refused.
func (t *tally) end() error {
	if r := t.results; !t.app.json() {
		fmt.Fprintf(t.app.stdout, "%s: %d created, %d updated, %d unchanged, %d refused\n",
			words.Count(t.documents, "model", "models"), r[operate.ResultCreated], r[operate.ResultUpdated], r[operate.ResultUnchanged], r[operate.ResultRefused])
	}
	return t.failed()
}

func (t *tally) failed() error {
	if t.results[operate.ResultRefused] > 0 {
		return errReported
	}
	return nil
}
