package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/zones"
)

// ZonesID begins the ids of bulks that plan models anew by newer zone data; its release follows.
const ZonesID = "zones-"

// ZoneNotes reads which zone data planned the queue, and which its daemons have.
func ZoneNotes(ctx context.Context, s Report) (*zones.Notes, error) {
	hash, err := s.store.Clients.Read.HGetAll(ctx, s.store.Keys.Zones).Result()
	if _, wrong := redis.WrongType(err); wrong { // nobody knows
		err = nil
	}
	return zones.ReadNotes(hash), redis.Wrap(err, "read by which zone data the queue was planned")
}

// ZoneDoubts describes differences of zone data, see zones.Notes.Doubts.
func ZoneDoubts(ctx context.Context, s Report, others map[string]*zones.Data) ([]string, error) {
	notes, err := ZoneNotes(ctx, s)
	living, failed := s.store.Report().Daemons(ctx)
	return notes.Doubts(living, others), cmp.Or(err, failed)
}

// zonesEvery is how often a daemon checks whether others with older zone data are gone.
const zonesEvery = time.Minute

// ZoneWatch notes the zone data of one daemon. The zero value is ready.
type ZoneWatch struct {
	noted  time.Time
	loaded int64 // zones, until then
}

// Note notes it, before the first heartbeat of the daemon and now and then from then on. seen is when Redis was asked last. Where the service forbids
// WATCH, nothing is noted, and no model is planned anew.
func (w *ZoneWatch) Note(ctx context.Context, part interface {
	NoteZones(ctx context.Context, daemon string) (time.Time, error)
}, daemon string, seen time.Time) error {
	loaded := zones.InUse().Loaded()
	if since := seen.Sub(w.noted); w.loaded == loaded && !w.noted.IsZero() && since >= 0 && since < zonesEvery {
		return nil
	}
	at, err := part.NoteZones(ctx, daemon)
	if redis.Refused(err) {
		err = nil
	}
	if _, wrong := redis.WrongType(err); wrong || err == nil {
		w.noted = cmp.Or(at, seen)
	}
	w.loaded = loaded
	return err
}

// NoteZones notes the zone data of a daemon, and which zones are in use. If this release of the data is the first one or a newer one, or no daemon
// with older data lives any more, it begins to plan all models anew, and has calendars rechecked. A kill leaves it undone as a whole.
func (s *Store) NoteZones(ctx context.Context, daemon string) (now time.Time, err error) {
	var set map[string]string
	var drop, blockers []string
	replan := false
	_, err = s.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		hash, err := tx.HGetAll(ctx, s.Keys.Zones).Result()
		if err != nil {
			return false, err
		}
		living, failed := s.Report().Daemons(ctx)
		now, err = s.Now(ctx)
		if err = cmp.Or(failed, err); err != nil {
			return false, err
		}
		if set, drop, replan = zones.ReadNotes(hash).Update(zones.InUse(), daemon, living, now); replan {
			counters, failed := s.Clients.Read.HGetAll(ctx, s.Keys.Stats).Result()
			blockers, err = s.Clients.Read.ZRange(ctx, s.Keys.Blockers, 0, -1).Result()
			replan, err = len(counters) > 0, cmp.Or(failed, err)
		}
		return len(set)+len(drop) > 0, err
	}, func(pipe goredis.Pipeliner) {
		if len(set) > 0 {
			pipe.HSet(ctx, s.Keys.Zones, set)
		}
		if len(drop) > 0 {
			pipe.HDel(ctx, s.Keys.Zones, drop...)
		}
		if replan {
			b := BulkWish{ID: ZonesID + zones.InUse().Release, Bulk: model.Bulk{Action: model.BulkZones, Rate: walkRate.Share(len(s.AllParts())), Since: now}}
			s.begin(ctx, pipe, &b)
			for _, blocker := range slices.DeleteFunc(blockers, func(blocker string) bool { return !strings.HasPrefix(blocker, model.BlockerCalendar+":") }) {
				pipe.ZAddXX(ctx, s.Keys.Blockers, goredis.Z{Score: float64(now.UnixMilli()), Member: blocker})
			}
		}
	}, s.Keys.Zones)
	return now, redis.Wrap(s.nameWrongType(ctx, s.Keys.Zones, err), "note the zone data of a daemon")
}
