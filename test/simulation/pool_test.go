package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// poolRole plays worker.Pool: it takes into a list of its own, looks at the fences, sends `started` or hands back, works, answers,
// and sends heartbeats. The parts of a round come in any order, as the goroutines of a
// pool do, but one after the other.
type poolRole struct {
	play  *workerRole    // what becomes of the work
	owner string         // under which entries are taken now
	known bool           // Redis has heard of owner
	doubt bool           // a reply was lost
	held  []string       // entries in the taken list for all that the pool knows
	hand  []work         // what of them is worked on
	away  []store.Answer // what Redis does not surely have
	from  []string       // under which owner each of them was taken
}

func (p *poolRole) round(ctx context.Context) error {
	parts := []func(context.Context) error{p.take, p.beat, p.watch, p.answer}
	p.play.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	p.work()
	return p.answer(ctx)
}

// resign hands back the work in hand, and leaves.
func (p *poolRole) resign(ctx context.Context) {
	for _, in := range p.hand {
		p.end(in, "interrupted")
	}
	p.hand = nil
	if p.answer(ctx) == nil && p.known {
		_, _ = p.play.queue.Leave(ctx, p.owner)
	}
}

func (p *poolRole) take(ctx context.Context) error {
	free := slots - len(p.hand)
	if free == 0 {
		return nil
	}
	taking := store.TakeRequest{Owner: p.owner, New: !p.known, Most: free, Known: len(p.held)}
	if p.doubt {
		taking.Known = -1
	}
	taken, err := p.play.queue.Take(ctx, taking)
	if err != nil {
		p.doubt = true
		return err
	}
	if taken.Forgotten {
		return p.forgotten(ctx)
	}
	p.known, p.doubt = true, false
	var fresh []string // entries that are new, at most as many as there is room for
	for _, entry := range taken.Entries {
		if old := taken.Whole && slices.Contains(p.held, entry); !old && len(fresh) < free {
			fresh = append(fresh, entry)
		}
	}
	p.held = append(p.held, fresh...)
	return p.admit(ctx, fresh, taken.Now)
}

// admit drops what has been superseded in line and hands back what came too late.
func (p *poolRole) admit(ctx context.Context, entries []string, now time.Time) error {
	if len(entries) == 0 {
		return nil
	}
	fresh, uids := make([]work, len(entries)), make([]string, len(entries))
	for i, entry := range entries {
		if err := json.Unmarshal([]byte(entry), &fresh[i]); err != nil {
			return fmt.Errorf("read entry %s: %w", entry, err)
		}
		fresh[i].entry, uids[i] = entry, fresh[i].UID
	}
	fences, at, err := p.play.queue.Fences(ctx, uids)
	for i, in := range fresh {
		deadline := instant(in.DeadlineAt)
		stale := false
		if err == nil && fences[i].Err == nil {
			now, deadline, stale = at, fences[i].DeadlineAt, fences[i].AttemptUID != in.AttemptUID
		}
		switch {
		case stale:
			p.end(in, "")
		case !deadline.After(now):
			p.end(in, "interrupted")
		default:
			p.say(store.Answer{Message: p.play.message(in, "started", p.play.announces(p.owner)...)})
			p.hand = append(p.hand, in)
		}
	}
	return nil
}

// watch drops work that no longer counts.
func (p *poolRole) watch(ctx context.Context) error {
	if len(p.hand) == 0 {
		return nil
	}
	uids := make([]string, len(p.hand))
	for i, in := range p.hand {
		uids[i] = in.UID
	}
	fences, now, err := p.play.queue.Fences(ctx, uids)
	if err != nil {
		return err
	}
	var kept []work
	for i, in := range p.hand {
		if fences[i].AttemptUID == in.AttemptUID && fences[i].DeadlineAt.After(now) {
			kept = append(kept, in)
		} else {
			p.end(in, "")
		}
	}
	p.hand = kept
	return nil
}

func (p *poolRole) work() {
	p.hand = slices.DeleteFunc(p.hand, func(in work) bool {
		kind, fields := p.play.progress(in.UID)
		switch kind {
		case "":
			return false
		case model.MessageStarted:
			p.say(store.Answer{Message: p.play.message(in, kind, p.play.announces(p.owner)...)})
			return false
		case model.MessageStatus:
			p.say(store.Answer{Message: p.play.message(in, kind, fmt.Sprintf(`"status":%q`, in.AttemptUID))})
			return false
		}
		p.end(in, kind, fields...)
		return true
	})
}

// end is the last message about an entry; no kind: there is none.
func (p *poolRole) end(in work, kind model.MessageType, fields ...string) {
	answer := store.Answer{Ends: true, Entry: in.entry}
	if kind != "" {
		answer.Message = p.play.message(in, kind, fields...)
	}
	p.say(answer)
}

func (p *poolRole) say(answer store.Answer) {
	p.away, p.from = append(p.away, answer), append(p.from, p.owner)
}

// answer pushes messages of one owner.
func (p *poolRole) answer(ctx context.Context) error {
	for len(p.away) > 0 {
		n := 1 + p.play.rng.IntN(len(p.away))
		if other := slices.IndexFunc(p.from[:n], func(owner string) bool { return owner != p.from[0] }); other > 0 {
			n = other
		}
		if _, err := p.play.queue.Answer(ctx, p.from[0], p.away[:n]); err != nil {
			return err
		}
		for i, answer := range p.away[:n] {
			if at := slices.Index(p.held, answer.Entry); answer.Ends && p.from[i] == p.owner && at >= 0 {
				p.held = slices.Delete(p.held, at, at+1)
			}
		}
		p.away, p.from = p.away[n:], p.from[n:]
	}
	return nil
}

// beat sends a heartbeat.
func (p *poolRole) beat(ctx context.Context) error {
	if !p.known {
		return nil
	}
	taken, err := p.play.queue.Heartbeat(ctx, p.owner)
	if err == nil && taken.Forgotten {
		return p.forgotten(ctx)
	}
	return err
}

// forgotten goes on under another name; everything in hand is in the hands of others.
func (p *poolRole) forgotten(ctx context.Context) error {
	old := p.owner
	p.owner, p.known, p.doubt, p.held, p.hand = p.play.newPool(), false, false, nil, nil
	_, err := p.play.queue.Leave(ctx, old)
	return err
}
