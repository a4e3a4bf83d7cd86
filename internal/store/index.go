package store

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

// ScoreIndex is a sorted set of the models of a queue, which one function of their state decides.
type ScoreIndex struct {
	// Name is the name of the set, as in <queue>:due.
	Name string
	// Field is the field of the model that its score comes from.
	Field string
	// Key is its key.
	Key func(*Keys) string
	// Score is at which time a model is a member; zero: it is none.
	Score func(*model.State) time.Time
	// written says which transitions write it.
	written written
	// statuses have all of their models in the set.
	statuses statuses
}

// written says which transitions write an index, beside those that change its score.
type written int

const (
	onChange written = iota
	atEnd            // those that end an attempt of a member: a lost member comes back
	always           // all
	required         // all, and none is applied where its key is of another type
)

type statuses []model.Status

// ScoreIndexes are all of them. Commits write them, the doctor checks and repairs them, and roles read them.
var ScoreIndexes = [...]ScoreIndex{
	{"due", "refresh_at", func(k *Keys) string { return k.Due }, func(s *model.State) time.Time { return s.Scores().Due }, required, nil},
	{"urgent", "refresh_at", func(k *Keys) string { return k.Urgent }, func(s *model.State) time.Time { return s.Scores().Urgent }, always, nil},
	{"running", "deadline_at or the end of its silence", func(k *Keys) string { return k.Running }, (*model.State).ExpiresAt, required, statuses{model.StatusRunning}},
	{"failing", "failing_since", func(k *Keys) string { return k.Failing }, func(s *model.State) time.Time { return s.FailingSince }, atEnd, statuses{model.StatusFailing}},
	{"disabled", "refresh_disabled_at", func(k *Keys) string { return k.Disabled }, func(s *model.State) time.Time { return s.Scores().Disabled }, onChange, statuses{model.StatusDisabled}},
	{"parked", "refresh_at", func(k *Keys) string { return k.Parked }, func(s *model.State) time.Time { return s.Scores().Parked }, onChange, statuses{model.StatusParked}},
	{"stale_at", "stale_at", func(k *Keys) string { return k.StaleAt }, func(s *model.State) time.Time { return s.Scores().StaleAt }, onChange, nil},
	{"late", "stale_at", func(k *Keys) string { return k.Late }, func(s *model.State) time.Time { return s.Scores().Late }, onChange, statuses{model.StatusLate, model.StatusNever}},
	{"stale", "stale_at", func(k *Keys) string { return k.Stale }, func(s *model.State) time.Time { return s.Scores().Stale }, onChange, statuses{model.StatusStale}},
}

// ScoreSets are the keys of ScoreIndexes.
func (k *Keys) ScoreSets() []string {
	return redis.Map(ScoreIndexes[:], func(index ScoreIndex) string { return index.Key(k) })
}

// StatusSets are the keys of the sets with all models of a status; of "", of all sets that belong to a status.
func (k *Keys) StatusSets(status model.Status) (sets []string) {
	for _, index := range ScoreIndexes {
		if slices.Contains(index.statuses, status) || status == "" && index.statuses != nil {
			sets = append(sets, index.Key(k))
		}
	}
	return sets
}

// parseScore reads a score of the due or running set. A person can write any number there; one that is no whole number, or
// never comes, must not stop the queue.
func parseScore(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("expected a score, found %q", text)
	case ms > maxScore:
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// maxScore is above every instant that a Go program can format.
const maxScore = 253402300799999 // the end of the year 9999

func firstScore(members []goredis.Z) time.Time {
	if len(members) == 0 || members[0].Score > maxScore {
		return time.Time{}
	}
	return time.UnixMilli(int64(members[0].Score)).UTC()
}
