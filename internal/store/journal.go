package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/txn"
	"github.com/refreshd/refreshd/model"
)

// entryCodec reads one entry of a stream as it came.
func entryCodec(values map[string]any) codec {
	return codec{get: func(name string) string { return redis.Text(values[name]) }}
}

// EntryFields returns an entry of the journal by name, with the fields of its lists gone and now.
func EntryFields(values map[string]any) map[string]any {
	entry := maps.Clone(values)
	for name := range strings.FieldsSeq(redis.Text(values["gone"])) {
		entry[name] = ""
	}
	for name := range strings.FieldsSeq(redis.Text(values["now"])) {
		entry[name] = values["at"]
	}
	delete(entry, "gone")
	delete(entry, "now")
	return entry
}

// ReadJournalEntry reads an entry of the journal. An unreadable field gets the zero value.
func ReadJournalEntry(values map[string]any) (e model.JournalEntry) {
	c := entryCodec(EntryFields(values))
	c.text("uid", &e.UID)
	c.text("event", (*string)(&e.Event))
	c.time("at", &e.At)
	c.notes(&e)
	var m model.Model // only the changed fields, as the entry has them
	c.model(&m)
	e.AttemptUID, e.AttemptNo = cmp.Or(e.EndedUID, m.AttemptUID, m.LastAttemptUID), cmp.Or(e.EndedNo, m.AttemptNo)
	e.Freshness = m.Freshness
	e.About = cmp.Or(c.get("key"), c.get("signature"))
	e.RefreshAt, e.DeadlineAt, e.Why, e.DisabledReason = m.RefreshAt, m.DeadlineAt, m.Why, m.DisabledReason
	return e
}

// ReadNotification reads an entry of the outbox. An unreadable field gets the zero value.
func ReadNotification(values map[string]any) (n model.Notification) {
	c := entryCodec(values)
	c.text("uid", &n.UID)
	c.text("event", (*string)(&n.Notice))
	c.time("at", &n.At)
	c.number("attempt_no", &n.AttemptNo)
	c.text("reason", &n.Reason)
	c.text("error_type", &n.ErrorType)
	c.text("refresh_why", &n.Why)
	c.time("last_success_at", &n.LastSuccessAt)
	return n
}

const (
	// DeedCap is how many deeds a part keeps, approximately.
	DeedCap = 10_000
	// deedsKept is for how long.
	deedsKept = 90 * 24 * time.Hour
)

// Actor is who changes a queue. What is changed in its context is kept as deeds.
type Actor struct {
	// ID is one for all that is done; empty: of each command about a model its own, and those that do not say who wants them are none.
	ID       string
	By, From string // see model.Deed
	// Untold is called for each part whose stream cannot be written, as this user of Redis may not, with why: nobody sees the deeds there. nil: nobody
	// listens.
	Untold func(key string, err error)

	rights *rights
}

// rights are what a user of Redis was found to have.
type rights struct {
	mu  sync.Mutex
	may map[string]bool // write a stream of deeds, by its key
}

// NewActor returns an actor who was not seen before.
func NewActor(a Actor) *Actor {
	a.rights = &rights{may: map[string]bool{}}
	return &a
}

// For is the actor, from whom somebody wants something.
func (a *Actor) For(id, by string) *Actor {
	if a == nil {
		return nil
	}
	wanted := *a
	wanted.ID, wanted.By = id, by
	return &wanted
}

type actorKey struct{}

// WithActor returns a context whose changes an actor makes; nil: nobody, as for each of the many changes that are one deed.
func WithActor(ctx context.Context, actor *Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf is who makes the changes of a context; nil: nobody who is to be named.
func ActorOf(ctx context.Context) *Actor {
	actor, _ := ctx.Value(actorKey{}).(*Actor)
	return actor
}

// actor is who makes the changes of a context, if they can be kept here. The first time it asks Redis whether this user may, and forgets what is old.
func (s *Store) actor(ctx context.Context) (*Actor, error) {
	actor := ActorOf(ctx)
	if actor == nil {
		return nil, nil
	}
	actor.rights.mu.Lock()
	defer actor.rights.mu.Unlock()
	key := s.Keys.Deeds
	may, asked := actor.rights.may[key]
	if !asked {
		now, err := s.Now(ctx)
		if err == nil {
			err = s.Clients.Write.XTrimMinIDApprox(ctx, key, redis.Millis(now.Add(-deedsKept)), 0).Err()
		}
		if err != nil && !redis.Answered(err) {
			return nil, fmt.Errorf("trim what was done: %w", err)
		}
		may = err == nil
		if actor.rights.may[key] = may; !may && actor.Untold != nil {
			actor.Untold(key, err)
		}
	}
	if !may {
		return nil, nil
	}
	return actor, nil
}

// deedFields are the fields of a deed, each before its value, but for the number; nil: nobody does it who is to be named, or this user may not keep it.
func (s *Store) deedFields(ctx context.Context, d model.Deed) ([]string, error) {
	if d.Verb == "" {
		return nil, nil
	}
	actor, err := s.actor(ctx)
	if actor == nil || err != nil {
		return nil, err
	}
	return actor.fields(d), nil
}

func (a *Actor) fields(d model.Deed) (fields []string) {
	d.ID, d.By, d.From = cmp.Or(d.ID, a.ID), cmp.Or(d.By, a.By), cmp.Or(d.From, a.From)
	d = d.Shortened()
	c := codec{set: func(name, value string) {
		if value != "" {
			fields = append(fields, name, value)
		}
	}}
	c.deed(&d)
	return fields
}

// deed reads or writes what a deed says.
func (c *codec) deed(d *model.Deed) {
	c.text("id", &d.ID)
	c.text("deed", &d.Verb)
	c.text("what", &d.What)
	c.text("by", &d.By)
	c.text("from", &d.From)
	c.text("reason", &d.Reason)
	c.text("before", &d.Before)
	c.text("after", &d.After)
	c.number("models", &d.Number)
	c.number("begins", &d.Begins)
	c.number("ends", &d.Ends)
}

// ReadDeed reads an entry of the stream of deeds. An unreadable field gets the zero value.
func ReadDeed(message goredis.XMessage) (d model.Deed) {
	c := entryCodec(message.Values)
	c.deed(&d)
	ms, _, _ := strings.Cut(message.ID, "-")
	d.ID, d.At = cmp.Or(d.ID, message.ID), time.UnixMilli(redis.ParseInt(ms)).UTC()
	return d
}

// DeedArgs are the key and the text of a deed for a script, see scripts/include/deed.lua. If nobody is to be named, the text is empty, and the key another
// stream, as the user may have no right to the deeds.
func (s Fleet) DeedArgs(ctx context.Context, d model.Deed) (key, text string, err error) {
	fields, err := s.store.deedFields(ctx, d)
	if fields == nil {
		return s.store.Keys.Journal, "", err
	}
	return s.store.Keys.Deeds, strings.Join(fields, "\n"), nil
}

// WriteDeed returns what adds a deed to a transaction, or to nothing else.
func (s Fleet) WriteDeed(ctx context.Context, d model.Deed) (func(goredis.Cmdable), error) {
	fields, err := s.store.deedFields(ctx, d)
	return func(pipe goredis.Cmdable) {
		if fields != nil {
			pipe.XAdd(ctx, &goredis.XAddArgs{Stream: s.store.Keys.Deeds, MaxLen: DeedCap, Approx: true, Values: fields})
		}
	}, err
}

// NoteDeed keeps a deed of many changes, before the first of them or behind the last.
func (q *Queue) NoteDeed(ctx context.Context, d model.Deed) error {
	write, err := q.Parts[0].Fleet().WriteDeed(ctx, d)
	if err == nil {
		_, err = q.Parts[0].Clients.Write.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
			write(pipe)
			return nil
		})
	}
	return redis.Wrap(err, "keep what was done")
}

// AsOneDeed keeps the begin and the end of many changes as one deed. do notes at its end how many there were.
func (q *Queue) AsOneDeed(ctx context.Context, d model.Deed, do func(ctx context.Context, end *model.Deed) error) error {
	begin, end := d, d
	begin.Begins, end.Ends = 1, 1
	if err := q.NoteDeed(ctx, begin); err != nil {
		return err
	}
	err := do(WithActor(ctx, nil), &end)
	failed := q.NoteDeed(context.WithoutCancel(ctx), end)
	return cmp.Or(err, failed)
}

// deedKey identifies the items of a batch that are one deed.
type deedKey struct{ verb, by, reason string }

// verbs are the commands that do what transitions do. An import and a levelling are one deed, see AsOneDeed.
var verbs = map[model.Event]string{
	model.EventCreate: "model put", model.EventUpdate: "model put", model.EventRemove: "model rm",
	model.EventRun: "model run", model.EventEnable: "model enable", model.EventDisable: "model disable", model.EventCancel: "model cancel",
	model.EventAccept: "suspect accept", model.EventSuccess: "suspect accept", model.EventFailure: "suspect reject",
}

// deedKey is the deed that a transition belongs to; without a verb: none.
func (a *Actor) deedKey(t *Transition) (key deedKey) {
	if a == nil || t == nil || a.ID == "" && t.decision.By == "" {
		return key
	}
	d := &t.decision
	if key.by = d.By; d.Event == model.EventDisable {
		key.reason = d.Next.DisabledReason
	}
	if key.by != "" || d.Event != model.EventSuccess && d.Event != model.EventFailure { // these are what workers say
		key.verb = verbs[d.Event]
	}
	return key
}

// wants reports whether any of the items are deeds of the actor.
func (a *Actor) wants(items []Item) bool {
	return a != nil && slices.ContainsFunc(items, func(i Item) bool { return a.deedKey(i.Transition).verb != "" })
}

// groupDeeds names the deeds of the batch by their first models, of which each has a template of its own otherwise.
func (e *encoder) groupDeeds() {
	if e.batch.actor == nil {
		return
	}
	e.deeds = map[deedKey]model.Deed{}
	for i := range e.batch.Items {
		t := e.batch.Items[i].Transition
		key := e.batch.actor.deedKey(t)
		deed, known := e.deeds[key]
		if key.verb == "" || len(deed.What) > model.MaxDeedText {
			continue
		}
		one := model.Deed{Verb: key.verb, What: strings.TrimSpace(deed.What + " " + t.uid), By: key.by, Reason: key.reason}
		if !known && t.decision.Event == model.EventUpdate {
			one.Before, one.After = t.redefined()
		}
		e.deeds[key] = one
	}
}

// redefined is in what the saved fields of the model differ. Of a payload it says only that it is another.
func (t *Transition) redefined() (was, is string) {
	var were, are []string
	for _, name := range []string{"rrule", "timezone", "dtstart", "policy"} {
		if before, after := t.before.of(name), t.after.of(name); before != after {
			were, are = append(were, strings.TrimSpace(name+" "+before)), append(are, strings.TrimSpace(name+" "+after))
		}
	}
	before, after := model.LabelTerms(t.wasLabels), model.LabelTerms(t.isLabels)
	were = append(were, slices.DeleteFunc(slices.Clone(before), func(term string) bool { return slices.Contains(after, term) })...)
	are = append(are, slices.DeleteFunc(slices.Clone(after), func(term string) bool { return slices.Contains(before, term) })...)
	if t.payload != "" {
		are = append(are, "another payload")
	}
	return strings.Join(were, ", "), strings.Join(are, ", ")
}

// writeDeed adds the item to its deed, which counts those that are applied.
func (s *steps) writeDeed() {
	key := s.batch.actor.deedKey(s.t)
	if key.verb == "" {
		return
	}
	deed := s.batch.actor.fields(s.deeds[key])
	s.Count("XADD", s.txn.Key(s.keys.Deeds, txn.Stream), append([]string{"MAXLEN", "~", strconv.Itoa(DeedCap), "*"}, append(deed, "models")...)...)
}
