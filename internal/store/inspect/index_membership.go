package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// IndexMembership is the place of a model in an index.
type IndexMembership struct {
	store.Index
	// Says: by its fields the model is a member, with the score At; zero: a set of a label has no scores.
	Says bool
	At   time.Time
	Is   Membership
}

// indexesOf returns the index memberships that the fields of a model ask for.
func indexesOf(m *model.Model) (all []IndexMembership) {
	add := func(kind store.KeyKind, name string, at time.Time) {
		if !at.IsZero() {
			all = append(all, IndexMembership{Index: store.Index{Kind: kind, Name: name}, Says: true, At: at})
		}
	}
	add(store.KeyBlocker, string(m.ParkedBy), m.Scores().Parked)
	for _, name := range model.CountedBy(m.Counted, model.BlockerLimit) {
		add(store.KeyLimit, name, m.DeadlineAt)
	}
	for _, term := range model.LabelTerms(model.AllLabels(m)) {
		all = append(all, IndexMembership{Index: store.Index{Kind: store.KeyLabel, Name: term}, Says: true})
	}
	return all
}

// readIndexes reads the memberships of models that are in some index: the others cost nothing.
func (s Part) readIndexes(ctx context.Context, inspections []*Inspection) error {
	type asked struct {
		uid string
		*IndexMembership
	}
	var all []asked
	for _, m := range inspections {
		m.Indexes = indexesOf(&m.Record.Model)
		for i := range m.Indexes {
			all = append(all, asked{m.Record.UID, &m.Indexes[i]})
		}
	}
	for chunk := range slices.Chunk(all, redis.ScanCount) {
		pipe := s.store.Clients.Read.Pipeline()
		replies := redis.Map(chunk, func(one asked) *goredis.Cmd {
			return sendMembership(ctx, pipe, s.store.Keys.Index(one.Index), one.Scored(), one.uid)
		})
		if err := redis.ExecReads(ctx, pipe); err != nil {
			return fmt.Errorf("read indexes: %w", err)
		}
		for i, reply := range replies {
			chunk[i].Is = readMembership(reply, 0)
		}
	}
	return nil
}

// Stands returns the membership of the model in an index. It is unknown if it was not read.
func (c *Inspection) Stands(index store.Index) IndexMembership {
	if at := c.find(index); at >= 0 {
		return c.Indexes[at]
	}
	return IndexMembership{Index: index, Is: Membership{Unknown: true}}
}

func (c *Inspection) find(index store.Index) int {
	return slices.IndexFunc(c.Indexes, func(one IndexMembership) bool { return one.Index == index })
}

// place is the place in an index to be filled in, which is added if there is none.
func (c *Inspection) place(index store.Index) *IndexMembership {
	at := c.find(index)
	if at < 0 {
		at, c.Indexes = len(c.Indexes), append(c.Indexes, IndexMembership{Index: index})
	}
	return &c.Indexes[at]
}

// Orphans picks members of an index that are no model, or not by its fields. It reads both one after the other: read what it picks again.
func (s Part) Orphans(ctx context.Context, index store.Index, uids []string) (strays []string, err error) {
	said, err := redis.ReadEach(ctx, s.store.Clients.Read, "read what models say of an index", uids, func(pipe goredis.Pipeliner, uid string) *goredis.StringCmd {
		return pipe.HGet(ctx, s.store.Keys.Model(uid), index.Field())
	})
	for i, uid := range uids {
		if err == nil && !index.Said(said[i]) {
			strays = append(strays, uid)
		}
	}
	return strays, err
}
