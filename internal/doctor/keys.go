package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/refreshd/refreshd/scripts"
)

// queueKeys checks the types of the keys that a queue has one of. With a wrong one scripts refuse to write, so nothing is mended then.
func (e *examination) queueKeys(ctx context.Context) error {
	k := e.store.Keys
	wants := map[string]string{
		k.Input(): "list", k.Output(): "list", k.Control(): "list", k.Due(): "zset", k.Running(): "zset", k.Policies(): "hash",
		k.Pollers(): "zset", k.Workers(): "zset", k.Journal(): "stream", k.Outbox(): "stream", k.Rejected(): "list",
		k.Stats(): "hash", k.Brake(): "hash", k.Wake(): "list",
	}
	names := slices.Sorted(maps.Keys(wants))
	types, err := e.store.Types(ctx, names)
	if err != nil {
		return err
	}
	for i, name := range names {
		if types[i] == "none" || types[i] == wants[name] {
			continue
		}
		e.types[name], e.broken = types[i], true
		e.note(Finding{Error, "key-type", name, "a " + wants[name], "a " + types[i], "by hand: RENAME " + name + " to another name, and then --repair", false})
	}
	return nil
}

// readable reports whether a key of the queue has its type.
func (e *examination) readable(key string) bool { return e.types[key] == "" }

// manyKeys walks once over all keys of the queue.
func (e *examination) manyKeys(ctx context.Context) error {
	return e.store.EachKey(ctx, func(keys []scripts.QueueKey) error {
		byKind := make(map[scripts.KeyKind][]string)
		for _, key := range keys {
			byKind[key.Kind] = append(byKind[key.Kind], key.Name)
		}
		for kind, check := range map[scripts.KeyKind]func(context.Context, []string) error{
			scripts.KeyModel: e.models, scripts.KeyPayload: e.orphans("payload-orphan"), scripts.KeyHistory: e.orphans("history-orphan"),
			scripts.KeyClaimed: e.claimed, scripts.KeyTaken: e.taken,
		} {
			if len(byKind[kind]) == 0 {
				continue
			}
			if err := check(ctx, byKind[kind]); err != nil {
				return err
			}
		}
		e.look(len(keys))
		return nil
	})
}
