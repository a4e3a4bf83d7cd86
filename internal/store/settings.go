package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// The fields of <queue>:settings.
const (
	settingLayout      = "layout"
	settingParts       = "parts"
	settingModelName   = "model_name"
	settingAttemptName = "attempt_name"
	settingPayload     = "payload"
	settingNewError    = "new_error_above"
)

// Layout is the newest layout of keys that this program knows. A release raises it if older ones would misread
// its keys, and its dispatchers and pollers store it. A queue without one has layout 1: no daemon has used it yet.
const Layout = 2

// Where an entry has the payload.
const (
	PayloadTop    = "top"    // its fields are beside the others
	PayloadNested = "nested" // it is one value, named payload
)

// settings are shared by all programs that open a queue.
type settings struct {
	layout int // 1 to Layout
	parts  int // at least 1
	wire   model.Wire
	above  int // how many models a fingerprint may stop silently; 0: as many as the program says, None: any number
}

// readSettings reads the settings of a queue. One without has one part, and writes its messages like every queue.
func readSettings(ctx context.Context, clients *redis.Clients, keys Keys) (settings, error) {
	// Several HGET: the users of `refreshd acl` may do no more.
	pipe := clients.Read.Pipeline()
	names := []string{settingLayout, settingParts, settingModelName, settingAttemptName, settingPayload, settingNewError}
	replies := redis.Map(names, func(name string) *goredis.StringCmd { return pipe.HGet(ctx, keys.Settings, name) })
	_, unsent := pipe.Exec(ctx) // without a connection the commands have no error of their own
	found := map[string]string{}
	for i, reply := range replies {
		switch err := cmp.Or(reply.Err(), redis.IgnoreMissing(unsent)); {
		case err == nil:
			found[names[i]] = reply.Val()
		case !redis.Missing(err):
			return settings{}, fmt.Errorf("%w: %w%s", ErrUnread, err, clients.SchemeHint(ctx, err))
		}
	}
	return parseSettings(keys, found)
}

func parseSettings(keys Keys, found map[string]string) (settings, error) {
	text, is := found[settingLayout]
	layout, err := strconv.Atoi(text)
	switch { // before all else, which a newer layout may have changed
	case !is:
		layout = 1
	case err != nil || layout < 1:
		return settings{}, document.Refuse(keys.Settings+" "+settingLayout, "a whole number of at least 1", document.Found(text))
	case layout > Layout:
		want, is := fmt.Sprintf("at most %d", Layout), text+": a newer release stores this queue; upgrade this binary"
		return settings{}, document.Refuse(keys.Settings+" "+settingLayout, want, is)
	}
	parts, is := found[settingParts]
	if !is {
		parts = "1"
	}
	count, err := strconv.Atoi(parts)
	if err != nil || count < 1 || count > MaxParts {
		return settings{}, document.Refuse(keys.Settings+" "+settingParts, fmt.Sprintf("1 to %d", MaxParts), document.Found(parts))
	}
	wire := model.Wire{ModelName: found[settingModelName], AttemptName: found[settingAttemptName], Nested: found[settingPayload] == PayloadNested}
	if place := found[settingPayload]; place != "" && place != PayloadTop && !wire.Nested {
		return settings{}, document.Refuse(keys.Settings+" "+settingPayload, PayloadTop+" or "+PayloadNested, document.Found(place))
	}
	if err := wire.Validate(); err != nil {
		return settings{}, document.Place(err, keys.Settings)
	}
	above := 0
	if text := found[settingNewError]; text != "" {
		if above, err = strconv.Atoi(text); err != nil || above < 0 {
			return settings{}, document.Refuse(keys.Settings+" "+settingNewError, "a whole number", document.Found(text))
		}
		above = cmp.Or(above, None)
	}
	return settings{layout, count, wire, above}, nil
}

// SetNewErrorAbove stores how many models one fingerprint may stop before the outbox has an entry; 0: any number. Open queues do not see it.
func (q *Queue) SetNewErrorAbove(ctx context.Context, models int) error {
	if err := q.RequireWhole(); err != nil {
		return err
	}
	if models < 0 {
		return document.Refuse("new_error_above", "0 or more models", strconv.Itoa(models))
	}
	if err := q.set(ctx, settingNewError, models); err != nil {
		return err
	}
	for _, part := range q.Parts {
		part.Config.NewErrorAbove = cmp.Or(models, None)
	}
	return nil
}

// NewErrorAbove is how many models one fingerprint may stop before the outbox has an entry; 0: any number.
func (q *Queue) NewErrorAbove() int { return max(0, q.Parts[0].Config.NewErrorAbove) }

// SetWire stores how the messages of the queue are written. As daemons read that when they begin, and attempts that are handed out already are
// written as before, it is refused while there are any, unless force is true. Programs that have opened the queue before do not notice.
func (q *Queue) SetWire(ctx context.Context, wire model.Wire, force bool) error {
	if err := cmp.Or(q.RequireWhole(), wire.Validate()); err != nil {
		return err
	}
	if wire.WithDefaults() == q.Wire.WithDefaults() {
		return nil
	}
	if !force {
		var users []string
		err := q.Each(func(part *Store) error {
			found, err := part.users(ctx)
			users = append(users, found...)
			return err
		})
		if err == nil && len(users) > 0 {
			err = document.Refuse("queue", "one that nobody uses at the moment, so that all read the same", strings.Join(users, ", "))
		}
		if err != nil {
			return err
		}
	}
	place := map[bool]string{false: PayloadTop, true: PayloadNested}[wire.Nested]
	named := wire.WithDefaults()
	if err := q.set(ctx, settingModelName, named.ModelName, settingAttemptName, named.AttemptName, settingPayload, place); err != nil {
		return err
	}
	q.Wire = wire
	return nil
}

// Raise stores the layout of this program before a dispatcher or poller writes anything else. From then on no program with an older layout opens the
// queue. Where the service forbids WATCH, the layout stays.
func (q *Queue) Raise(ctx context.Context) error {
	if q.Layout >= Layout {
		return nil
	}
	key := newKeys(q.Name).Settings
	_, err := q.Parts[0].Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		layout, err := tx.HGet(ctx, key, settingLayout).Int()
		return layout < Layout, redis.IgnoreMissing(err)
	}, func(pipe goredis.Pipeliner) { pipe.HSet(ctx, key, settingLayout, Layout) }, key)
	switch {
	case err == nil:
		q.Layout = Layout
	case redis.Refused(err):
		return nil
	}
	return redis.Wrap(err, "raise the layout of the queue")
}

// set stores settings unless they have changed since it began, so that a late request undoes nothing.
func (q *Queue) set(ctx context.Context, fields ...any) error {
	key := newKeys(q.Name).Settings
	text := strings.TrimSuffix(fmt.Sprintln(fields...), "\n")
	deed, err := q.Parts[0].Fleet().WriteDeed(ctx, model.Deed{Verb: "queue set", What: q.Name, After: text})
	if err != nil {
		return err
	}
	err = q.Parts[0].Clients.Write.Watch(ctx, func(tx *goredis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
			if len(q.Parts) == 1 { // else its parts live in other slots
				deed(pipe)
			}
			return pipe.HSet(ctx, key, fields...).Err()
		})
		return err
	}, key)
	if err == nil && len(q.Parts) > 1 {
		err = q.NoteDeed(ctx, model.Deed{Verb: "queue set", What: q.Name, After: text})
	}
	return redis.Wrap(err, "store the settings of the queue")
}

// settledAfter is how long a daemon without a heartbeat may still come back.
const settledAfter = time.Minute

// living are the last heartbeats of all who live.
func (s *Store) living(ctx context.Context) ([]Heartbeat, error) {
	heartbeats, now, err := s.Report().Heartbeats(ctx)
	return slices.DeleteFunc(heartbeats, func(h Heartbeat) bool { return h.At.Before(now.Add(-settledAfter)) }), err
}

// Daemons names the dispatchers and pollers of the part that live.
func (s Report) Daemons(ctx context.Context) ([]string, error) {
	living, err := s.store.living(ctx)
	daemons := slices.DeleteFunc(living, func(h Heartbeat) bool { return h.Of == model.RoleWorker })
	return redis.Map(daemons, func(h Heartbeat) string { return h.Owner }), err
}

// users names who uses the part: daemons and workers that live, and attempts that are handed out.
func (s *Store) users(ctx context.Context) (users []string, err error) {
	in := ""
	if s.replyTo() != "" {
		in = " of " + s.Keys.Queue
	}
	living, err := s.living(ctx)
	if err != nil {
		return nil, err
	}
	for _, heartbeat := range living {
		users = append(users, fmt.Sprintf("%s %s%s", heartbeat.Of, heartbeat.Owner, in))
	}
	running, err := s.Clients.Read.ZCard(ctx, s.Keys.Running).Result()
	if running > 0 {
		users = append(users, fmt.Sprintf("%d attempts%s that are queued or running", running, in))
	}
	return users, redis.Wrap(err, "look for attempts of the queue")
}
