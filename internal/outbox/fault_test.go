package outbox_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// filled has, in each part, a notice that nobody has read, one that waits for a recipient, one that could not be delivered, and a rejected message.
func filled(t testing.TB, queue *store.Queue) {
	t.Helper()
	ctx := t.Context()
	for i, part := range queue.Parts {
		b, o := fixture.OnPart(t, part), outbox.Of(part)
		must(t, only(o.Read(ctx, 1))) // creates the group
		b.Fail(fixture.Homed(i), b.Clock())
		b.Fail(fixture.Homed(i+2), b.Clock())
		entries := check.Got(o.Read(ctx, 1))(t)
		told := []outbox.Addressed{{Channel: "ops", Recipient: "ops", At: b.Clock(), Notice: "{}"}}
		must(t, only(o.Route(ctx, []outbox.Routed{{ID: entries[0].ID, Told: told}})))
		must(t, b.Redis.RPush(ctx, part.Keys.Undelivered, `{"channel":"ops","recipient":"ops","notices":["{}"]}`).Err())
		must(t, b.Redis.RPush(ctx, part.Keys.Rejected, `{"at":"2026-11-21T06:00:00Z","source":"output","raw":"m","uid":"m1"}`).Err())
	}
}

// TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis lets no error of Redis pass for an answer.
func TestEachCallReturnsTheFaultOfEachOfItsCallsToRedis(t *testing.T) {
	ctx := t.Context()
	o := func(q *store.Queue) outbox.Outbox { return outbox.Of(q.Parts[0]) }
	rejected := []store.Rejected{{Source: "output", Raw: "m", Stored: "m"}}
	undelivered := []outbox.Undelivered{{Channel: "ops", Recipient: "ops", Notices: []string{"{}"}}}
	routed := []outbox.Routed{{ID: "1-1", Nobody: 1}}
	mailbox := func() *outbox.Mailbox { return &outbox.Mailbox{Channel: "ops", Recipient: "ops"} }
	fixture.EachFault(t, filled, map[string]func(q *store.Queue) error{
		"read":                func(q *store.Queue) error { return only(o(q).Read(ctx, 9)) },
		"adopt":               func(q *store.Queue) error { return only(o(q).Adopt(ctx, time.Minute, 9)) },
		"route":               func(q *store.Queue) error { return only(o(q).Route(ctx, routed)) },
		"due recipients":      func(q *store.Queue) error { return only(o(q).DueRecipients(ctx, "ops", fixture.SixOClock, 9)) },
		"read a mailbox":      func(q *store.Queue) error { return only(o(q).ReadMailbox(ctx, "ops", "ops", 9)) },
		"settle":              func(q *store.Queue) error { return only(o(q).Settle(ctx, mailbox(), outbox.Settlement{})) },
		"push to a list":      func(q *store.Queue) error { return o(q).PushToList(ctx, "others", []string{"{}"}) },
		"undelivered":         func(q *store.Queue) error { return only(o(q).Undelivered(ctx)) },
		"requeue undelivered": func(q *store.Queue) error { return only(o(q).RequeueUndelivered(ctx, undelivered)) },
		"drop undelivered":    func(q *store.Queue) error { return only(o(q).DropUndelivered(ctx, undelivered)) },
		"rejected":            func(q *store.Queue) error { return only(o(q).Rejected(ctx)) },
		"rejection about":     func(q *store.Queue) error { _, _, err := o(q).RejectionAbout(ctx, "nobody"); return err },
		"requeue rejected":    func(q *store.Queue) error { return only(o(q).RequeueRejected(ctx, rejected)) },
		"drop rejected":       func(q *store.Queue) error { return only(o(q).DropRejected(ctx, rejected)) },
		"last rejected":       func(q *store.Queue) error { return only(o(q).LastRejected(ctx)) },
		"trim":                func(q *store.Queue) error { return only(o(q).TrimOutbox(ctx)) },
		"first unread":        func(q *store.Queue) error { return only(o(q).FirstUnread(ctx)) },
	})
}
