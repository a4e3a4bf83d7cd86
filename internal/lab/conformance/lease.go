package conformance

import (
	"context"
	"syscall"

	"github.com/refreshd/refreshd/model"
)

// owners are the names of the workers that give heartbeats: what these have in hand is requeued when they are silent.
func (s *stage) owners(ctx context.Context) (owners []string) {
	beats, _, err := s.queue.Parts[0].Report().Heartbeats(ctx)
	s.fail(err)
	for _, beat := range beats {
		if beat.Of == model.RoleWorker {
			owners = append(owners, beat.Owner)
		}
	}
	return owners
}

// unspent checks the attempt of a silent worker: it goes on under its uid, as if it had just been taken.
func (s *stage) unspent(ctx context.Context) {
	s.must("its attempt comes back within the lease", s.until(ctx, "a", model.EventSuccess), silence)
	begun, done := s.first(model.EventStart), s.first(model.EventSuccess)
	s.must("under the same uid, and not counted again", begun.AttemptUID == done.AttemptUID && s.times("a", model.EventStart) == 1, "another attempt")
}

// playKilled kills the worker in the middle of its work, as a machine that has no memory left does.
func playKilled(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": 1_000})
	s.inHand(ctx, "a")
	if len(s.owners(ctx)) == 0 {
		s.should("a killed worker costs seconds", false, "no heartbeats: its attempt waits for the deadline")
		return
	}
	s.worker.kill()
	s.startWorker(ctx)
	s.unspent(ctx)
}

// playSilent lets a worker that announces signs of life work for a while, and hang then.
func playSilent(ctx context.Context, s *stage) {
	policy := map[string]any{"timeout": "1h", "silent_after": "10m", "retries": []any{}, "on_exhausted": "give_up"}
	s.putUnder(ctx, "a", work{"do": "succeed", "after_ms": lease.Milliseconds()}, policy)
	if s.until(ctx, "a", model.EventStarted, model.EventSuccess); s.get(ctx, "a").SilentAfter == 0 {
		s.should("a worker that hangs costs seconds", false, "no signs_every in started: its attempt waits for the deadline")
		return
	}
	done := s.until(ctx, "a", model.EventSuccess)
	s.must("gives signs of life while it works", done && s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageStatus) > 0, "none")
	policy["silent_after"] = lease.String()
	s.putUnder(ctx, "b", work{"do": "hang"}, policy)
	s.must("gives none when it hangs", s.until(ctx, "b", model.EventTimeout) && s.first(model.EventTimeout).ErrorType == "silent", "it seems to live")
}

// playThawed stops the worker until another one has its attempt, and lets it go on then.
func playThawed(ctx context.Context, s *stage) {
	s.put(ctx, "a", work{"do": "succeed", "after_ms": 1_000})
	s.inHand(ctx, "a")
	if len(s.owners(ctx)) == 0 {
		return // as in the scenario before
	}
	s.until(ctx, "a", model.EventStarted) // else it would say so later
	first := s.worker
	defer first.kill()
	first.signal(syscall.SIGSTOP)
	s.startWorker(ctx)
	s.unspent(ctx)
	if s.err != nil {
		return
	}
	s.worker.end(ctx, s.config.Patience)
	s.worker = first
	told := func() int64 { // a sign of life is no answer
		signs := s.proxy.heard(s.first(model.EventStart).AttemptUID, model.MessageStatus)
		return s.counter(ctx, string(model.Stale), string(model.Duplicate)) - int64(signs)
	}
	before := told()
	first.signal(syscall.SIGCONT)
	s.must("a worker that was stopped for longer goes on", s.succeeds(ctx, "b", succeed), silence)
	s.must("and answers nothing for what others have", told() <= before, "a result")
}
