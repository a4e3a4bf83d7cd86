package notifier

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// The test vector of the libraries of Standard Webhooks.
func TestASignatureIsThatOfStandardWebhooks(t *testing.T) {
	secret := check.Got(parseSecret(testSecret))(t)
	got := sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	failIf(t, got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "%v", got)
}

const hookRoutes = `
channels:
  ops: {webhook: "%s", secret: {env: SECRET}, gather: 0s, digest: {above: 1000}, retries: [1m, 5m]}
routes:
- {events: [disabled, circuit_opened], channels: [ops]}
`

func TestAWebhookGetsEachNoticeSignedInOrderUntilItTakesIt(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		h := newHook(t, 503, 429)
		b := setup(t, server, fmt.Sprintf(hookRoutes, h.URL))
		b.tell(disabled("m1", "gone"), []string{"event", "fresh", "uid", "m1"}, []string{"event", "circuit_opened", "key", "host=a", "at", "2026-11-21T07:00:00.000Z"})
		b.round(b.Notifier)
		if got := h.all(); len(got) != 1 {
			t.Fatalf("want one try, got %d", len(got))
		}
		b.after(59 * time.Second)
		if got := h.all(); len(got) != 1 {
			t.Fatalf("want no try before its time, got %d", len(got))
		}
		b.after(time.Second)
		b.after(5 * time.Minute)
		got := h.all()
		stopIf(t, len(got) != 4 || got[0].id != got[1].id || got[1].id != got[2].id || got[2].id == got[3].id,
			"want three tries of one id and one of another, got %+v", got)
		secret, _ := parseSecret(testSecret)
		for i, r := range got {
			var at int64
			_, _ = fmt.Sscan(r.at, &at)
			if want := sign(secret, r.id, time.Unix(at, 0), r.body); r.signature != want {
				t.Errorf("the signature is %s, want %s", r.signature, want)
			}
			var body struct {
				Type, Timestamp string
				Data            map[string]string
			}
			must(t, json.Unmarshal(r.body, &body))
			want := []string{"disabled", "disabled", "disabled", "circuit_opened"}[i]
			if body.Type != want || body.Data["event"] != want || body.Timestamp != "2026-11-21T07:00:00.000Z" || !strings.HasPrefix(body.Data["id"], "bigtables/") {
				t.Errorf("got %s", r.body)
			}
		}
		stats := b.Stats()
		failIf(t, stats["notices_told"] != 2 || stats["notices_tries_failed"] != 2, "counted %v", stats)
		n := b.unread()
		failIf(t, n != 0, "%d entries stand in the outbox", n)
		b.after(time.Hour)
		for _, key := range []string{b.Store.Keys.Recipients("ops"), b.Store.Keys.Notices("ops"), b.Store.Keys.Deliveries} {
			failIf(t, b.Redis.Exists(t.Context(), key).Val() != 0, "%s is left", key)
		}
	})
}

func TestWhatAnswersMean(t *testing.T) {
	for status, want := range map[int]string{
		200: "done", 204: "done", 301: "final", 400: "final", 401: "final", 404: "final", 410: "final", 408: "again", 425: "again", 429: "again", 500: "again", 503: "again",
	} {
		got := "done"
		if err := judge(status); err != nil {
			got = "again"
			if _, final := err.(finalError); final { //nolint:errorlint // it is never wrapped
				got = "final"
			}
		}
		failIf(t, got != want, "%d: %s, want %s", status, got, want)
	}
}

func TestAWebhookIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	const date = "Sat, 21 Nov 2026 09:30:00 GMT" // the clock of the server is not ours
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		for i, test := range []struct {
			status  int
			after   string
			retries string
			want    time.Duration // from its answer to the next message
		}{
			{429, "600", "[1m]", 10 * time.Minute},
			{503, "Sat, 21 Nov 2026 09:40:00 GMT", "[1m]", 10 * time.Minute},
			{503, "30", "[1m]", time.Minute},
			{503, "Sat, 21 Nov 2026 09:20:00 GMT", "[1m]", time.Minute},
			{503, "soon", "[1m]", time.Minute},
			{429, "86400", "[1m]", 2 * time.Hour},
			{429, "86400", "[3h]", 3 * time.Hour},
			{429, "600", "[]", 10 * time.Minute}, // the message is given up, and the one behind it waits
			{400, "600", "[1m]", 0},
		} {
			h := newHook(t, test.status)
			h.headers = map[string]string{"Retry-After": test.after, "Date": date}
			b := setup(t, server, strings.Replace(fmt.Sprintf(hookRoutes, h.URL), "[1m, 5m]", test.retries, 1))
			b.tell(disabled("m1", "gone"), disabled("m2", "gone"))
			b.round(b.Notifier)
			if test.want > 0 {
				b.after(test.want - time.Millisecond)
				got := h.all()
				failIf(t, len(got) != 1, "%d: want no word before %s, got %d", i, test.want, len(got))
				b.after(time.Millisecond)
			}
			got := h.all()
			failIf(t, len(got) < 2, "%d: want the next message after %s, got none", i, test.want)
			b.Redis.FlushAll(t.Context())
		}
	})
}

// Each dead end is a server of its own: one that answers nothing, one that nobody serves, one that leads elsewhere.
func TestADeadWebhookHoldsUpNobodyElseAndItsMessageIsKeptAndRequeued(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		release := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer silent.Close()
		defer close(release)
		away := newHook(t)
		redirect := httptest.NewServer(http.RedirectHandler(away.URL, http.StatusTemporaryRedirect))
		defer redirect.Close()
		well := newHook(t)
		b := setup(t, server, fmt.Sprintf(`
channels:
  silent: {webhook: "%s/?token=s3cret", secret: {env: SECRET}, timeout: 20ms, gather: 0s, retries: [1m]}
  refused: {webhook: "http://%s/?token=s3cret", secret: {env: SECRET}, gather: 0s, retries: [1m]}
  redirect: {webhook: "%s", secret: {env: SECRET}, gather: 0s, retries: [1m]}
  well: {webhook: "%s", secret: {env: SECRET}, gather: 0s, retries: [1m]}
routes:
- {events: [disabled], channels: [silent, refused, redirect, well]}
`, silent.URL, testkit.Nowhere, redirect.URL, well.URL))
		b.tell(disabled("m1", "gone"))
		b.round(b.Notifier)
		b.after(time.Minute)
		failIf(t, len(well.all()) != 1 || len(away.all()) != 0,
			"the well one was told %d times, where the redirection leads %d times", len(well.all()), len(away.all()))
		var told []string
		kept := b.undelivered()
		for _, one := range kept {
			told = append(told, fmt.Sprintf("%s %d %s", one.Recipient, one.Tries, one.Reason))
			failIf(t, strings.Contains(one.Reason, "s3cret") || one.At == "", "kept %+v", one)
		}
		if text := strings.Join(told, "; "); !strings.Contains(text, "redirect 1 HTTP 307") || !strings.Contains(text, "silent 2 context deadline exceeded") ||
			!strings.Contains(text, "refused 2 dial tcp") || len(told) != 3 {
			t.Errorf("kept %s", text)
		}
		n := b.another(fmt.Sprintf(hookRoutes, well.URL)) // the same name is another place now
		kept[0].Channel, kept[0].Recipient = "ops", "ops"
		moved, err := outbox.Of(b.Store).RequeueUndelivered(t.Context(), kept[:1])
		stopIf(t, err != nil || moved != 1, "requeued %d, %v", moved, err)
		moved, err = outbox.Of(b.Store).RequeueUndelivered(t.Context(), kept[:1])
		failIf(t, err != nil || moved != 0, "requeued %d again, %v", moved, err)
		b.round(n)
		got := well.all()
		failIf(t, len(got) != 2 || got[0].id != got[1].id, "want the requeued message under its id, got %+v", got)
		dropped, err := outbox.Of(b.Store).DropUndelivered(t.Context(), kept)
		failIf(t, err != nil || dropped != 2 || len(b.undelivered()) != 0, "dropped %d, %v", dropped, err)
	})
}

func TestManyNoticesForOneRecipientAreOneMessage(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		h := newHook(t, 500)
		b := setup(t, server, fmt.Sprintf(`
channels:
  ops: {webhook: "%s", secret: {env: SECRET}, gather: 5s, digest: {above: 2, within: 10m}, retries: [1m]}
routes:
- {events: [disabled], channels: [ops]}
`, h.URL))
		for i := range 300 {
			b.tell(disabled(fmt.Sprintf("m%d", i), "the host is down"))
		}
		b.round(b.Notifier)
		stopIf(t, len(h.all()) != 0, "it did not wait for others to come along")
		b.after(5 * time.Second) // 500
		b.tell(disabled("late", "the host is down"))
		b.round(b.Notifier)
		b.after(time.Minute)
		sizes := func() (sizes []int) {
			for _, r := range h.all() {
				var body struct {
					Type string
					Data struct{ Count int }
				}
				_ = json.Unmarshal(r.body, &body)
				sizes = append(sizes, body.Data.Count)
			}
			return sizes
		}
		got := fmt.Sprint(sizes())
		stopIf(t, got != "[300 300]" || h.all()[0].id != h.all()[1].id, "want the same message twice, got %s", got)
		b.after(8 * time.Minute)
		got = fmt.Sprint(sizes())
		stopIf(t, got != "[300 300]", "want no message within ten minutes, got %s", got)
		b.Clock.Set(fixture.Start.Add(5*time.Second + 10*time.Minute))
		b.round(b.Notifier)
		got = fmt.Sprint(sizes())
		failIf(t, got != "[300 300 0]", "want the one that came late by itself, got %s", got)
	})
}

func TestWhatARecipientIsToldNext(t *testing.T) {
	now := fixture.Start
	since := now.Add(-time.Minute).UnixMilli()
	hook := &webhook{}
	for name, test := range map[string]struct {
		above, waiting int
		before, after  outbox.Delivery
		until          time.Duration // from now; 0: at once
	}{
		"nothing waits":               {above: 1, before: outbox.Delivery{Since: since, Sent: 1}},
		"the first":                   {above: 2, waiting: 1, after: outbox.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
		"several":                     {above: 2, waiting: 3, after: outbox.Delivery{Size: 3, Since: now.UnixMilli(), Sent: 2}},
		"no more than may be":         {above: 2, waiting: 2, after: outbox.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
		"the last that may be":        {above: 2, waiting: 1, before: outbox.Delivery{Since: since, Sent: 1}, after: outbox.Delivery{Size: 1, Since: since, Sent: 2}},
		"more than are left":          {above: 2, waiting: 2, before: outbox.Delivery{Since: since, Sent: 1}, after: outbox.Delivery{Size: 2, Since: since, Sent: 2}},
		"too many within the time":    {above: 2, waiting: 9, before: outbox.Delivery{Since: since, Sent: 2}, after: outbox.Delivery{Since: since, Sent: 2}, until: 4 * time.Minute},
		"a full message, whenever":    {above: 2, waiting: maxDigest, before: outbox.Delivery{Since: since, Sent: 2}, after: outbox.Delivery{Size: maxDigest, Since: since, Sent: 2}},
		"one in hand, whatever waits": {above: 2, waiting: 9, before: outbox.Delivery{By: "dead", Size: 4, Tries: 2, Since: since, Sent: 1}, after: outbox.Delivery{By: "dead", Size: 4, Tries: 2, Since: since, Sent: 1}},
		"one in hand that was cut":    {above: 2, waiting: 3, before: outbox.Delivery{Size: 4}, after: outbox.Delivery{Size: 3}},
		"no digests":                  {waiting: 9, after: outbox.Delivery{Size: 1}},
		"the clock was set back meanwhile": {above: 1, waiting: 1, before: outbox.Delivery{Since: now.Add(time.Hour).UnixMilli(), Sent: 1},
			after: outbox.Delivery{Size: 1, Since: now.UnixMilli(), Sent: 1}},
	} {
		c := &Channel{sender: hook, digest: digest{test.above, 5 * time.Minute}}
		after, until := c.next(test.before, test.waiting, now)
		wait := time.Duration(0)
		if !until.IsZero() {
			wait = until.Sub(now)
		}
		failIf(t, after != test.after || wait != test.until, "%s: got %+v, in %s, want %+v, in %s", name, after, wait, test.after, test.until)
	}
}
