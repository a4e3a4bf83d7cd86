package worker

import (
	"context"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
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
		failIf(t, testkit.Await(t, published, "the published attempt") != "publish" || len(published) > 0, "another one was published")
		testkit.Eventually(t, "each entry leaves the taken list", func() bool {
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
