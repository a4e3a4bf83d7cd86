package scripts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/redis/go-redis/v9"
)

var moveReplans = load("move-replans.lua")

// Replan is a walk over the models, by which those are planned anew that use a stored policy which plans otherwise than before. It is noted
// in the same step as the change, so that nothing can get lost between the two, and ends when every model was looked at.
type Replan struct {
	Policy string
	// Since is when the policy was changed.
	Since time.Time
	// Place is where the walk goes on.
	Place Place
	// Seen is how many models it has looked at, Changed how many of them start at another time now. After a crash some count twice.
	Seen, Changed int64
	// Readable is false where this release cannot read the policy that is stored: another one has to walk.
	Readable bool

	text string // as it stands in <queue>:replans
}

// Place is where a walk over the models stands. Only the server that has told it knows it: another one begins anew.
type Place string

// The places that are none of a server.
const (
	WalkBegins Place = "-"
	WalkEnds   Place = ""
)

func (r Replan) String() string {
	return fmt.Sprintf("%d %s %d %d", r.Since.UnixMilli(), r.Place, r.Seen, r.Changed)
}

// readReplan reads an entry of <queue>:replans. What cannot be read begins anew.
func readReplan(name, text string) Replan {
	r := Replan{Policy: name, Place: WalkBegins, text: text}
	if fields := strings.Fields(text); len(fields) == 4 {
		r.Place, r.Seen, r.Changed = Place(fields[1]), whole(fields[2]), whole(fields[3])
		r.Since, _ = parseMillis(fields[0])
	}
	return r
}

// Replans lists the walks that are not over, oldest first.
func (s *Store) Replans(ctx context.Context) ([]Replan, error) {
	texts, err := s.clients.Read.HGetAll(ctx, s.Keys.Replans()).Result()
	if err != nil {
		return nil, fmt.Errorf("read whose models are planned anew: %w", err)
	}
	names := slices.Sorted(maps.Keys(texts))
	unreadable, err := s.unreadable(ctx, names)
	walks := make([]Replan, len(names))
	for i, name := range names {
		walks[i] = readReplan(name, texts[name])
		walks[i].Readable = !unreadable[name]
	}
	slices.SortStableFunc(walks, func(a, b Replan) int { return a.Since.Compare(b.Since) })
	return walks, err
}

// unreadable tells which stored policies cannot be read. Their models run under the default policy, which nobody has meant.
func (s *Store) unreadable(ctx context.Context, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	texts, err := s.clients.Read.HMGet(ctx, s.Keys.Policies(), names...).Result()
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	broken := map[string]bool{}
	for i, text := range texts {
		if text, stored := text.(string); stored {
			_, err := s.policies.parse(text)
			broken[names[i]] = err != nil
		}
	}
	return broken, nil
}

// replacePolicy changes what is stored under a name, and notes in the same step that its models are to be planned anew if it plans otherwise
// then. Two changes at the same instant may be noted as one, which is enough: no walk begins so soon.
func (s *Store) replacePolicy(ctx context.Context, name string, after policy.Policy, change func(redis.Pipeliner)) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	stored, err := s.Policies(ctx, []string{name})
	if err != nil {
		return err
	}
	before, found := stored[name]
	if !found { // its models run under the default policy
		before = policy.Default()
	}
	pipe := s.clients.Write.Pipeline()
	if !before.PlansAlike(after) {
		pipe = s.clients.Write.TxPipeline()
		pipe.HSet(ctx, s.Keys.Replans(), name, Replan{Since: now, Place: WalkBegins}.String())
	}
	change(pipe)
	_, err = pipe.Exec(ctx)
	return err
}

// maxScans bounds how often a step of a walk asks on where few keys are models.
const maxScans = 50

// WalkModels takes a step of a walk over all models: it returns the uids from a place on, in no order, and the place behind them. It asks on
// until there are at least so many, but not without end. Each model that is there during the whole walk comes at least once.
func (s *Store) WalkModels(ctx context.Context, from Place, least int) (uids []string, to Place, err error) {
	node, err := masterFor(ctx, s.clients.Read, s.Keys.Due())
	if err != nil {
		return nil, from, fmt.Errorf("walk over the models: %w", err)
	}
	server, err := s.Server(ctx)
	if err != nil {
		return nil, from, err
	}
	var cursor uint64
	if place, same := strings.CutPrefix(string(from), server["run_id"]+"/"); same {
		cursor, _ = strconv.ParseUint(place, 10, 64)
	}
	pattern := escapeGlob(s.Keys.models()) + "*"
	for range maxScans {
		var keys []string
		if keys, cursor, err = node.Scan(ctx, cursor, pattern, scanCount).Result(); err != nil {
			return nil, from, fmt.Errorf("walk over the models: %w", err)
		}
		for _, key := range keys {
			uids = append(uids, strings.TrimPrefix(key, s.Keys.models()))
		}
		if cursor == 0 {
			return uids, WalkEnds, nil
		}
		if len(uids) >= least {
			break
		}
	}
	return uids, Place(server["run_id"] + "/" + strconv.FormatUint(cursor, 10)), nil
}

// MoveReplans notes how far walks are, or that they are over, and tells which were moved: not those that have begun anew since they were
// read, or that another poller has moved.
func (s *Store) MoveReplans(ctx context.Context, walks []Replan) ([]Code, error) {
	args := make([]any, 0, 3*len(walks))
	for _, walk := range walks {
		is := walk.String()
		if walk.Place == WalkEnds {
			is = ""
		}
		args = append(args, walk.Policy, walk.text, is)
	}
	codes, err := runCodes(ctx, s.clients.Write, moveReplans, []string{s.Keys.Replans()}, args)
	if err == nil && len(codes) != len(walks) {
		err = fmt.Errorf("expected %d codes, found %d", len(walks), len(codes))
	}
	return codes, wrap(err, "note how far models are planned anew")
}
