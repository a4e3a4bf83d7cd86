package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestAQueueOfSeveralPartsIsShownAsOne(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		q := fixture.New(t, server)
		clients := &redis.Clients{Read: q.Redis, Write: q.Redis, Block: q.Redis}
		must(t, store.Create(t.Context(), clients, store.Config{Queue: "{bigtables}"}, 3))
		d := sitAt(t, q, "{bigtables}", q.Redis, nil)
		queue := d.dashboard.sites.list[0].queue
		var models strings.Builder
		for n := range 60 {
			fmt.Fprintf(&models, "{uid: m%02d, rrule: every day at 6 AM}\n---\n", n)
		}
		put(t, queue, models.String())
		const base = "/q/%7Bbigtables%7D/"
		expect(t, d.page(base), "<dt>waiting</dt><dd>60")
		for _, order := range []string{"", "?sort=due"} {
			all := slices.Concat(d.walk(base + "models" + order)...)
			slices.Sort(all)
			failIf(t, len(slices.Compact(all)) != 60, "expected each model once, found %d", len(all))
		}
		version := func() string { return check.Got(report.OfQueue(queue).Version(t.Context()))(t) }
		before := version()
		for _, uid := range []string{"m00", "m01", "m02", "m03"} {
			expect(t, d.press(base+"model/disable", "uid", uid), uid+" is disabled until somebody enables it.")
			after := version()
			failIf(t, after == before, "expected a change in any part seen, found\n%s", after)
			before = after
		}
	})
}

// put saves models of YAML or JSON lines, at most operate.BatchSize of them.
func put(t *testing.T, queue *store.Queue, models string) {
	t.Helper()
	var requests []*operate.Request
	err := definitions.ReadModels("-", strings.NewReader(models), definitions.FormatAuto, func(m definitions.Model) error {
		requests = append(requests, &operate.Request{Command: model.Command{Type: model.CommandPut, UID: m.Definition.UID, Definition: m.Definition}})
		return m.Err
	})
	if err == nil {
		err = operate.Execute(t.Context(), queue, requests)
	}
	must(t, err)
}
