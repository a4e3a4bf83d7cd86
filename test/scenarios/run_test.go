package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func TestARunStartsBeforeAThousandModelsThatApplicationsWantAtOnce(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		q.redispatch(dispatcher.Config{MaxQueued: 4})
		put := func(uid, refresh string) string {
			return fmt.Sprintf(`{"type":"put","uid":%q,"rrule":"FREQ=DAILY;BYHOUR=6","refresh":%q}`, uid, refresh)
		}
		commands := []string{put("table", "planned")}
		feeds := long.Or(200, 1000)
		for i := range feeds {
			commands = append(commands, put(fmt.Sprint("feed", i), "now"))
			if i == feeds/2 {
				commands = append(commands, `{"type":"run","uid":"table"}`)
			}
		}
		q.Command(commands...)
		for len(q.List(q.Store.Keys.Control)) > 0 {
			q.poll()
			q.Clock.Turn(time.Second)
		}
		q.is("table", map[string]string{"refresh_for": "run"})

		records, err := q.Store.Load(t.Context(), []string{"table"})
		must(t, err)
		if place, err := report.Of(q.Store).QueuePosition(t.Context(), records["table"]); place.No != 1 || err != nil {
			t.Errorf("expected the first place in line, found %+v, %v", place, err)
		}
		stats, err := report.Of(q.Store).Stats(t.Context())
		oldest := instant(q.Model("feed0")["refresh_at"])
		if !stats.OldestDue.Equal(oldest) || stats.Due != int64(feeds)+1 || err != nil {
			t.Errorf("expected %d due since %s, found %d since %s, %v", feeds+1, model.FormatTime(oldest), stats.Due, model.FormatTime(stats.OldestDue), err)
		}
		q.dispatch()
		entry, _ := q.Take()
		failIf(t, entry.UID != "table", "expected the run first, found %+v", entry)
	})
}
