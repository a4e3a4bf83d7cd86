package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// Outcome is the outcome of one command.
type Outcome struct {
	UID       string    `json:"uid"`
	Result    string    `json:"result"`
	RefreshAt time.Time `json:"refresh_at"`
	Error     string    `json:"error,omitempty"`
	// Warnings are reported with the first model that they concern.
	Warnings []string `json:"warnings,omitempty"`
	// ReadAs is reported with the first model of a rule in English.
	ReadAs   *schedule.ParsedAs `json:"read_as,omitempty"`
	Position string             `json:"-"` // of that model
	Refused  error              `json:"-"` // the cause of Error; nil: nothing was refused
}

// Tally counts the outcomes of commands.
type Tally struct {
	Commands int
	Results  map[string]int
	Warnings []Warning // in the order in which they were met
}

// changed counts the commands that have changed something.
func (t *Tally) changed() int {
	return t.Commands - t.Results[ResultUnchanged] - t.Results[ResultRefused]
}

// noteRest completes the deed of the first of many batches by how many changed behind it.
func (o Operator) noteRest(ctx context.Context, verb string, changed int) error {
	if changed == 0 {
		return nil
	}
	return o.Queue.NoteDeed(context.WithoutCancel(ctx), model.Deed{Verb: verb, Number: changed, Ends: 1})
}

// Refused reports whether any command was refused.
func (t *Tally) Refused() bool { return t.Results[ResultRefused] > 0 }

// Warning is something seldom meant, and the number of models that it concerns.
type Warning struct {
	Text   string // with the position in the first of them
	Models int
}

// reviewer checks saved models, and counts.
type reviewer struct {
	Tally
	linter definitions.ModelLinter
	read   map[[2]string]bool     // reported rules and their zones
	warned map[policy.Warning]int // places in Warnings
}

func newReviewer() *reviewer {
	return &reviewer{Tally: Tally{Results: map[string]int{}}, read: map[[2]string]bool{}, warned: map[policy.Warning]int{}}
}

// maxRead bounds the rules that are reported: nobody reads more.
const maxRead = 100

func (v *reviewer) review(requests []*Request) []Outcome {
	outcomes := make([]Outcome, len(requests))
	v.Commands += len(requests)
	for i, r := range requests {
		v.Results[r.Result]++
		o := Outcome{UID: r.Command.UID, Result: r.Result, RefreshAt: r.Next}
		switch {
		case r.Refused != nil:
			o.Error, o.Refused = r.problem(), r.Refused
		case r.Saved != nil:
			o.Position = r.Position("")
			o.ReadAs = v.readAs(r)
			for _, w := range v.linter.Lint(r.Saved, r.Command.Definition.Dtstart != "", r.savedAt) {
				place, known := v.warned[w]
				if !known {
					place = len(v.Warnings)
					text := document.OneLine(r.Position(w.Field) + ": " + w.String())
					v.warned[w], v.Warnings, o.Warnings = place, append(v.Warnings, Warning{Text: text}), append(o.Warnings, text)
				}
				v.Warnings[place].Models++
			}
		}
		outcomes[i] = o
	}
	return outcomes
}

// readAs returns how the rule of a saved model was read, unless it is no English or was reported already.
func (v *reviewer) readAs(r *Request) *schedule.ParsedAs {
	rule := [2]string{cmp.Or(r.Saved.Rule, r.Saved.Policy.Rule), r.Saved.Zone()}
	if !r.inWords || v.read[rule] || len(v.read) == maxRead {
		return nil
	}
	v.read[rule] = true
	read, err := r.Saved.ReadAs(r.savedAt)
	if err != nil {
		return nil // it was parsed
	}
	return &read
}

// ExecuteEach does the same to each model, and reports the outcomes of each batch.
func (o Operator) ExecuteEach(ctx context.Context, same model.Command, uids []string, each func([]Outcome) error) (Tally, error) {
	v, first := newReviewer(), 0
	same.By = o.By
	deeds := ctx
	for chunk := range slices.Chunk(uids, BatchSize) {
		batch := redis.Map(chunk, func(uid string) *Request {
			same.UID = uid
			return &Request{Command: same}
		})
		err := redis.Wrap(Execute(ctx, o.Queue, batch), fmt.Sprintf("after %d models; go on from %s", v.Commands, chunk[0]))
		if err == nil {
			err = each(v.review(batch))
		}
		if err != nil {
			return v.Tally, err
		}
		if v.Commands <= BatchSize {
			first, ctx = v.changed(), store.WithActor(ctx, nil)
		}
	}
	return v.Tally, o.noteRest(deeds, verbs[same.Type], v.changed()-first)
}

// maxWaiting bounds the models whose wait is explained after a run.
const maxWaiting = 20

// Waiting explains why models that were run do not start, and the place of the last one in the queue. Refused or taken ones are left out.
func (o Operator) Waiting(ctx context.Context, uids []string) (lines []string, err error) {
	last := len(uids) - 1
	for i, uid := range slices.Concat(uids[:max(0, min(last, maxWaiting))], uids[max(0, last):]) {
		e, err := explain.Read(ctx, o.Queue.Of(uid), uid)
		if errors.Is(err, explain.ErrUnknownModel) {
			continue
		}
		if err != nil {
			return lines, err
		}
		if waits := e.Waits(i == min(last, maxWaiting)); waits != "" {
			lines = append(lines, document.OneLine(uid+": "+waits))
		}
	}
	return lines, nil
}

const (
	// maxBatch bounds a batch over all parts.
	maxBatch = 4 * BatchSize
	// inFlight is how many batches are carried out at a time: while Redis works on one, others are read, decided and reported.
	inFlight = 3
)

// Save saves models, some batches at a time, and reports the outcomes of each batch in order.
func (o Operator) Save(ctx context.Context, read func(take func(definitions.Model) error) error, each func([]Outcome) error) (Tally, error) {
	deeds := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	v := newReviewer()
	s := &saving{ctx: ctx, operator: o, counts: map[*store.Store]int{}, flights: make(chan *flight, inFlight-1)}
	reported := make(chan error, 1)
	go func() { reported <- s.reportBatches(stop, v, each) }()
	err := read(func(m definitions.Model) error {
		r := &Request{
			Command:  model.Command{Type: model.CommandPut, UID: m.Definition.UID, Definition: m.Definition, By: o.By},
			Position: m.Position, inWords: m.InWords(),
		}
		if m.Err != nil {
			r.refuse(m.Err)
		}
		s.add(r)
		return ctx.Err()
	})
	if err == nil {
		s.send()
	}
	close(s.flights)
	failed := <-reported
	noted := o.noteRest(deeds, verbs[model.CommandPut], v.changed()-s.first)
	return v.Tally, cmp.Or(failed, err, noted)
}

type saving struct {
	ctx      context.Context // it ends when a batch has failed
	operator Operator
	batch    []*Request           // that is being filled
	counts   map[*store.Store]int // how many of it each part gets
	last     []*flight            // that were begun last
	flights  chan *flight         // to be reported
	first    int                  // models that the first batch has changed
}

type flight struct {
	batch []*Request
	uids  map[string]bool
	ended chan struct{} // closed when err is known
	err   error
}

// add fills the batch, and sends it when a part has enough for a commit.
func (s *saving) add(r *Request) {
	part := s.operator.Queue.Of(r.Command.UID)
	s.batch = append(s.batch, r)
	if s.counts[part]++; s.counts[part] == BatchSize || len(s.batch) == maxBatch {
		s.send()
	}
}

// send starts the batch. It first waits for batches that save the same models, because the last save must win.
func (s *saving) send() {
	f := &flight{batch: s.batch, uids: make(map[string]bool, len(s.batch)), ended: make(chan struct{})}
	for _, request := range f.batch {
		f.uids[request.Command.UID] = true
	}
	for _, other := range s.last {
		if slices.ContainsFunc(f.batch, func(r *Request) bool { return other.uids[r.Command.UID] }) {
			<-other.ended
		}
	}
	ctx := s.ctx
	s.ctx = store.WithActor(ctx, nil) // only the first batch keeps a deed
	go func() {
		defer close(f.ended)
		f.err = Execute(ctx, s.operator.Queue, f.batch)
	}()
	s.flights <- f
	clear(s.counts)
	s.batch, s.last = nil, append(s.last, f)[max(0, len(s.last)+1-2*inFlight):]
}

// reportBatches reports each batch when it has ended. The first failure stops the others.
func (s *saving) reportBatches(stop func(), v *reviewer, each func([]Outcome) error) (failed error) {
	for f := range s.flights {
		<-f.ended
		switch {
		case failed != nil:
		case f.err != nil:
			failed = fmt.Errorf("after %d documents: %w", v.Commands, f.err)
		default:
			began := v.Commands == 0
			if failed = each(v.review(f.batch)); began {
				s.first = v.changed()
			}
		}
		if failed != nil {
			stop()
		}
	}
	return failed
}
