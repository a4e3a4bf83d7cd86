package dashboard

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

const demoPolicies = `name: hourly-feeds
rrule: FREQ=HOURLY
timezone: Europe/Berlin
spread: 20m
timeout: 10m
retries: [1m, 5m, 10m]
on_exhausted: next_planned
never_retry: [http_404]
fresh_within: 3h
warn_within: 90m
limits:
  - {key: "{host(input_url)}", running: 4}
circuit: {key: "{host(input_url)}", open_after: 5 of 10, on: [network, http_5xx, timeout], probe: 10m}
---
name: price-lists
rrule: FREQ=MINUTELY;INTERVAL=30
timezone: Europe/Berlin
spread: 15m
timeout: 5m
retries: [30s, 2m]
alignment: until_success
fresh_within: 2h
---
name: nightly-import
rrule: FREQ=DAILY;BYHOUR=2
timezone: Europe/Berlin
timeout: 2h
retries: [0, 15m, 30m]
give_up_after: 7d
`

// demo fills the queue with a fleet that has worked for a morning: most of it is well, one host is down, some tables are gone.
func (f *fleet) demo() {
	f.t.Helper()
	f.policies(demoPolicies)
	tenants := []string{"acme", "globex", "initech", "hooli", "umbrella", "stark"}
	tables := []string{"products-de", "products-en", "products-fr", "stock", "prices", "orders", "customers", "images"}
	for _, tenant := range tenants {
		for i, table := range tables {
			of := cmp.Or(map[string]string{"prices": "price-lists", "stock": "price-lists", "customers": "nightly-import"}[table], "hourly-feeds")
			f.Command(fmt.Sprintf(`{"type":"put","uid":"%[1]s/%[2]s","labels":{"tenant":%[1]q,"kind":%[3]q},"policy":%[4]q,"payload":{"input_url":"https://feeds%[5]d.%[1]s.example/%[2]s.csv","owner_email":"data@%[1]s.example"}}`,
				tenant, table, strings.SplitN(table, "-", 2)[0], of, 1+i%2))
		}
	}
	f.work()
	minute := 0
	answer := func(entry fixture.Entry) (string, []string) {
		tenant, table, _ := strings.Cut(entry.UID, "/")
		switch url := "https://feeds.example/" + entry.UID; {
		case tenant == "umbrella" && minute > 300 && table != "customers":
			return "failure", []string{`"error_type":"http_503"`, fmt.Sprintf(`"reason":"GET %s.csv: 503 Service Unavailable"`, url)}
		case entry.UID == "hooli/images" && minute > 250:
			return "failure", []string{`"error_type":"http_404"`, `"retryable":false`, fmt.Sprintf(`"reason":"GET %s.csv: 404 Not Found"`, url), `"user_friendly_reason":"Your table is not there any more. Please check its address."`}
		case tenant == "initech" && strings.HasPrefix(table, "products") && minute > 270:
			return "failure", []string{`"error_type":"ValidationError"`, `"reason":"line 4812: expected 14 columns, found 13"`}
		case entry.UID == "stark/orders" && minute > 280:
			return "", nil
		case (minute+len(entry.UID))%17 == 0:
			return "failure", []string{`"error_type":"network"`, fmt.Sprintf(`"reason":"dial tcp 10.0.%d.7:443: connection timed out"`, minute%5)}
		}
		return "success", nil
	}
	for ; minute < 360; minute += 3 {
		if minute == 330 {
			f.steer()
		}
		f.turn(3*time.Minute, answer)
	}
	f.planned()
	f.take(pool1, 0)
	f.take(pool2, 0)
}

func (f *fleet) steer() {
	f.t.Helper()
	now, ctx := f.Clock.Now(), f.t.Context()
	selector, err := model.ParseSelector("tenant=globex")
	must(f.t, err)
	must(f.t, flow.OfQueue(f.queue).PutHold(ctx, &model.Hold{ID: "globex-move", Selector: selector, Since: now, Until: now.Add(2 * time.Hour), Reason: "Globex moves its shop to another host until noon", By: "ann"}))
	must(f.t, flow.OfQueue(f.queue).PutLimit(ctx, &model.Limit{Name: "host=feeds1.acme.example", Running: 2, Since: now, Reason: "asked us to be gentle", By: "ann"}))
	f.Say(`{"type":"success","big_table_uid":"acme/stock"}`, `{"type":"failed","big_table_uid":"acme/stock","refresh_attempt_uid":"x"}`, "not json \x01\xff")
}
