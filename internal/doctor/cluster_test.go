package doctor

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAQueueInAClusterIsExaminedAndMended(t *testing.T) {
	t.Parallel()
	w := &ward{fixture.New(t, testkit.Cluster(t)), t}
	w.prepare()
	k := w.Store.Keys
	w.ok(w.Redis.ZRem(t.Context(), k.Due(), "idle").Err())
	w.ok(w.Redis.Set(t.Context(), k.Payload("ghost"), "{}", 0).Err())
	w.ok(w.Redis.RPush(t.Context(), k.Input(), `{"big_table_uid":"busy","refresh_attempt_uid":"old"}`).Err())
	if report := w.examine(Options{Repair: true}); report.Models != 3 || report.Mended() != 3 || len(report.Counts) != 3 {
		t.Errorf("expected three mended, found\n%s", report)
	}
	if report := w.examine(Options{}); len(report.Counts) > 0 {
		t.Errorf("expected a healthy queue, found\n%s", report)
	}
}
