package dashboard

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestTheAuditShowsWhoDidWhatAndFromWhere(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		d.put(failingModel)
		d.press(home+"hold/put", "id", "h1", "selector", "uid=a", "reason", "deploy <now>")
		d.press(home+"hold/release", "id", "h1")
		d.press(home+"model/disable", "uid", "a", "reason", "gone")
		d.Command(`{"type":"enable","uid":"a","by":"bob"}`)
		d.apply()
		equal(t, []string{
			"bob model enable a (1 changed)from control list", "ann model disable a (1 changed): gonefrom dashboard 127.0.0.1",
			"ann release h1 uid=aheld by ann: deploy &lt;now&gt; → releasedfrom dashboard 127.0.0.1", "ann hold h1 uid=a: deploy &lt;now&gt;nothing → selector uid=afrom dashboard 127.0.0.1",
		}, d.rows(home+"audit"))
		equal(t, []string{"ann release h1 uid=aheld by ann: deploy &lt;now&gt; → releasedfrom dashboard 127.0.0.1"}, d.rows(home+"audit?about=release&by=ANN&since=1h"))
		status, page := d.status(home + "audit?before=x")
		failIf(t, status != 400, "got %d, want 400", status)
		expect(t, page, "expected a position")
	})
}

func TestAnOpenAuditShowsWhatIsDoneMeanwhile(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := liveFleet(t, Config{By: "ann"})
	tab := browser.Open(t)
	tab.Go(f.url("audit"))
	tab.AwaitText("Nobody did anything such within 90 days.")
	f.Command(`{"type":"disable","uid":"tbl_1","by":"bob","reason":"has not paid"}`)
	f.Clock.Turn(time.Second)
	tab.AwaitText("bob model disable tbl_1 (1 changed): has not paid")
}
