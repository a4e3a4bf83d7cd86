package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// MaxParts is the most parts that a queue may have. Dispatcher, poller and worker of one process wait side by side in each, and each attempt of a
// worker pool may wait for a verdict.
const MaxParts = redis.MaxWaiting / 4 // 1024

// Queue is a queue with all of its parts. Each part is a store with keys of its own, which may live on a node of its own of a Redis
// Cluster; most queues have one. It is safe for concurrent use.
type Queue struct {
	// Name is how the queue was called.
	Name string
	// Parts are in order, at least one.
	Parts []*Store
	// Wire is how its messages are written, in all parts alike.
	Wire model.Wire
	// Layout is the layout of its keys, 1 to the Layout that this program knows.
	Layout int

	whole string // the queue that it is a part of; empty: it is whole
}

// ErrUnread says that Redis did not return the settings of a queue: try again.
var ErrUnread = errors.New("read the settings of the queue")

// Open reads how many parts a queue has, and returns it. A queue that was not created has one part, with its own name.
func Open(ctx context.Context, clients *redis.Clients, config Config) (*Queue, error) {
	config, ctx = config.WithDefaults(), redis.WithRetry(ctx, nil) // the first caller gets the error at once
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if whole, place, like := wholeOf(config.Queue); like { // it may be one part of another queue, if the user may ask for that
		settings, err := readSettings(ctx, clients, newKeys(whole))
		if err != nil && !redis.Refused(err) {
			return nil, err
		}
		if err == nil && settings.parts > 1 && place < settings.parts {
			name := config.Queue
			config.Queue = whole
			q, err := newQueue(clients, config, settings)
			if err != nil {
				return nil, err
			}
			return &Queue{Name: name, Parts: q.Parts[place : place+1], Wire: q.Wire, Layout: q.Layout, whole: whole}, nil
		}
	}
	settings, err := readSettings(ctx, clients, newKeys(config.Queue))
	if err != nil {
		return nil, err
	}
	return newQueue(clients, config, settings)
}

// RequireWhole refuses a queue that is only a part of another, and so read-only: most of its models live elsewhere.
func (q *Queue) RequireWhole() error {
	if q.whole == "" {
		return nil
	}
	return document.Refuse("queue", "the whole of "+q.whole, "its part "+q.Name)
}

func newQueue(clients *redis.Clients, config Config, settings settings) (*Queue, error) {
	config.NewErrorAbove = cmp.Or(settings.above, config.NewErrorAbove, Config{}.WithDefaults().NewErrorAbove)
	q := &Queue{Name: config.Queue, Parts: make([]*Store, settings.parts), Wire: settings.wire, Layout: settings.layout}
	for i := range q.Parts {
		own := config
		if len(q.Parts) > 1 {
			own.Queue = "{" + bareName(config.Queue) + ":" + strconv.Itoa(i) + "}"
		}
		store, err := New(clients, own)
		if err != nil {
			return nil, err
		}
		store.queue, store.Place = q, i
		q.Parts[i] = store
	}
	return q, nil
}

// Create fixes how many parts a queue has, for ever, before anything is stored in it. To create it again alike changes nothing. Daemons that
// have begun before do not know of it.
func Create(ctx context.Context, clients *redis.Clients, config Config, parts int) error {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return err
	}
	if parts < 1 || parts > MaxParts {
		return document.Refuse("parts", fmt.Sprintf("1 to %d", MaxParts), strconv.Itoa(parts))
	}
	q, err := newQueue(clients, config, settings{layout: 1, parts: parts})
	if err != nil {
		return err
	}
	keys := newKeys(config.Queue)
	if err := clients.Read.HGet(ctx, keys.Settings, settingParts).Err(); redis.Missing(err) {
		if err := refuseUsed(ctx, clients, config, q); err != nil {
			return err
		}
		created, err := clients.Write.HSetNX(ctx, keys.Settings, settingParts, parts).Result()
		if created {
			err = q.NoteDeed(ctx, model.Deed{Verb: "queue create", What: config.Queue, After: fmt.Sprintf("parts %d", parts)})
		}
		if err != nil {
			return fmt.Errorf("store the settings of the queue: %w", err)
		}
	}
	found, err := readSettings(ctx, clients, keys)
	if err == nil && found.parts != parts {
		err = document.Refuse("parts", fmt.Sprintf("the %d that it was created with, as its models are where they are", found.parts), strconv.Itoa(parts))
	}
	return err
}

// refuseUsed refuses a queue of one part that has keys already, as they would be forgotten, and parts that have some, as their models would be
// looked for elsewhere.
func refuseUsed(ctx context.Context, clients *redis.Clients, config Config, q *Queue) error {
	stores := q.Parts
	for _, name := range []string{bareName(config.Queue), tagOf(config.Queue)} {
		config.Queue = name
		if store, err := New(clients, config); err == nil { // without braces it cannot live on every Redis
			stores = append(slices.Clone(stores), store)
		}
	}
	for _, store := range stores {
		found, err := store.anyKey(ctx)
		if err == nil && found != "" {
			err = document.Refuse("queue", "one that nobody uses yet; stop its daemons, and save its models again behind this", document.Found(found))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// anyKey is one of the keys that a queue has as soon as anything has happened in it; empty: there is none.
func (s *Store) anyKey(ctx context.Context) (string, error) {
	keys := s.Keys.Traces()
	exist, err := redis.ReadEach(ctx, s.Clients.Read, "look for keys of the queue", keys, func(pipe goredis.Pipeliner, key string) *goredis.IntCmd { return pipe.Exists(ctx, key) })
	if i := slices.Index(exist, 1); i >= 0 && err == nil {
		return keys[i], nil
	}
	return "", err
}

// PartOf is the number of the part in which a model lives, of so many parts: CRC-32 (IEEE 802.3) of its uid, modulo parts.
func PartOf(uid string, parts int) int { return int(crc32.ChecksumIEEE([]byte(uid)) % uint32(parts)) }

// Of is the part in which a model lives.
func (q *Queue) Of(uid string) *Store { return q.Parts[PartOf(uid, len(q.Parts))] }

// ByPart groups items by the parts in which their models live.
func ByPart[T any](q *Queue, all []T, uid func(T) string) map[*Store][]T {
	parts := make(map[*Store][]T)
	for _, one := range all {
		part := q.Of(uid(one))
		parts[part] = append(parts[part], one)
	}
	return parts
}

// LoadScripts loads all scripts on each node that holds a part, once.
func (q *Queue) LoadScripts(ctx context.Context) error {
	loaded := map[goredis.Cmdable]bool{}
	return q.Each(func(part *Store) error {
		node, err := redis.MasterFor(ctx, part.Clients.Write, part.Keys.Due)
		if err != nil || loaded[node] {
			return err
		}
		loaded[node] = true
		return part.Clients.LoadScripts(ctx, part.Keys.Due)
	})
}

// ChangeEach changes every part, in order.
func (q *Queue) ChangeEach(do func(*Store) error) error {
	if err := q.RequireWhole(); err != nil {
		return err
	}
	return q.Each(do)
}

// Each calls do with every part, in order, also after one has failed.
func (q *Queue) Each(do func(*Store) error) error {
	var failed []error
	for _, part := range q.Parts {
		if err := do(part); err != nil {
			failed = append(failed, q.PartError(part, err))
		}
	}
	return errors.Join(failed...)
}

// SumOf adds up what all parts of a queue have under the same id, in the order of compare. add gets an empty sum first.
func SumOf[T any](q *Queue, read func(*Store) ([]T, error), id func(*T) string, add func(sum, more *T), compare func(a, b T) int) ([]T, error) {
	sums := map[string]*T{}
	err := q.Each(func(part *Store) error {
		found, err := read(part)
		for i := range found {
			name := id(&found[i])
			if sums[name] == nil {
				sums[name] = new(T)
			}
			add(sums[name], &found[i])
		}
		return err
	})
	all := make([]T, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, compare)
	return all, err
}

// PartError says in which part something went wrong, if there are several.
func (q *Queue) PartError(part *Store, err error) error {
	if err != nil && len(q.Parts) > 1 {
		err = fmt.Errorf("%s: %w", part.Keys.Queue, err)
	}
	return err
}

// Home is the keys of the part in which a model lives; own: it is this one.
func (s *Store) Home(uid string) (home *Keys, own bool) {
	part := s.queue.Parts[PartOf(uid, len(s.queue.Parts))]
	return &part.Keys, part == s
}

// AllParts are all parts of the queue, in order.
func (s *Store) AllParts() []*Store { return s.queue.Parts }

// Wire is how the messages of the queue are written.
func (s *Store) Wire() model.Wire { return s.queue.Wire }

// ReplyName is the name of the reply list with a key, of any part or of the queue. The reply is pushed in the part of the model.
func (s *Store) ReplyName(key string) (string, error) {
	if found := replyPattern.FindStringSubmatch(key); found != nil {
		queue, name := found[1], found[2]
		if whole, place, like := wholeOf(queue); like && s.replyTo() != "" && place < len(s.queue.Parts) {
			queue = whole
		}
		if queue == s.Keys.Queue || s.replyTo() != "" && tagOf(queue) == tagOf(s.queue.Name) {
			return name, nil
		}
	}
	return "", document.Refuse("reply_to", s.Keys.Reply("NAME")+" with 1-100 letters, digits or _.- as NAME", document.Found(key))
}

// ReplyTo is the list on which the attempts of a queue of several parts are answered; empty: the only one.
func (s Fleet) ReplyTo() string { return s.store.replyTo() }

func (s *Store) replyTo() string {
	if len(s.queue.Parts) == 1 {
		return ""
	}
	return s.Keys.Output
}

// TrueFirst orders true before false.
func TrueFirst(a, b bool) int { return cmp.Compare(redis.Flag(b), redis.Flag(a)) }

// Earlier is the first of two instants; a zero one is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// AddUp adds the counts of another part.
func AddUp[K comparable](sums, more map[K]int64) {
	for name, count := range more {
		sums[name] += count
	}
}

// Pools are the parts, as a worker pool takes from them.
func (q *Queue) Pools() []Pool { return redis.Map(q.Parts, (*Store).Pool) }

// Dial connects to the Redis at an address, as Connect has it, and opens a queue. The caller closes the clients.
func Dial(ctx context.Context, address string, config Config) (*Queue, *redis.Clients, error) {
	clients, err := redis.Connect(address, redis.ConnectOptions{})
	if err != nil {
		return nil, nil, err
	}
	queue, err := Open(ctx, clients, config)
	if err != nil {
		return nil, nil, errors.Join(err, clients.Close())
	}
	return queue, clients, nil
}

// DialPart is Dial for a daemon that serves a queue of one part. stop ends the connections.
func DialPart[D any](ctx context.Context, daemon, address, name string, begin func(*Store) (D, error)) (d D, stop func() error, err error) {
	queue, clients, err := Dial(ctx, address, Config{Queue: name})
	if err != nil {
		return d, nil, fmt.Errorf("%s: %w", daemon, err)
	}
	if len(queue.Parts) > 1 {
		err = document.Refuse("queue", "a queue of one part; run `refreshd up` for several", fmt.Sprintf("%d parts", len(queue.Parts)))
	} else {
		err = queue.Raise(ctx)
	}
	if err = redis.Wrap(err, daemon); err == nil {
		d, err = begin(queue.Parts[0])
	}
	if err != nil {
		return d, nil, errors.Join(err, clients.Close())
	}
	return d, clients.Close, nil
}
