package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestAHandlerThatAsksPublishesOnlyAfterThatVerdictAndEndsAsItSays(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		published := make(chan string, 1)
		run(t, r, quick(), func(ctx context.Context, attempt *Attempt) error {
			attempt.Metric("rows", 40)
			if err := attempt.Ready(ctx); err != nil {
				return err
			}
			published <- attempt.UID
			return nil
		})
		for _, verdict := range []model.Verdict{model.VerdictStale, model.VerdictHold, model.VerdictFail, model.VerdictPublish} {
			uid := string(verdict)
			r.offer(uid)
			started, asked := r.told(), r.told()
			name, err := r.ReplyName(asked.ReplyTo)
			must(t, err)
			failIf(t, started.Type != model.MessageStarted || asked.Type != model.MessageReady || asked.UID != uid || asked.Metrics["rows"] != 40 || len(name) < 20, "%+v", asked)
			r.must(r.redis.RPush(t.Context(), asked.ReplyTo, asked.Reply(model.Wire{}, verdict, "rows 40")).Err())
			if verdict == model.VerdictStale {
				continue
			}
			ended := r.told()
			failIf(t, ended.Type != model.MessageSuccess || ended.UID != uid || ended.Unpublished != (verdict != model.VerdictPublish) || ended.Metrics["rows"] != 40, "%s: %+v", verdict, ended)
		}
		failIf(t, check.Await(t, published, "the published attempt") != "publish" || len(published) > 0, "another one was published")
		check.Eventually(t, "each entry leaves the taken list", func() bool {
			return len(r.redis.Keys(t.Context(), "bigtables:taken:*").Val()) == 0
		})
	})
}

func TestAHandlerThatNobodyAnswersIsHandedBackWhenThePoolStopsWhateverItsContext(t *testing.T) {
	onQueue(t, func(t *testing.T, r *queueFixture, _ *bench) {
		config := quick()
		config.Grace = -1
		pool := run(t, r, config, func(ctx context.Context, attempt *Attempt) error { return attempt.Ready(context.WithoutCancel(ctx)) })
		r.offer("a")
		r.toldOf(model.MessageReady)
		must(t, pool.stop())
		r.toldOf(model.MessageInterrupted)
	})
}

// TestAFenceThatAHandlerFoundLostByItselfIsAFailure: only Redis, by a verdict or a look at the model, knows that nobody waits for an answer.
func TestAFenceThatAHandlerFoundLostByItselfIsAFailure(t *testing.T) {
	told, err := Try(t.Context(), func(context.Context, *Attempt) error { return ErrFenceLost }, &Attempt{UID: "a", AttemptUID: "a1"})
	must(t, err)
	failIf(t, len(told) != 1 || told[0].Type != model.MessageFailure, "%+v", told)
}

func TestEachQuestionOfAnAttemptIsAskedAndNoneTwiceAtATime(t *testing.T) {
	config := Config{}.WithDefaults()
	s := newSender(nil, newTakenList("w"), &config)
	for _, list := range []string{"first", "second", "first"} {
		s.add(message{Type: model.MessageReady, AttemptUID: "a1", ReplyTo: list})
	}
	failIf(t, len(s.waiting) != 2 || s.waiting[0].ReplyTo != "first" || s.waiting[1].ReplyTo != "second", "%+v", s.waiting)
}

// replies answers each look for a reply by its number, from 1.
type replies struct {
	nopQueue
	asked int
	reply func(asked int) (string, error)
}

func (r *replies) ReplyList(name string) string { return name }

func (r *replies) TakeReply(context.Context, string) (string, error) {
	r.asked++
	return r.reply(r.asked)
}

func TestAQuestionIsRepeatedUntilSomebodyAnswersButNotWhereItIsForbidden(t *testing.T) {
	config, questions := Config{}.WithDefaults(), 0
	queue := &replies{}
	s := &session{Pool: &Pool{config: config}, queue: queue, sender: newSender(queue, newTakenList("w"), &config)}
	e := &execution{Attempt: &Attempt{}, ctx: t.Context()}
	queue.reply = func(asked int) (string, error) {
		questions += s.sender.len()
		s.sender.waiting = nil // pushed
		if asked <= 2*askAgain {
			return "", nil
		}
		return `{"verdict":"hold","reason":"rows 3"}`, nil
	}
	told, err := s.ask(t.Context(), e, message{Type: model.MessageReady})
	failIf(t, err != nil || told != (reply{model.VerdictHold, "rows 3"}) || questions != 3, "%+v, %v after %d questions", told, err, questions)

	queue.asked, queue.reply = 0, func(int) (string, error) {
		return "", errors.New("NOPERM this user has no permissions to access one of the keys")
	}
	_, err = s.ask(t.Context(), e, message{Type: model.MessageReady})
	failIf(t, err == nil || queue.asked != 1, "%v after %d looks", err, queue.asked)
}

func TestWhoCannotAskForAVerdictRestsBeforeTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{}.WithDefaults()
		queue := &replies{reply: func(asked int) (string, error) {
			if asked <= 5 {
				return "", errors.New("LOADING Redis is loading the dataset in memory")
			}
			return `{"verdict":"publish"}`, nil
		}}
		s := &session{Pool: &Pool{config: config}, queue: queue, sender: newSender(queue, newTakenList("w"), &config)}
		began := time.Now()
		_, err := s.ask(t.Context(), &execution{Attempt: &Attempt{}, ctx: t.Context()}, message{Type: model.MessageReady})
		failIf(t, err != nil || time.Since(began) < 5*10*time.Millisecond, "want a rest behind each of five errors, got %v within %s", err, time.Since(began))
	})
}
