package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

type insistKey struct{}

// Insist returns a context in which calls that Redis does not answer are made again: those that only read, and scripts, which change nothing
// twice, as they compare before they write. What a script without an answer has done is found out by whoever has run it. begin is called after the
// first call of a row that fails so, and what it returns after each, with the error: it waits, and returns nil if there is another call, or what is
// to be told. After the last call it is told nil.
func Insist(ctx context.Context, begin func(context.Context) (again func(error) error)) context.Context {
	return context.WithValue(ctx, insistKey{}, begin)
}

type unheardKey struct{}

// listen returns a context, and whether a call in it was made again: the one before may have been carried out.
func listen(ctx context.Context) (_ context.Context, unheard *bool) {
	unheard = new(bool)
	return context.WithValue(ctx, unheardKey{}, unheard), unheard
}

// passes are what Redis says while it is not ready.
var passes = []string{"LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "TRYAGAIN", "MOVED", "ASK"}

// Passing reports whether an error may be gone the next time: Redis did not answer, or is not ready.
func Passing(err error) bool {
	if err == nil || errors.Is(err, ErrNotLoaded) {
		return false
	}
	return !Answered(err) || slices.ContainsFunc(passes, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// insistence is how a context insists; nil: it does not.
func insistence(ctx context.Context) func(context.Context) func(error) error {
	begin, _ := ctx.Value(insistKey{}).(func(context.Context) func(error) error)
	return begin
}

// insist makes a call, and again as the context says. What the call itself calls is made once.
func insist(ctx context.Context, call func(context.Context) error) error {
	begin := insistence(ctx)
	if begin == nil {
		return call(ctx)
	}
	once := Insist(ctx, nil)
	err := call(once)
	passing := func() bool { return ctx.Err() == nil && Passing(err) }
	if !passing() {
		return err
	}
	again := begin(ctx)
	for ; passing(); err = call(once) {
		if ended := again(err); ended != nil {
			return ended
		}
		if unheard, is := ctx.Value(unheardKey{}).(*bool); is {
			*unheard = true
		}
	}
	_ = again(nil)
	return err
}

// Insistent is the hook of a client whose calls insist if their context does.
type Insistent struct {
	// Writes: the client writes too, and only its scripts insist.
	Writes bool
}

// DialHook changes nothing: a call dials again.
func (Insistent) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook makes a call that insists.
func (i Insistent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if name := command.Name(); i.Writes && name != "evalsha" && name != "script" {
			return next(ctx, command)
		}
		return insist(ctx, func(ctx context.Context) error { return next(ctx, command) })
	}
}

// ProcessPipelineHook makes calls that insist: all of them are made again.
func (i Insistent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if i.Writes || insistence(ctx) == nil {
			return next(ctx, commands)
		}
		err := insist(ctx, func(ctx context.Context) error {
			for _, command := range commands {
				command.SetErr(nil) // go-redis leaves that of MULTI and EXEC as it was
			}
			err := next(ctx, commands)
			for _, command := range commands {
				if Passing(command.Err()) { // it may hide behind a harmless one
					err = command.Err()
				}
			}
			return err
		})
		for _, command := range commands {
			if Passing(command.Err()) {
				command.SetErr(err)
			}
		}
		return err
	}
}

// recognize corrects the codes of a batch that was committed again: what was applied before is refused then, as its model has changed.
func (e *execution) recognize(ctx context.Context, batch Batch, codes []Code) error {
	last := map[string]*Transition{} // of each model that has changed
	var uids []string
	var commands []*model.Command // so that payloads are read
	for at, code := range codes {
		if t := batch.Items[at].Transition; code.Retry() {
			last[t.uid], uids, commands = t, append(uids, t.uid), append(commands, &model.Command{UID: t.uid})
		}
	}
	if len(uids) == 0 {
		return nil
	}
	snapshot, err := e.Read(ctx, uids, commands)
	for at := range codes {
		if t := batch.Items[at].Transition; err == nil && codes[at].Retry() && snapshot.Records[t.uid].follows(last[t.uid], batch.Now.UnixMilli()) {
			codes[at] = CodeApplied
		}
	}
	return err
}

// follows reports whether the model shows that a transition was applied at now or later, in Unix ms, or that what it was meant for has come about
// since. Where neither is so it is decided again, on top of what others have done: to save or stop a model is then as if it had been asked for behind
// them, and to start one that has not been started since does no harm.
func (r *Record) follows(t *Transition, now int64) bool {
	saved := t.decision.Definition
	stored, _ := r.stored()
	switch {
	case t.removes():
		return !r.Exists || parseInt(t.rev) < now && parseInt(r.rev) >= now // a new one of that uid begins at the clock
	case !r.Exists:
		return false
	case saved != nil && (r.Payload != saved.Payload || !maps.Equal(r.Labels, saved.Labels) ||
		!slices.Equal(stored[:definedFields], t.after[:definedFields])):
		return false
	case r.rev == t.newRev && slices.Equal(stored, t.after):
		return true
	}
	started := r.Ticket != 0 && stored.of(fieldTicket) != t.before.of(fieldTicket) // each start draws one
	switch t.decision.Event {
	case model.EventRun:
		return started
	case model.EventEnable: // or somebody has disabled it since
		return score(r.Scores().Disabled) != t.was.disabled
	case model.EventUpdate:
		return started || t.redefines()
	default:
		return saved != nil && t.redefines()
	}
}

// redefines reports whether the definition of the model has changed.
func (t *Transition) redefines() bool {
	return t.creates() || t.payload != "" || !slices.Equal(t.before[:definedFields], t.after[:definedFields])
}
