package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/zones"
)

var moveBulk = redis.LoadScript("move-bulk.lua")

// Bulk is a wish about many models, and how far pollers have come with it in one part of the queue.
type Bulk struct {
	model.Bulk
	ID string
	// Place is where the walk over the models goes on, behind Rest: uids that it has met and nobody has looked at.
	Place Place
	Rest  []string
	// Trying are uids of models that a step was about to change which has not noted yet what became of them.
	Trying []string
	// Size is about how many models the walk will meet, as it was when the bulk began; 0: nobody has counted.
	Size int64
	// Seen is how many models were looked at, Picked those of them that the selector picks, Done those that were changed.
	Seen, Picked, Done int64
	// Others counts those that were not, by the reason.
	Others map[model.Outcome]int64
	// After are daemons of an older release that have lived since it began. It waits for their end: what they write it would have to mend again.
	After []string
	// Next is from when on the rate lets the next one through; zero: none was let through.
	Next time.Time
	// EndedAt is when it was over; zero: it is not. Cancelled: somebody has ended it.
	EndedAt   time.Time
	Cancelled bool
	// Problem says why this release cannot carry it out: another one has to. Empty: it can.
	Problem string

	since, step string // as they stand in its hash
}

// refusedPrefix begins the fields that count refusals by their reasons.
const refusedPrefix = "refused:"

// ReplanID is the id of the bulk that plans the models of a policy anew.
func ReplanID(policy string) string { return string(model.BulkReplan) + "-" + policy }

// Policy is the policy whose models are planned anew; empty: the bulk does something else.
func (b *Bulk) Policy() string {
	if names := b.Selector.Only(model.SelectPolicy); b.Action == model.BulkReplan && len(names) == 1 {
		return names[0]
	}
	return ""
}

// Refusals is how many models were picked and refused.
func (b *Bulk) Refusals() (sum int64) {
	for outcome, count := range b.Others {
		if !Harmless(outcome) {
			sum += count
		}
	}
	return sum
}

// Harmless reports whether there was nothing to be done.
func Harmless(outcome model.Outcome) bool {
	return outcome == model.Unchanged || outcome == model.Already
}

// Count counts a model that was picked.
func (b *Bulk) Count(outcome model.Outcome) {
	b.Picked++
	switch {
	case outcome == model.Applied:
		b.Done++
	case b.Others == nil:
		b.Others = map[model.Outcome]int64{outcome: 1}
	default:
		b.Others[outcome]++
	}
}

// wish are the fields that say what is wished for, but for empty ones.
func (b *Bulk) wish() map[string]string {
	wish := map[string]string{
		"action": string(b.Action), "selector": b.Selector.String(), "rate": b.Rate.String(), "force": redis.Flag(b.Force), "reason": b.Reason, "by": b.By,
		"since": model.FormatTime(b.Since), "ticket": redis.Number(b.Ticket), "size": redis.Number(int(b.Size)),
		"after": strings.Join(b.After, " "),
	}
	maps.DeleteFunc(wish, func(_, value string) bool { return value == "" })
	return wish
}

// readBulk reads a hash. What this release cannot read is told as a problem.
func readBulk(id string, hash map[string]string) Bulk {
	b := Bulk{ID: id, Place: Place(cmp.Or(hash["cursor"], string(WalkBegins))), since: hash["since"], step: hash["step"]}
	b.Action, b.By, b.Reason, b.Force = model.BulkAction(hash["action"]), hash["by"], hash["reason"], hash["force"] != ""
	b.Ticket, b.Size = int(redis.ParseInt(hash["ticket"])), redis.ParseInt(hash["size"])
	b.Seen, b.Picked, b.Done = redis.ParseInt(hash["seen"]), redis.ParseInt(hash["picked"]), redis.ParseInt(hash["done"])
	b.Rest, b.Trying, b.After = strings.Fields(hash["rest"]), strings.Fields(hash["trying"]), strings.Fields(hash["after"])
	for field, count := range hash {
		if outcome, is := strings.CutPrefix(field, refusedPrefix); is || Harmless(model.Outcome(field)) {
			if b.Others == nil {
				b.Others = map[model.Outcome]int64{}
			}
			b.Others[model.Outcome(outcome)] = redis.ParseInt(count)
		}
	}
	b.Cancelled = hash["ended"] == string(BulkCancelled)
	if release, own := strings.TrimPrefix(id, ZonesID), zones.InUse(); b.Action == model.BulkZones && release > own.Release {
		b.Problem = "expected zone data of " + release + " or newer, found " + own.String()
	}
	var errs [5]error
	b.Selector, errs[0] = model.ParseSelector(hash["selector"])
	b.Rate, errs[1] = policy.ReadRate(hash["rate"])
	b.Since, errs[2] = bulkTime("since", hash["since"])
	b.Next, errs[3] = bulkTime("next_at", cmp.Or(hash["next_at"], hash["since"]))
	b.EndedAt, errs[4] = bulkTime("ended_at", cmp.Or(hash["ended_at"], hash["since"]))
	if hash["ended"] == "" {
		b.EndedAt = time.Time{}
	}
	if err := cmp.Or(errs[0], errs[1], errs[2], errs[3], errs[4], b.Validate()); err != nil {
		b.Problem = err.Error()
	}
	return b
}

func bulkTime(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, document.Refuse(field, "an RFC 3339 time", document.Found(text))
	}
	return at.UTC(), nil
}

// Bulks reads the bulks that are not over, oldest first. One that stands among them and is gone, or over, is left out: the doctor tells.
func (s *Store) Bulks(ctx context.Context) ([]Bulk, error) {
	bulks, err := s.readBulks(ctx, s.Keys.Bulks)
	bulks = slices.DeleteFunc(bulks, func(b Bulk) bool { return !b.EndedAt.IsZero() })
	if err == nil && slices.ContainsFunc(bulks, func(b Bulk) bool { return b.Action == model.BulkZones }) {
		notes, failed := ZoneNotes(ctx, s.Report())
		for i := range bulks {
			bulks[i].Zones, err = notes, failed
		}
	}
	if err != nil || !slices.ContainsFunc(bulks, func(b Bulk) bool { return len(b.After) > 0 }) {
		return bulks, err
	}
	living, err := s.daemons(ctx)
	for i := range bulks {
		bulks[i].After = slices.DeleteFunc(bulks[i].After, func(name string) bool { return !slices.Contains(living, name) })
	}
	return bulks, err
}

// MendID is the id of the bulk that mends what daemons of older releases have left out. It is called after Layout.
const MendID = "layout-2"

// mendRate lets a million models be looked at within minutes, and most of the time of Redis to others.
var mendRate = policy.Rate{Count: 2000, Per: time.Second}

// beginMend writes down that all models of the part are to be mended behind the end of some daemons, unless nothing has happened in it yet. It is made
// of commands that dispatchers may give, which begin no other bulk.
func (s *Store) beginMend(ctx context.Context, after []string) error {
	counters, err := s.Clients.Read.HGetAll(ctx, s.Keys.Stats).Result()
	if err != nil || len(counters) == 0 {
		return err
	}
	b := Bulk{After: after, Bulk: model.Bulk{Action: model.BulkMend, Rate: mendRate.Share(len(s.AllParts()))}}
	if b.Since, err = s.Now(ctx); err != nil {
		return err
	}
	_, err = s.Clients.Write.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		s.begin(ctx, pipe, MendID, &b)
		return nil
	})
	return err
}

// begin begins a bulk, anew if there is one of its id.
func (s *Store) begin(ctx context.Context, pipe goredis.Pipeliner, id string, b *Bulk) {
	key := s.Keys.Bulk(id)
	pipe.Del(ctx, key)
	pipe.HSet(ctx, key, b.wish())
	pipe.ZAdd(ctx, s.Keys.Bulks, goredis.Z{Score: float64(b.Since.UnixMilli()), Member: id})
}

func (s *Store) readBulks(ctx context.Context, set string) ([]Bulk, error) {
	ids, err := s.Clients.Read.ZRange(ctx, set, 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return nil, redis.Wrap(err, "list bulks")
	}
	hashes, err := redis.ReadEach(ctx, s.Clients.Read, "read bulks", ids, func(pipe goredis.Pipeliner, id string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, s.Keys.Bulk(id))
	})
	if err != nil {
		return nil, err
	}
	var bulks []Bulk
	for i, hash := range hashes {
		if len(hash) > 0 {
			bulks = append(bulks, readBulk(ids[i], hash))
		}
	}
	// Of one whose policy is stored and cannot be read it is told: its models run under the default policy, which nobody has meant.
	var names []string
	for i := range bulks {
		if name := bulks[i].Policy(); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return bulks, nil
	}
	texts, err := s.Clients.Read.HMGet(ctx, s.Keys.Policies, names...).Result()
	if err != nil {
		return bulks, fmt.Errorf("read policies: %w", err)
	}
	broken := map[string]string{}
	for i, text := range texts {
		if text, stored := text.(string); stored {
			if _, err := s.policies.parse(text); err != nil {
				broken[names[i]] = err.Error()
			}
		}
	}
	for i := range bulks {
		bulks[i].Problem = cmp.Or(bulks[i].Problem, broken[bulks[i].Policy()])
	}
	return bulks, nil
}

// ReadBulk reads one bulk; false: there is none of that id, or it was over for more than a day.
func (s Fleet) ReadBulk(ctx context.Context, id string) (Bulk, bool, error) {
	hash, err := s.store.Clients.Read.HGetAll(ctx, s.store.Keys.Bulk(id)).Result()
	if err != nil || len(hash) == 0 {
		return Bulk{}, false, redis.Wrap(err, "read a bulk")
	}
	return readBulk(id, hash), true, nil
}

// MoveBulk notes how far a bulk is, or that it is over, and tells whether that is so: not of one that has begun anew since it was read, that
// is over, or that somebody else has moved. It can then be moved again.
func (s *Store) MoveBulk(ctx context.Context, b *Bulk, now time.Time) (bool, error) {
	ends := ""
	fields := map[string]string{
		"cursor": string(b.Place), "rest": strings.Join(b.Rest, "\n"), "trying": strings.Join(b.Trying, "\n"), "seen": redis.Number(int(b.Seen)), "picked": redis.Number(int(b.Picked)),
		"done": redis.Number(int(b.Done)), "refused": redis.Number(int(b.Refusals())), "next_at": model.FormatTime(b.Next), "after": strings.Join(b.After, " "),
	}
	for outcome, count := range b.Others {
		name := string(outcome)
		if !Harmless(outcome) {
			name = refusedPrefix + name
		}
		fields[name] = redis.Number(int(count))
	}
	if over := b.Place == WalkEnds && len(b.Rest) == 0; over || b.Cancelled {
		b.EndedAt, ends = now, redis.Millis(now)
		fields["ended"], fields["ended_at"] = string(BulkDone), model.FormatTime(now)
		fields["cursor"], fields["rest"], fields["trying"] = "", "", ""
		if b.Cancelled {
			fields["ended"] = string(BulkCancelled)
		}
	}
	step := strconv.FormatInt(redis.ParseInt(b.step)+1, 10)
	args := []any{b.ID, b.since, b.step, ends, "step", step}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		args = append(args, name, fields[name])
	}
	code, err := redis.RunScript(ctx, s.Clients.Write, moveBulk, []string{s.Keys.Bulks, s.Keys.BulksEnded, s.Keys.Bulk(b.ID)}, args...).Int()
	if err != nil {
		return false, fmt.Errorf("note how far a bulk is: %w", err)
	}
	b.step = step
	if code == 1 && ends != "" && b.Action == model.BulkZones && b.Done > 0 && s.config.JournalCap > 0 {
		values := []any{"event", "zones", "key", b.ID, "at", model.FormatTime(now), "reason", fmt.Sprintf("%d of %d models planned anew", b.Done, b.Seen)}
		err = s.Clients.Write.XAdd(ctx, &goredis.XAddArgs{Stream: s.Keys.Journal, MaxLen: int64(s.config.JournalCap), Approx: true, Values: values}).Err()
	}
	return code == 1, redis.Wrap(redis.IgnoreWrongType(err), "tell the journal of a bulk")
}

// BulkState is how far a bulk is, in a word.
type BulkState string

// The states of a bulk.
const (
	BulkRunning    BulkState = "running"
	BulkDone       BulkState = "done"
	BulkCancelled  BulkState = "cancelled"
	BulkUnreadable BulkState = "unreadable" // by this release
)

// Over reports whether pollers have nothing more to do for it.
func (s BulkState) Over() bool { return s == BulkDone || s == BulkCancelled }

// State is how far it is, in a word.
func (b *Bulk) State() BulkState {
	switch {
	case b.Problem != "":
		return BulkUnreadable
	case b.EndedAt.IsZero():
		return BulkRunning
	case b.Cancelled:
		return BulkCancelled
	default:
		return BulkDone
	}
}

// add adds what another part has of the bulk.
func (b *Bulk) add(other *Bulk) {
	if b.ID == "" {
		*b = *other
		b.Others = maps.Clone(other.Others)
		return
	}
	b.Size, b.Seen, b.Picked, b.Done = b.Size+other.Size, b.Seen+other.Seen, b.Picked+other.Picked, b.Done+other.Done
	if b.Others == nil {
		b.Others = map[model.Outcome]int64{}
	}
	addUp(b.Others, other.Others)
	if other.Since.Before(b.Since) {
		b.Since = other.Since
	}
	switch { // it is over where it is over in all parts
	case b.EndedAt.IsZero() || other.EndedAt.IsZero():
		b.EndedAt = time.Time{}
	case other.EndedAt.After(b.EndedAt):
		b.EndedAt = other.EndedAt
	}
	b.Cancelled, b.Problem = b.Cancelled || other.Cancelled, cmp.Or(b.Problem, other.Problem)
}
