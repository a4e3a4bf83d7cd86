package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// Place is the position of a walk over models. Only the server that returned it knows it: on another one the walk begins anew.
type Place string

// The places that are none of a server.
const (
	WalkBegins Place = "-"
	WalkEnds   Place = "end"
)

// maxScans bounds how often a step of a walk asks on where few keys are models.
const maxScans = 16

// source is where a walk meets models: one or several sets one after another, uids that are known, or the keys of all models.
type source struct {
	name string   // in a place: "all", "uid", the status, or label: and a name
	keys []string // of its sets
	kind string   // of these keys
	uids []string
}

// The kinds of sources.
const (
	sourceAll   = "all"
	sourceUID   = "uid"
	sourceLabel = "label:"
)

// sources are the sets that hold each model that the selector picks.
func (s *Store) sources(selector model.Selector) (all []source) {
	if uids := selector.Only(model.SelectUID); uids != nil && !strings.ContainsAny(strings.Join(uids, ""), "*?") {
		all = append(all, source{name: sourceUID, uids: uids})
	}
	if status := selector.Only(model.SelectStatus); len(status) == 1 {
		if set := s.Keys.StatusSets(model.Status(status[0])); set != nil {
			all = append(all, source{name: status[0], keys: set, kind: "zset"})
		}
	}
	if selector.Only(model.SelectWaits) != nil {
		all = append(all, source{name: string(model.StatusParked), keys: s.Keys.StatusSets(model.StatusParked), kind: "zset"})
	}
	if selector.Only(model.SelectError) != nil {
		all = append(all, source{name: string(model.StatusFailing), keys: []string{s.Keys.Failing}, kind: "zset"})
	}
	for _, name := range selector.Labels() {
		label := source{name: sourceLabel + name, kind: "set"}
		for _, term := range selector.Terms(name) {
			label.keys = append(label.keys, s.Keys.Label(term))
		}
		all = append(all, label)
	}
	return all
}

// source is the smallest source of the models that a selector picks, and its size; 0: unknown.
func (s *Store) source(ctx context.Context, selector model.Selector) (source, int64, error) {
	all := s.sources(selector)
	if len(all) == 0 {
		return source{name: sourceAll}, 0, nil
	}
	pipe := s.Clients.Read.Pipeline()
	counts := make([][]*goredis.IntCmd, len(all))
	for i, from := range all {
		for _, key := range from.keys {
			if from.kind == "set" {
				counts[i] = append(counts[i], pipe.SCard(ctx, key))
			} else {
				counts[i] = append(counts[i], pipe.ZCard(ctx, key))
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return source{}, 0, fmt.Errorf("count what a selector may pick: %w", err)
	}
	narrowest, least := 0, int64(-1)
	for i, from := range all {
		sum := int64(len(from.uids))
		for _, count := range counts[i] {
			sum += count.Val()
		}
		if least < 0 || sum < least {
			narrowest, least = i, sum
		}
	}
	return all[narrowest], least, nil
}

type walkPlace struct {
	server, source string
	key            int // of the source
	cursor         uint64
}

func readPlace(place Place) (p walkPlace, good bool) {
	fields := strings.Split(string(place), "/") // the server may be empty
	if len(fields) != 4 {
		return p, false
	}
	var errs [2]error
	p.server, p.source = fields[0], fields[1]
	p.key, errs[0] = strconv.Atoi(fields[2])
	p.cursor, errs[1] = strconv.ParseUint(fields[3], 10, 64)
	return p, errors.Join(errs[:]...) == nil && p.key >= 0
}

// WalkModels takes a step of a walk over models that a selector may pick: it returns at least so many uids behind a place, unless few keys are
// models, and the next place. It walks the smallest source. Each model that is there during the whole walk comes at least once.
func (s *Store) WalkModels(ctx context.Context, selector model.Selector, from Place, least int) (uids []string, to Place, err error) {
	server, err := s.Report().Server(ctx)
	if err != nil {
		return nil, from, err
	}
	at, on := readPlace(from)
	all := append(s.sources(selector), source{name: sourceAll})
	chosen := slices.IndexFunc(all, func(one source) bool { return one.name == at.source })
	var walked source
	if on = on && at.server == server["run_id"] && chosen >= 0 && (all[chosen].keys == nil || at.key < len(all[chosen].keys)); on {
		walked = all[chosen]
	} else if walked, _, err = s.source(ctx, selector); err != nil {
		return nil, from, err
	} else {
		at = walkPlace{server: server["run_id"], source: walked.name}
	}
	if walked.name == sourceUID {
		return walked.uids, WalkEnds, nil
	}
	next, err := s.stepper(ctx, walked, selector, least)
	if err != nil {
		return nil, from, err
	}
	for range maxScans {
		found, cursor, err := next(at.key, at.cursor)
		if err != nil {
			return nil, from, fmt.Errorf("walk over the models: %w", err)
		}
		uids, at.cursor = append(uids, found...), cursor
		if cursor == 0 {
			if at.key++; at.key >= len(walked.keys) {
				return uids, WalkEnds, nil
			}
		}
		if len(uids) >= least {
			break
		}
	}
	return uids, Place(fmt.Sprintf("%s/%s/%d/%d", at.server, at.source, at.key, at.cursor)), nil
}

// stepper asks a source for the uids from a cursor on. If the source scans keys, each step scans at least as many keys as uids are asked for.
func (s *Store) stepper(ctx context.Context, from source, selector model.Selector, least int) (func(key int, cursor uint64) ([]string, uint64, error), error) {
	if from.keys != nil {
		return func(key int, cursor uint64) ([]string, uint64, error) {
			return ScanMembers(ctx, s.Clients.Read, from.keys[key], from.kind == "zset", cursor)
		}, nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return nil, err
	}
	fits := "*"
	if globs := selector.Only(model.SelectUID); len(globs) == 1 {
		fits = globs[0] // a uid has no sign that means something else to Redis
	}
	pattern := redis.EscapeGlob(s.Keys.models()) + fits
	return func(_ int, cursor uint64) ([]string, uint64, error) {
		keys, next, err := node.Scan(ctx, cursor, pattern, int64(max(redis.ScanCount, least))).Result()
		for i, key := range keys {
			keys[i] = strings.TrimPrefix(key, s.Keys.models())
		}
		return keys, next, err
	}, nil
}

// ScanMembers takes a step of a walk over the members of a set, sorted or not.
func ScanMembers(ctx context.Context, client goredis.UniversalClient, key string, sorted bool, cursor uint64) ([]string, uint64, error) {
	if !sorted {
		return client.SScan(ctx, key, cursor, "", redis.ScanCount).Result()
	}
	pairs, next, err := client.ZScan(ctx, key, cursor, "", redis.ScanCount).Result()
	members := make([]string, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) { // each with its score
		members = append(members, pair[0])
	}
	return members, next, err
}

// Scored is a member of a sorted set of instants.
type Scored struct {
	UID   string
	Score int64 // Unix ms
}

// Compare orders as Redis does: by the instant, and then by the uid.
func (s Scored) Compare(other Scored) int {
	return cmp.Or(cmp.Compare(s.Score, other.Score), strings.Compare(s.UID, other.UID))
}

// Walk hands the uids that a selector may pick to visit, in chunks and in no order; see WalkModels. One may come twice where Redis gives memory
// back meanwhile, and all may where another server takes over. It ends early with the error of visit.
func (s Report) Walk(ctx context.Context, selector model.Selector, visit func(uids []string) error) error {
	return redis.WalkFrom(ctx, WalkBegins, WalkEnds, func(place Place) ([]string, Place, error) {
		return s.store.WalkModels(ctx, selector, place, 5*redis.ScanCount) // each step asks first who the server is
	}, visit)
}

// EachSelected is Walk with each uid once, which takes 40 MB of a million.
func (s Report) EachSelected(ctx context.Context, selector model.Selector, visit func(uids []string) error) error {
	seen := newSeen()
	return s.Walk(ctx, selector, func(uids []string) error { return visit(seen.fresh(uids)) })
}

// Behind reads at most limit members of a sorted set behind another one, in order; the zero one is before all. It does not slow down where a million
// have the same score, as long as that member is there.
func (s Report) Behind(ctx context.Context, key string, after Scored, limit int) (found []Scored, err error) {
	from, size := int64(0), int64(limit)
	if after.UID == "" {
		after.Score = math.MinInt64 // runs by hand are below 0
	} else {
		pipe := s.store.Clients.Read.Pipeline()
		below := pipe.ZCount(ctx, key, "-inf", "("+strconv.FormatInt(after.Score, 10))
		score, rank := pipe.ZScore(ctx, key, after.UID), pipe.ZRank(ctx, key, after.UID)
		err = redis.ExecReads(ctx, pipe)
		if from = below.Val(); int64(score.Val()) == after.Score {
			from = max(from, rank.Val())
		}
	}
	for err == nil {
		var members []goredis.Z
		members, err = s.store.Clients.Read.ZRangeWithScores(ctx, key, from, from+size).Result()
		page := redis.Map(members, func(member goredis.Z) Scored { return Scored{redis.Text(member.Member), int64(member.Score)} })
		if from > 0 && (len(page) == 0 || page[0].Compare(after) > 0) { // some have left that stood before it
			from = max(0, from-size)
			continue
		}
		page = slices.DeleteFunc(page, func(one Scored) bool { return one.Compare(after) <= 0 })
		found = append(found, page[:min(len(page), limit-len(found))]...)
		if len(found) == limit || len(members) <= limit {
			break
		}
		if len(page) > 0 {
			after = page[len(page)-1]
		}
		from += size // the next page begins with the last of this one
	}
	return found, redis.Wrap(err, "read a page of a set")
}

// EachPicked visits the models that a selector picks, each once, in no order, see EachSelected. It may miss models that are put or removed meanwhile.
func (s Report) EachPicked(ctx context.Context, selector model.Selector, visit func(*Record) error) error {
	load, err := s.picker(ctx, selector, visit)
	if err != nil {
		return err
	}
	return s.EachSelected(ctx, selector, load)
}

// FewPicked is EachPicked where at most so many models may be picked, and returns how many may be. Of more it hands over none.
func (s Report) FewPicked(ctx context.Context, selector model.Selector, most int, visit func(*Record) error) (may int, err error) {
	if size, err := s.MayPick(ctx, selector); err != nil || size > int64(most) {
		return int(size), err
	}
	few, seen := []string{}, newSeen()
	err = s.Walk(ctx, selector, func(uids []string) error {
		if may <= most {
			uids = seen.fresh(uids)
			few = append(few, uids...)
		}
		may += len(uids)
		return nil
	})
	if err != nil || may > most {
		return may, err
	}
	load, err := s.picker(ctx, selector, visit)
	if err == nil {
		err = load(few)
	}
	return may, err
}

// MayPick is how many models a selector may pick; 0: nobody knows.
func (s Report) MayPick(ctx context.Context, selector model.Selector) (int64, error) {
	_, size, err := s.store.source(ctx, selector)
	return size, err
}

// picker returns what loads models and hands over those that a selector picks now.
func (s Report) picker(ctx context.Context, selector model.Selector, visit func(*Record) error) (func(uids []string) error, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	var queued map[string]string
	if selector.AsksQueued() {
		if queued, err = s.store.Queued(ctx); err != nil {
			return nil, err
		}
	}
	return func(uids []string) error {
		records, err := s.store.Load(ctx, uids)
		if err != nil {
			return err
		}
		for _, uid := range uids {
			r := records[uid]
			if _, waits := queued[r.AttemptUID]; r.Exists && selector.Matches(&r.Model, r.Status(now, waits)) {
				if err := visit(r); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// models counts the models of a part, but for those that have nothing to wait for any more.
func (s Report) models(ctx context.Context) (sum int64, err error) {
	k := &s.store.Keys
	sizes, err := redis.ReadEach(ctx, s.store.Clients.Read, "count models", []string{k.Due, k.Urgent, k.Parked, k.Running, k.Disabled},
		func(pipe goredis.Pipeliner, key string) *goredis.IntCmd { return pipe.ZCard(ctx, key) })
	for _, size := range sizes {
		sum += size
	}
	return sum, err
}

// SampleLabels are the labels of some hundreds of models: the values of each name.
func (q QueueReport) SampleLabels(ctx context.Context) (map[string][]string, error) {
	uids, _, err := q.queue.Parts[0].WalkModels(ctx, model.Selector{}, WalkBegins, redis.ScanCount)
	if err != nil {
		return nil, err
	}
	records, err := q.queue.Parts[0].Load(ctx, uids[:min(len(uids), redis.ScanCount)])
	labels := map[string][]string{}
	for _, record := range records {
		for name, value := range model.AllLabels(&record.Model) {
			labels[name] = append(labels[name], value)
		}
	}
	return labels, err
}

// LabelCounts counts the models of each label with a value, as in tenant=t1. It takes the names of labels from some hundreds of models.
func (q QueueReport) LabelCounts(ctx context.Context, value string) (map[string]int64, error) {
	labels, err := q.SampleLabels(ctx)
	if err != nil {
		return nil, err
	}
	counts, sets := map[string]int64{}, [][2]string{}
	for name := range labels {
		term := name + "=" + value
		if picks, err := model.ParseSelector(term); err == nil && picks.String() == term && len(picks.Only(name)) == 1 {
			counts[term] = 0
			for _, set := range picks.Terms(name) {
				sets = append(sets, [2]string{term, set})
			}
		}
	}
	return counts, q.queue.Each(func(part *Store) error {
		sizes, err := redis.ReadEach(ctx, part.Clients.Read, "count labels", sets, func(pipe goredis.Pipeliner, set [2]string) *goredis.IntCmd {
			return pipe.SCard(ctx, part.Keys.Label(set[1]))
		})
		for i, size := range sizes {
			counts[sets[i][0]] += size
		}
		return err
	})
}
