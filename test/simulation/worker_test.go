package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// workerRole is a worker of other people, who know two lists and JSON: it pops, looks at the fences, sends `started` or hands
// back, works, sends the end, and pushes unconfirmed messages again and again, in order.
type workerRole struct {
	*world
	name     string
	careless bool // looks at no fence, forgets attempts and says some things twice
	hand     []work
	outbox   []string
}

type work struct {
	UID        string `json:"big_table_uid"`
	AttemptUID string `json:"refresh_attempt_uid"`
	DeadlineAt string `json:"deadline_at"`
	entry      string
}

const slots = 3

func (w *workerRole) round(ctx context.Context) error {
	if err := w.push(ctx); err != nil {
		return err
	}
	if signs := w.lateSigns(); w.temper.silent && !w.calm && len(signs) > 0 { // somebody was thawed
		w.outbox = append(w.outbox, signs[w.rng.IntN(len(signs))])
	}
	if len(w.hand) < slots {
		if err := w.take(ctx); err != nil {
			return err
		}
	}
	if !w.careless && w.rng.IntN(2) == 0 {
		var err error
		if w.hand, err = w.held(ctx, w.hand); err != nil {
			return err
		}
	}
	w.hand = slices.DeleteFunc(w.hand, w.work)
	return w.push(ctx)
}

// resign hands back the work in hand.
func (w *workerRole) resign(ctx context.Context) {
	for _, in := range w.hand {
		w.say(in, "interrupted")
	}
	w.hand = nil
	_ = w.push(ctx)
}

func (w *workerRole) push(ctx context.Context) error {
	if len(w.outbox) == 0 {
		return nil
	}
	n := 1 + w.rng.IntN(len(w.outbox))
	messages := make([]any, n)
	for i, message := range w.outbox[:n] {
		messages[i] = message
	}
	if err := w.server.write.RPush(ctx, w.server.store.Keys.Output, messages...).Err(); err != nil {
		return err
	}
	w.outbox = w.outbox[n:]
	return nil
}

func (w *workerRole) take(ctx context.Context) error {
	entries, err := w.server.write.LPopCount(ctx, w.server.store.Keys.Input, slots-len(w.hand)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	var taken []work
	for _, entry := range entries {
		var in work
		if err := json.Unmarshal([]byte(entry), &in); err != nil {
			return fmt.Errorf("read entry %s: %w", entry, err)
		}
		taken = append(taken, in)
	}
	if !w.careless {
		taken, err = w.held(ctx, taken)
		for _, in := range taken {
			w.say(in, "started", w.announces(w.name)...)
		}
	}
	w.hand = append(w.hand, taken...)
	return err
}

// held returns the work that still counts; all of it when that is unknown.
func (w *workerRole) held(ctx context.Context, hand []work) ([]work, error) {
	if len(hand) == 0 {
		return nil, nil
	}
	pipe := w.server.read.Pipeline()
	fences := make([]*redis.StringCmd, len(hand))
	for i, in := range hand {
		fences[i] = pipe.HGet(ctx, w.server.store.Keys.Model(in.UID), "attempt_uid")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return hand, err
	}
	var held []work
	for i, in := range hand {
		if fences[i].Val() == in.AttemptUID {
			held = append(held, in)
		}
	}
	return held, nil
}

// progress draws what becomes of one attempt now; no kind: it goes on.
func (w *workerRole) progress(uid string) (kind model.MessageType, fields []string) {
	if rows := w.series[uid]; len(rows) > 0 {
		w.series[uid] = rows[1:]
		return model.MessageSuccess, []string{fmt.Sprintf(`"metrics":{"rows":%d}`, rows[0])}
	}
	if w.slow && w.rng.IntN(3) > 0 {
		return []model.MessageType{"", "", model.MessageStatus}[w.rng.IntN(3)], nil
	}
	if w.calm && !w.ill { // all work succeeds at once, and is not doubted, as when the simulation comes to rest
		return model.MessageSuccess, []string{`"metrics":{"rows":100}`}
	}
	if w.ill {
		return model.MessageFailure, w.pick(`"reason":"503"`, `"reason":"reset by peer"`, `"reason":"no such table"`, `"error_type":"http_404"`)
	}
	if slow := w.temper.pools || w.temper.waits; slow && w.rng.IntN(4) > 0 {
		return "", nil
	}
	if w.temper.timed && w.rng.IntN(2) == 0 {
		if w.rng.IntN(4) == 0 {
			return model.MessagePostponed, w.pick(`"retry_after":240`, `"retry_after":900`)
		}
		return model.MessageFailure, w.pick(`"retry_after":20`, `"retry_after":200`, `"retry_after":420`, `"retry_after":900`, `"reason":"503"`, `"reason":"503"`)
	}
	if w.temper.silent && w.rng.IntN(4) > 0 {
		return []model.MessageType{"", model.MessageStatus, model.MessageStarted}[w.rng.IntN(3)], nil
	}
	if w.temper.doubts && w.rng.IntN(4) > 0 {
		return model.MessageSuccess, w.rows()
	}
	if w.temper.floors && w.rng.IntN(2) == 0 {
		return model.MessageFailure, w.pick(`"retry_after":600`, `"retry_after":7200`)
	}
	if rough := w.temper.steers || w.temper.moves; rough && w.rng.IntN(3) == 0 {
		return model.MessageFailure, w.pick(`"reason":"503"`, `"reason":"503"`, `"error_type":"http_429","retry_after":20`)
	}
	switch n := w.rng.IntN(16); {
	case n < 5:
		return model.MessageSuccess, w.pick(`"changed":false`, `"changed":true`, `"x":1`)
	case n < 8:
		return model.MessageFailure, w.pick(`"reason":"503"`, `"reason":"404","retryable":false`, `"retry_after":90`, `"retry_after":7200`, `"error_type":"NotFoundError"`, `"retryable":false,"retry_after":3600`)
	case n < 9:
		return model.MessagePostponed, w.pick(`"retry_after":5`, `"retry_after":600`)
	case n < 10:
		return model.MessageInterrupted, nil
	case n < 12:
		return model.MessageStatus, nil
	default:
		return "", nil
	}
}

func (w *workerRole) pick(texts ...string) []string { return []string{texts[w.rng.IntN(len(texts))]} }

// work does a step of work on one attempt; true: it has ended.
func (w *workerRole) work(in work) bool {
	kind, fields := w.progress(in.UID)
	switch kind {
	case "":
		return w.careless && w.rng.IntN(6) == 0 // forgotten
	case model.MessageStarted:
		fields = w.announces(w.name)
	case model.MessageStatus:
		if w.temper.silent && w.rng.IntN(2) == 0 {
			break
		}
		fields = []string{fmt.Sprintf(`"status":%q,"progress":%d`, in.AttemptUID, w.rng.IntN(101))}
	}
	w.say(in, kind, fields...)
	return kind != model.MessageStatus && kind != model.MessageStarted
}

func (w *workerRole) message(in work, kind model.MessageType, fields ...string) string {
	name := "refresh_attempt_uid"
	if w.careless && w.rng.IntN(2) == 0 {
		name = "request_attempt_uid"
	}
	text := fmt.Sprintf(`{"type":%q,"big_table_uid":%q,%q:%q`, kind, in.UID, name, in.AttemptUID)
	for _, field := range fields {
		text += "," + field
	}
	return text + "}"
}

func (w *workerRole) say(in work, kind model.MessageType, fields ...string) {
	text := w.message(in, kind, fields...)
	w.outbox = append(w.outbox, text)
	if w.careless && w.rng.IntN(4) == 0 {
		w.outbox = append(w.outbox, text)
	}
}
