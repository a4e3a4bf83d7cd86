package flow

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
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

var moveBulk = redis.LoadScript("move-bulk.lua")

// Bulks reads the bulks that are not over, oldest first.
func (f Flow) Bulks(ctx context.Context) ([]Bulk, error) {
	bulks, err := f.readBulks(ctx, f.store.Keys.Bulks)
	bulks = slices.DeleteFunc(bulks, func(b Bulk) bool { return !b.EndedAt.IsZero() })
	if err == nil && slices.ContainsFunc(bulks, func(b Bulk) bool { return b.Action == model.BulkZones }) {
		notes, failed := store.ZoneNotes(ctx, f.store.Report())
		for i := range bulks {
			bulks[i].Zones, err = notes, failed
		}
	}
	return bulks, err
}

func (f Flow) readBulks(ctx context.Context, set string) ([]Bulk, error) {
	ids, err := f.store.Clients.Read.ZRange(ctx, set, 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return nil, redis.Wrap(err, "list bulks")
	}
	hashes, err := redis.ReadEach(ctx, f.store.Clients.Read, "read bulks", ids, func(pipe goredis.Pipeliner, id string) *goredis.MapStringStringCmd {
		return pipe.HGetAll(ctx, f.store.Keys.Bulk(id))
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
	// A stored policy that cannot be read is a problem: its models run under the default policy.
	var names []string
	for i := range bulks {
		if name := bulks[i].Policy(); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return bulks, nil
	}
	texts, err := f.store.Clients.Read.HMGet(ctx, f.store.Keys.Policies, names...).Result()
	if err != nil {
		return bulks, fmt.Errorf("read policies: %w", err)
	}
	broken := map[string]string{}
	for i, text := range texts {
		if text, stored := text.(string); stored {
			if _, err := f.store.Report().ParsePolicy(text); err != nil {
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
func (f Flow) ReadBulk(ctx context.Context, id string) (Bulk, bool, error) {
	hash, err := f.store.Clients.Read.HGetAll(ctx, f.store.Keys.Bulk(id)).Result()
	if err != nil || len(hash) == 0 {
		return Bulk{}, false, redis.Wrap(err, "read a bulk")
	}
	return readBulk(id, hash), true, nil
}

// MoveBulk stores the progress or the end of a bulk. false: it has begun anew, is over, or somebody else has moved it since it was read.
func (f Flow) MoveBulk(ctx context.Context, b *Bulk, now time.Time) (bool, error) {
	ends := ""
	fields := map[string]string{
		"cursor": string(b.Place), "rest": strings.Join(b.Rest, "\n"), "trying": strings.Join(b.Trying, "\n"), "seen": redis.Number(int(b.Seen)), "picked": redis.Number(int(b.Picked)),
		"done": redis.Number(int(b.Done)), "refused": redis.Number(int(b.Refusals())), "next_at": model.FormatTime(b.Next),
	}
	for outcome, count := range b.Others {
		name := string(outcome)
		if !Harmless(outcome) {
			name = refusedPrefix + name
		}
		fields[name] = redis.Number(int(count))
	}
	if over := b.Place == store.WalkEnds && len(b.Rest) == 0; over || b.Cancelled {
		b.EndedAt, ends = now, redis.Millis(now)
		fields["ended"], fields["ended_at"] = string(BulkDone), model.FormatTime(now)
		fields["cursor"], fields["rest"], fields["trying"] = "", "", ""
		if b.Cancelled {
			fields["ended"] = string(BulkCancelled)
		}
	}
	step := strconv.FormatInt(redis.ParseInt(b.step)+1, 10)
	deed := model.Deed{}
	if ends != "" && b.By != "" {
		deed = model.Deed{ID: b.ID, Verb: verbOf(b.Action), What: b.Selector.String(), Number: int(b.Done), By: b.By, From: "poller", Ends: 1}
	}
	if b.Cancelled {
		deed = model.Deed{Verb: model.DeedCancels, What: b.ID, Number: int(b.Done)}
	}
	deeds, text, err := f.store.Fleet().DeedArgs(ctx, deed)
	if err != nil {
		return false, err
	}
	args := []any{b.ID, b.since, b.step, ends, text, "step", step}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		args = append(args, name, fields[name])
	}
	code, err := redis.RunScript(ctx, f.store.Clients.Write, moveBulk, []string{f.store.Keys.Bulks, f.store.Keys.BulksEnded, f.store.Keys.Bulk(b.ID), deeds}, args...).Int()
	if err != nil {
		return false, fmt.Errorf("note how far a bulk is: %w", err)
	}
	b.step = step
	if code == 1 && ends != "" && b.Action == model.BulkZones && b.Done > 0 && f.store.Config.JournalCap > 0 {
		values := []any{"event", "zones", "key", b.ID, "at", model.FormatTime(now), "reason", fmt.Sprintf("%d of %d models planned anew", b.Done, b.Seen)}
		err = f.store.Clients.Write.XAdd(ctx, &goredis.XAddArgs{Stream: f.store.Keys.Journal, MaxLen: int64(f.store.Config.JournalCap), Approx: true, Values: values}).Err()
	}
	return code == 1, redis.Wrap(redis.IgnoreWrongType(err), "note a bulk in the journal")
}

// BeginBulk writes down a bulk that begins now, with what the walk of this part is to meet; pollers carry it out. It returns it as it is
// written.
func (f Flow) BeginBulk(ctx context.Context, id string, wish model.Bulk) (Bulk, error) {
	started, err := f.store.Clients.Read.HGet(ctx, f.store.Keys.Stats, string(model.EventStart)).Result()
	if err != nil && !redis.Missing(err) {
		return Bulk{}, fmt.Errorf("begin a bulk: %w", err)
	}
	if wish.Since, err = f.store.Now(ctx); err != nil { // after the ticket: a start in between counts as started since
		return Bulk{}, err
	}
	wish.Ticket = int(redis.ParseInt(started))
	b := Bulk{BulkWish: store.BulkWish{ID: id, Bulk: wish}, Place: store.WalkBegins}
	if b.Size, err = f.store.Report().MayPick(ctx, wish.Selector); err != nil {
		return Bulk{}, err
	}
	asked := false
	_, err = f.store.Fleet().Change(ctx, f.store.Keys.Holds, store.Order{}, func() (store.Change, error) {
		begun, _, err := f.ReadBulk(ctx, id)
		switch same := begun.since == model.FormatTime(b.Since); {
		case same && asked: // by a call that was not answered
			return store.Change{}, err
		case same: // since distinguishes it from the one before of this name
			b.Since = b.Since.Add(time.Millisecond)
		}
		asked = true
		deed := model.Deed{ID: id, Verb: verbOf(wish.Action), What: wish.Selector.String(), By: wish.By, Reason: wish.Reason, Begins: 1}
		return store.Change{Bulk: &b.BulkWish, Deed: deed}, err
	})
	return b, redis.Wrap(err, "begin a bulk")
}

// verbOf is the command that begins a bulk.
func verbOf(action model.BulkAction) string {
	return "model " + strings.Replace(string(action), string(model.BulkRemove), "rm", 1)
}

// EndedBulks reads the bulks that were over within a day, the oldest first.
func (f Flow) EndedBulks(ctx context.Context) ([]Bulk, error) {
	return f.readBulks(ctx, f.store.Keys.BulksEnded)
}

// CancelBulk ends a bulk; false: there is none, or it is over. It undoes nothing.
func (f Flow) CancelBulk(ctx context.Context, id string) (bool, error) {
	for {
		b, found, err := f.ReadBulk(ctx, id)
		if err != nil || !found || !b.EndedAt.IsZero() {
			return false, err
		}
		now, err := f.store.Now(ctx)
		if err != nil {
			return false, err
		}
		b.Cancelled = true
		if moved, err := f.MoveBulk(ctx, &b, now); moved || err != nil { // otherwise a poller has moved it meanwhile
			return moved, err
		}
	}
}

// FindBulk reads a bulk of all parts; false: none of that name is going on, or was within a day.
func (q Queue) FindBulk(ctx context.Context, id string) (sum Bulk, found bool, err error) {
	err = q.queue.Each(func(part *store.Store) error {
		bulk, there, err := Of(part).ReadBulk(ctx, id)
		if there && err == nil {
			sum.add(&bulk)
		}
		found = found || there
		return err
	})
	return sum, found, err
}

// Bulks lists the bulks of all parts: those that were over within a day first, then the others, the oldest first.
func (q Queue) Bulks(ctx context.Context) ([]Bulk, error) {
	read := func(part *store.Store) ([]Bulk, error) {
		ended, err := Of(part).EndedBulks(ctx)
		if err != nil {
			return nil, err
		}
		open, err := Of(part).Bulks(ctx)
		return append(ended, open...), err
	}
	return store.SumOf(q.queue, read, func(b *Bulk) string { return b.ID }, (*Bulk).add, func(a, b Bulk) int {
		return cmp.Or(store.TrueFirst(a.State().Over(), b.State().Over()), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
}

// BeginNewBulk begins a bulk in every part, under an id of its own. After an error it may have begun in some.
func (q Queue) BeginNewBulk(ctx context.Context, wish model.Bulk) (id string, err error) {
	id = string(wish.Action) + "-" + store.Letters()
	return id, q.BeginBulk(ctx, id, wish)
}

// BeginBulk begins a bulk in every part; each has its share of the rate. After an error it may have begun in some.
func (q Queue) BeginBulk(ctx context.Context, id string, wish model.Bulk) error {
	wish.Rate = wish.Rate.Share(len(q.queue.Parts))
	return q.queue.ChangeEach(func(part *store.Store) error { _, err := Of(part).BeginBulk(ctx, id, wish); return err })
}

// CancelBulk ends a bulk in every part; false: it is in none, or over in all.
func (q Queue) CancelBulk(ctx context.Context, id string) (cancelled bool, err error) {
	err = q.queue.Each(func(part *store.Store) error {
		is, err := Of(part).CancelBulk(ctx, id)
		cancelled = cancelled || is
		return err
	})
	return cancelled, err
}

// FindBulk reads at one instant a bulk, and whether it is listed as open.
func (in Inspection) FindBulk(ctx context.Context, id string) (b Bulk, there, open bool, err error) {
	pipe := in.flow.store.Clients.Read.TxPipeline()
	hash, score := pipe.HGetAll(ctx, in.flow.store.Keys.Bulk(id)), pipe.ZScore(ctx, in.flow.store.Keys.Bulks, id)
	err = redis.ExecReads(ctx, pipe)
	return readBulk(id, hash.Val()), len(hash.Val()) > 0, score.Err() == nil, redis.Wrap(err, "look for a bulk")
}

// ListBulk makes a bulk known that nobody would carry out.
func (in Inspection) ListBulk(ctx context.Context, b Bulk) error {
	err := in.flow.store.Clients.Write.ZAddNX(ctx, in.flow.store.Keys.Bulks, goredis.Z{Score: float64(b.Since.UnixMilli()), Member: b.ID}).Err()
	return redis.Wrap(err, "list a bulk again")
}
