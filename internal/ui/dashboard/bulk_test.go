package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// fillTenants saves models of two tenants, each with a schedule.
func fillTenants(d *visitor, prefix string, many int) {
	for n := range many {
		d.put(fmt.Sprintf(`"uid":"%s%02d","rrule":"every day at 6 AM","labels":{"tenant":"t%d"}`, prefix, n, n%2))
	}
}

func TestAllModelsOfAFilterAreChangedOnceTheirNumberIsConfirmed(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		fillTenants(d, "m", 40)
		const page = "models/all?l=tenant%3Dt1&do="
		expect(t, d.page(home+"models?l=t1"), `href="/q/bigtables/models/all?do=disable&amp;l=tenant%3Dt1"`)
		expect(t, d.page(home+page+"disable"), "20 models with", "Type 20", "and others")
		expect(t, d.submit(page+"disable", "models/all", "number", "21", "reason", "gone"), `role="alert">number: expected 20`, "Type 20")
		expect(t, d.submit(page+"disable", "models/all", "number", "20", "reason", "gone"), "<h1>Steering</h1>", "the bulk disable-", "disable tenant=t1")
		d.apply()
		for range 3 {
			_, err := d.poller.RunOnce(t.Context())
			must(t, err)
		}
		failIf(t, d.Stats()["disable"] != 20, "expected 20 models disabled, found %v", d.Stats())
		failIf(t, d.Model("m01")["refresh_disabled_user_friendly_reason"] != "gone", "expected the reason, found %v", d.Model("m01"))
		expect(t, d.submit(page+"enable", "models/all", "number", "20"), "the bulk enable-")
		expect(t, d.submit(page+"run", "models/all", "number", "20", "rate", "1/s"), "the bulk run-", "at most 1/s")
		expect(t, d.submit(page+"hold", "models/all", "number", "20", "reason", "moves", "for", "2h"), "keeps tenant=t1 from starting", "<h1>Steering</h1>")
		expect(t, d.submit("models/all?do=hold", "models/all", "number", "40", "reason", "all of it"), "keeps all models from starting")
	})
}

func TestAFilterThatShowsManyMoreModelsThanConfirmedIsRefused(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	fillTenants(d, "m", 20)
	confirmed := []string{"l", "uid=m*", "do", "disable", "counted", "20", "number", "20", "reason", "x"}
	fillTenants(d, "mm", 3)
	expect(t, d.press(home+"models/all", confirmed...), `role="alert">the filter shows 23 models now, and you confirmed 20. Nothing was done`)
	d.Command(`{"type":"remove","uid":"mm00"}`)
	d.apply()
	expect(t, d.press(home+"models/all", confirmed...), "the bulk disable-")
	for _, do := range []string{"remove", "", "cancel"} {
		expect(t, d.press(home+"models/all", "l", "", "do", do, "counted", "22", "number", "22"), `role="alert">do: expected run, enable, disable`)
	}
}

func TestWhoOnlyLooksIsOfferedNothingForManyModels(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.ReadOnly = true })
	fillTenants(d, "m", 2)
	expectNone(t, d.page(home+"models"), "models/all")
	status, text := d.status(home + "models/all?do=run") // nor may they let it count
	failIf(t, status != 403 || strings.Contains(text, `action="/q/bigtables/models/all"`), "expected 403 and no action, found %d\n%s", status, text)
}
