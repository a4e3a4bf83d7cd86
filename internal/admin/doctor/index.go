package doctor

import (
	"context"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
)

func indexWrong(of store.KeyKind) kind {
	return kind{string(of) + "-wrong", Error, "in ", repairSets}
}

func (c *checker) index(kind store.KeyKind) func(context.Context, []string) error {
	return each(func(ctx context.Context, name string) error {
		return c.members(ctx, store.Index{Kind: kind, Name: name})
	})
}

func each[T any](check func(context.Context, T) error) func(context.Context, []T) error {
	return func(ctx context.Context, all []T) error {
		for _, one := range all {
			if err := check(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
}

// typed picks the names whose keys have the wanted type, or are gone, and reports the others.
func (c *checker) typed(ctx context.Context, key func(name string) string, want string, names []string) (fit []string, err error) {
	keys := redis.Map(names, key)
	types, err := c.store.Report().Types(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, is := range types {
		switch {
		case is == want, is == "none":
			fit = append(fit, names[i])
		case !c.wrongType[keys[i]]: // a walk may come by twice
			c.wrongType[keys[i]] = true
			c.note(keyType.wanting(want), keys[i], "a "+is)
		}
	}
	return fit, nil
}

// members checks that each member of an index is a model whose fields put it there.
func (c *checker) members(ctx context.Context, index store.Index) error {
	key := c.store.Keys.Index(index)
	check := func(m *inspect.Inspection) []Finding {
		membership := m.Stands(index)
		switch {
		case membership.Says || !membership.Is.In || m.Record.Broken || m.Field != "":
			return nil
		case !m.Record.Exists:
			return []Finding{indexOrphan.at(m.Record.UID, "none, but a place in "+key)}
		default:
			f := indexWrong(index.Kind).at(m.Record.UID, "it stands there")
			f.Want = "not in " + key
			return []Finding{f}
		}
	}
	return c.eachPicked(ctx, key, index.Scored(), func(ctx context.Context, uids []string) ([]string, error) {
		return c.in.Orphans(ctx, index, uids)
	}, func(ctx context.Context, misplaced []string) error { return c.reread(ctx, misplaced, check, index) })
}
