package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

func TestEachFormDoesWhatItSays(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.By = "ann" })
	fleet := flow.OfQueue(d.queue)
	d.put(failingModel)
	d.start()
	d.answer("failure", "a", `"reason":"503"`)

	expect(t, d.submit("steering", "hold/put", "selector", "tenant=t1", "reason", "moves house", "end", "2h"), "keeps tenant=t1 from starting")
	holds, err := fleet.Holds(t.Context())
	stopIf(t, err != nil || len(holds) != 1 || holds[0].By != "ann" || holds[0].Reason != "moves house" || !holds[0].Until.Equal(d.Clock.Now().Add(2*time.Hour)),
		"expected a hold of two hours by ann, found %+v, %v", holds, err)
	expect(t, d.submit("steering", "hold/release"), "is released")
	holds, err = fleet.Holds(t.Context())
	failIf(t, err != nil || len(holds) != 0 && !holds[0].Released, "expected no hold, found %+v, %v", holds, err)
	expect(t, d.submit("steering", "hold/put", "reason", "all"), "expected one such as tenant=t1, or the mark that all models are meant")
	expect(t, d.submit("steering", "hold/put", "reason", "all", "all", "yes", "cancel", "yes"), "keeps all models from starting. The bulk")

	const key = "host=example.com"
	expect(t, d.submit("steering", "circuit/open", "key", key, "reason", "their proxy", "probe", "5m"), "The circuit "+key+" is open, for 5m at least.")
	circuits, err := fleet.Circuits(t.Context(), key)
	failIf(t, err != nil || !circuits[0].Open() || circuits[0].By != "ann" || circuits[0].Reason != "their proxy",
		"expected an open circuit, found %+v, %v", circuits, err)
	expect(t, d.submit("steering?key=host%3Dexample.com", "circuit/close"), "its models start again")
	circuits, err = fleet.Circuits(t.Context(), key)
	failIf(t, err != nil || circuits[0].Open(), "expected a closed circuit, found %+v, %v", circuits, err)
	expect(t, d.submit("steering", "limit/set", "key", key, "running", "2"), "The limit of "+key+" is set.", "at most 2 at a time")
	expect(t, d.submit("steering?key=host%3Dexample.com", "limit/rm"), "is forgotten")
	expectNone(t, d.page(home+"steering"), "at most 2 at a time")

	closed := model.Slots{Free: d.Clock.Now().Add(time.Hour), Closed: d.Clock.Now().Add(time.Hour), By: "a (http_429)"}
	must(t, d.Redis.Set(t.Context(), d.Store.Keys.Rate(key), closed.String(), time.Hour).Err())
	expect(t, d.page(home+"steering?key=host%3Dexample.com"), "Closed until", "by the answer to a (http_429)")
	expect(t, d.submit("steering?key=host%3Dexample.com", "limit/open"), "The key "+key+" is open")
	expectNone(t, d.page(home+"steering?key=host%3Dexample.com"), "Closed until")

	expect(t, d.submit("failures", "failures/run", "rate", "1/s"), "runs all models that fail with")
	expect(t, d.submit("steering", "bulk/cancel"), "is cancelled")

	d.Say("\x01 no JSON \xff")
	d.apply()
	expect(t, d.page(home+"rejected"), `\x01 no JSON \xff`)
	expect(t, d.submit("rejected", "rejected/drop"), "is forgotten")
	d.Command(`{"type":"nonsense","uid":"tbl_1"}`)
	d.apply()
	before := d.List(d.Store.Keys.Rejected)
	d.Clock.Turn(time.Minute)
	expect(t, d.submit("rejected", "rejected/requeue"), "is requeued")
	d.apply()
	after := d.List(d.Store.Keys.Rejected)
	d.Command(`{"type":"run","uid":"absent1"}`, `{"type":"run","uid":"absent2"}`)
	d.apply()
	expect(t, d.page(home+"rejected"), "By reason", "<strong>2</strong>", "<strong>1</strong>", "from control of bigtables")
	expect(t, d.submit("rejected", "rejected/drop-group"), "2 messages are forgotten.")
	expectNone(t, d.page(home+"rejected"), "By reason", "absent1")
	d.Command(`{"type":"run","uid":"absent1"}`, `{"type":"run","uid":"absent2"}`)
	d.apply()
	expect(t, d.submit("rejected", "rejected/requeue-group"), "2 messages are requeued")
	expect(t, d.page(home+"rejected"), "1 are kept")
	failIf(t, len(before) != 1 || len(after) != 1 || after[0] == before[0], "expected the one message rejected again, found %q after %q", after, before)
}

func TestThePlaygroundTellsHowARuleWasReadAndItsNextThreeTimes(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for text, want := range map[string]string{
		"Refresh it daily at 6am Berlin time": "Read as: every day at 06:00 (Europe/Berlin); next: ",
		"{uid: a, rrule: daily at 6am}":       "Read as: every day at 06:00 (UTC); next: ",
		"Allow 2 hours to complete":           "",
	} {
		page := d.page(home + "playground?text=" + url.QueryEscape(text))
		_, said, _ := strings.Cut(page, `<p class="hint">Read as`)
		said, _, _ = strings.Cut("Read as"+said, ".</p>")
		failIf(t, want == "" && strings.Contains(page, "Read as") || want != "" && (!strings.HasPrefix(said, want) || strings.Count(said, " 06:00") != 4),
			"%s: expected %q and three times, found %q", text, want, said)
	}
}

func TestADoubtedResultIsFoundReadAndAcceptedOrRejected(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.By = "ann" })
	d.put(`"uid":"a","payload":{"n":1},"policy":{"timeout":"1m","retries":["1h"],"on_suspect":"hold","guard":[{"rows":{"min":1}}]}`)
	d.start()
	expectNone(t, d.page(home+"model?uid=a"), "/model/accept", "/model/reject")
	hold := func() {
		t.Helper()
		d.answer("success", "a", `"metrics":{"rows":0,"bytes":7}`)
	}
	hold()
	expect(t, d.page(home), "1 result waits for a verdict.", `models?l=status%3Dparked`)
	expect(t, d.page(home+"models?l=status%3Dparked"), "its result is doubted")
	expect(t, d.page(home+"model?uid=a"), `class="glance bad"`, "Waits for a verdict since", "Rows 0: expected at least 1.", "doubted: rows 0: expected at least 1; bytes 7, rows 0",
		`Press &#34;Accept&#34; or &#34;Reject&#34;.`)
	expect(t, d.press(home+"model/accept", "uid", "a"), "a counts as refreshed.", ", accepted; bytes 7, rows 0")
	expectNone(t, d.page(home), "wait for a verdict", "waits for a verdict")
	expect(t, d.press(home+"model/accept", "uid", "a"), "a: nothing had to be changed.")
	expect(t, d.page(home+"journal"), "<strong>ann</strong> accepted the result of")

	d.press(home+"model/run", "uid", "a")
	d.start()
	hold()
	expect(t, d.press(home+"model/reject", "uid", "a"), "a counts as failed.", "rows 0: expected at least 1", "Next retry")
	expect(t, d.page(home+"journal"), "<strong>ann</strong> rejected the result of")
}
