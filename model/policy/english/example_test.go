package english_test

import (
	"encoding/json"
	"fmt"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/policy/english"
)

func Example() {
	document, _, err := english.Parse(`
		- Refresh the model twice per day at 6 a.m. and 4 p.m.
		- Allow half an hour to complete
		- On the first failure, retry immediately
		- On the second failure, retry after 1 minute
		- Panic`)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policy.Parse(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	canonical, _ := json.Marshal(p)
	fmt.Println(string(canonical))
	fmt.Print(english.Print(p))
	// Output:
	// {"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0","timeout":"30m","retries":["0s","1m"],"alignment":"align_planned","on_exhausted":"give_up"}
	// - Refresh the model every day at 06:00 and 16:00
	// - Allow 30 minutes to complete
	// - On the first failure, retry immediately
	// - On the second failure, retry after 1 minute
	// - Skip retries that overlap with a scheduled refresh
	// - Give up after the final unsuccessful retry
	// - Allow any time in the queue. Take no worker for lost. Do not spread the refreshes. Run a missed refresh once. Retry at any time. Retry on every error. Use the same delays after every error. Never give up for lack of a success. Give the usual reason. Notify the owner of everything. Send no e-mail. Notify the owner of no failure. Set no limits. Let a retry_after close keys only after http_429. Let a server ask to wait for at most 1 day. Open no circuit. Stay closed on no calendar. Promise no freshness. Doubt no refresh. Tell of a doubted refresh
}
