package notifier

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

const manyLines = `
channels:
  ops: {webhook: "%s", secret: {env: SECRET}, digest: none, timeout: 1m}
routes: [{events: [disabled], channels: [ops]}]`

// The first message is answered only when a second one is under way, so that a notifier that sends one after the other does not get on.
func TestAWebhookWithoutADigestGetsSeveralNoticesAtOnceAndThoseOfAModelInOrder(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		var mu sync.Mutex
		order, underWay, beside := map[string][]string{}, 0, make(chan struct{})
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var message struct{ Data map[string]string }
			err := json.Unmarshal(body, &message)
			failIf(t, err != nil, "%v", err)
			mu.Lock()
			uid := message.Data["uid"]
			order[uid] = append(order[uid], message.Data["reason"])
			if underWay++; underWay == 2 {
				close(beside)
			}
			mu.Unlock()
			check.Await(t, beside, "a second message beside the first")
		}))
		t.Cleanup(receiver.Close)
		b := setup(t, server, fmt.Sprintf(manyLines, receiver.URL))
		want := map[string][]string{}
		for n := range 3 {
			for m := range 12 {
				uid, reason := fmt.Sprint("m", m), fmt.Sprint(n)
				b.tell(disabled(uid, reason))
				want[uid] = append(want[uid], reason)
			}
		}
		b.round(b.Notifier)
		mu.Lock()
		defer mu.Unlock()
		equal(t, want, order)
	})
}

func TestAWebhookThatAsksToBeLeftAloneIsToldNothingOfOtherModelsEither(t *testing.T) {
	h := newHook(t, 429)
	h.headers = map[string]string{"Retry-After": "600"}
	b := setup(t, testkit.Miniredis(t), fmt.Sprintf(manyLines, h.URL))
	b.tell(disabled("m0", "gone"))
	b.round(b.Notifier)
	for m := range 12 {
		b.tell(disabled(fmt.Sprint("m", m), "gone"))
	}
	b.after(10*time.Minute - time.Millisecond)
	got := len(h.all())
	failIf(t, got != 1, "expected no word before it may be told again, found %d", got)
	b.after(time.Millisecond)
	got = len(h.all())
	failIf(t, got != 14, "expected a second try and 12 more, found %d", got)
}

func TestANoticeLinksToItsModelAndAMailNamesItsQueue(t *testing.T) {
	const dashboard = "https://refreshd.example.com/q/bigtables"
	about := noticeOf("bigtables", dashboard, outbox.Entry{ID: "1-0", Fields: map[string]string{"event": "disabled", "uid": "a/b?c&d"}})
	failIf(t, about["link"] != "https://refreshd.example.com/q/bigtables/model?uid=a%2Fb%3Fc%26d", "found the link %s", about["link"])
	other := noticeOf("bigtables", dashboard, outbox.Entry{ID: "1-0", Fields: map[string]string{"event": "circuit_opened", "key": "h"}})
	failIf(t, other["link"] != "", "found a link of no model: %s", other["link"])
	own := check.Got(readTemplates(""))(t)
	subject, text, html, err := own.render(message{notices: []Notice{about}})
	if err != nil || !strings.Contains(subject, "bigtables") || !strings.Contains(text, about["link"]) || !strings.Contains(html, `href="`+about["link"]+`"`) {
		t.Errorf("found %q, %q, %q, %v", subject, text, html, err)
	}
	for _, part := range []string{text, html} {
		failIf(t, !strings.Contains(part, "Queue bigtables"), "expected the queue, found %s", part)
	}
}
