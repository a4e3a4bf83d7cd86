package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestAWorkerAsksBeforeItPublishesAndWhatIsHeldIsPublishedOnceSomebodyAcceptsIt(t *testing.T) {
	t.Parallel()
	withEachPlace(t, askBeforePublishing)
	t.Run("with users", func(t *testing.T) {
		long.Only(t)
		users := fixture.WithUsers(t, store.DefaultQueue)
		t.Cleanup(func() { users.ExpectNoRefusal(t) })
		askBeforePublishing(t, setup(t, place{server: users.Server}, users))
	})
}

// askBeforePublishing is the story of one model, by a worker that knows redis-cli alone.
func askBeforePublishing(t *testing.T, o *outside) {
	t.Helper()
	take := func(list string) (taken say) {
		_, raw, _ := strings.Cut(o.redisCLI(o.as(acl.ForeignWorker), "BLPOP", list, "30"), "\n")
		err := json.Unmarshal([]byte(raw), &taken)
		stopIf(t, err != nil, "%s: %q: %v", list, raw, err)
		return taken
	}
	attempt := func(run func(tell func(say), ask func(rows int) say)) {
		queue := o.queueOf("tbl")
		entry := take(queue + "-input")
		tell := func(fields say) {
			fields["big_table_uid"], fields["refresh_attempt_uid"] = "tbl", entry["refresh_attempt_uid"]
			o.say(o.json(fields))
		}
		run(tell, func(rows int) say {
			tell(say{"type": "ready", "metrics": say{"rows": rows}, "reply_to": queue + ":reply:w1"})
			answer := take(queue + ":reply:w1")
			failIf(t, answer["refresh_attempt_uid"] != entry["refresh_attempt_uid"] || answer["big_table_uid"] != "tbl", "a reply about another attempt: %v", answer)
			return answer
		})
	}
	o.command(say{"type": "put", "uid": "tbl", "payload": say{}, "policy": say{"timeout": "1h", "guard": []say{{"rows": say{"min": 1}}}, "on_suspect": "hold"}})
	attempt(func(tell func(say), ask func(int) say) {
		answer := ask(0)
		failIf(t, answer["verdict"] != "hold" || answer["reason"] != "rows 0: expected at least 1", "no rows: %v", answer)
		tell(say{"type": "success", "metrics": say{"rows": 0}, "published": false})
	})
	held := o.await("bigtables:model:tbl", "unpublished", "1")
	failIf(t, held["parked_by"] != "suspect:guard" || held["last_success_at"] != "", "held: %v", held)
	o.command(say{"type": "accept", "uid": "tbl"})
	attempt(func(tell func(say), ask func(int) say) {
		answer := ask(0)
		failIf(t, answer["verdict"] != "publish", "accepted: %v", answer)
		tell(say{"type": "success", "metrics": say{"rows": 0}})
	})
	done := o.await("bigtables:model:tbl", "last_success_at", "*")
	failIf(t, done["unpublished"] != "" || done["attempt_no"] != "", "published: %v", done)
	o.count(map[string]string{"start": "2", "suspect": "1", "accept": "1", "success": "1", "status": "2"})
}
