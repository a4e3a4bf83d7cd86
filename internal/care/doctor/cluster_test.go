package doctor

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAQueueInAClusterIsCheckedAndRepaired(t *testing.T) {
	t.Parallel()
	q := &queue{fixture.New(t, testkit.Cluster(t)), t}
	q.prepare()
	k := q.Store.Keys
	q.ok(q.Redis.ZRem(t.Context(), k.Due, "idle").Err())
	q.ok(q.Redis.Set(t.Context(), k.Payload("ghost"), "{}", 0).Err())
	q.ok(q.Redis.RPush(t.Context(), k.Input, `{"big_table_uid":"busy","refresh_attempt_uid":"old"}`).Err())
	if report := q.check(Options{Repair: true}); report.Models != 3 || report.Repaired() != 3 || len(report.Counts) != 3 {
		t.Errorf("expected three repaired, found\n%s", report)
	}
	healthy(t, q.check(Options{}))
}
