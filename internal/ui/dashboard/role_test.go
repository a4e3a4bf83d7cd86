package dashboard

import (
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAViewerSeesAllPagesAndIsToldInWordsWhatRedisRefuses(t *testing.T) {
	users := fixture.WithUsers(t, "bigtables")
	d := sitAt(t, fixture.New(t, users.Server), "", users.Client(t, acl.Viewer), nil)
	d.put(failingModel)
	d.start()
	d.answer("failure", "a", `"reason":"503"`)
	users.Forgive(t)
	for _, path := range []string{"", "models", "models?sort=due", "models?sort=failing", "models?l=tenant%3Dt1", "models?l=t1", "models/all?do=run", "journal", "audit", "running", "model?uid=a", "model/past.svg?uid=a", "model/next.svg?uid=a", "?period=90d", "plan"} {
		d.page(home + path)
	}
	d.planned()
	expect(t, d.page(home+"plan"), "Computed at")
	must(t, check.Only(report.OfQueue(d.queue).Version(t.Context())))
	users.ExpectNoRefusal(t)
	for _, action := range []string{"run", "disable", "hold"} {
		expect(t, d.press(home+"model/"+action, "uid", "a", "reason", "x"), `role="alert">Redis refused it`, "may not do this. Ask who runs it for a user of the role operator.")
	}
}

func TestAnOperatorMayDoAllThatTheDashboardOffers(t *testing.T) {
	users := fixture.WithUsers(t, "bigtables")
	d := sitAt(t, fixture.New(t, users.Server), "", users.Client(t, acl.Operator), nil)
	d.put(failingModel)
	users.Forgive(t)
	for _, action := range []string{"disable", "enable", "hold", "run", "accept", "reject"} {
		expectNone(t, d.press(home+"model/"+action, "uid", "a", "reason", "x"), "Redis refused it")
	}
	users.ExpectNoRefusal(t)
}

func TestWithoutRedisThePageSaysSo(t *testing.T) {
	server := testkit.Redis(t)
	d := sit(t, server, nil)
	server.Kill(t)
	status, page := d.status(home)
	failIf(t, status != 503, "expected 503, found %d", status)
	expect(t, page, "<h1>Overview</h1>", `role="alert"`, "Try again")
}
