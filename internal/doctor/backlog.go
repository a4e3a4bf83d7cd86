package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

const (
	// manyNotices is a backlog that no notifier is working on.
	manyNotices = 1000
	// maxLateness is after how long a running dispatcher would have started or ended something.
	maxLateness = time.Minute
)

// backlog checks what waits, and whether anybody works on it.
func (e *examination) backlog(ctx context.Context) error {
	b, err := e.store.Backlog(ctx)
	if err != nil {
		return err
	}
	e.late(b)
	e.outbox(b)
	if err := e.rejected(ctx, b.Rejected); err != nil {
		return err
	}
	if err := e.wake(ctx, b.Wake); err != nil {
		return err
	}
	return e.brake(ctx)
}

// late concludes from what should have happened that nobody is there to do it.
func (e *examination) late(b scripts.Backlog) {
	k := e.store.Keys
	missed := func(at time.Time) bool { return !at.IsZero() && e.now.Sub(at) > maxLateness }
	if missed(b.OldestDeadline) {
		e.note(Finding{Warning, "dispatcher-late", k.Running(), "deadlines that passed within " + maxLateness.String(), "one of " + model.FormatTime(b.OldestDeadline), byHand("start a dispatcher, or look into its log"), false})
	} else if missed(b.OldestDue) {
		e.note(Finding{Warning, "due-late", k.Due(), "models that became due within " + maxLateness.String(),
			fmt.Sprintf("one due since %s, and %d attempts that no worker has taken", model.FormatTime(b.OldestDue), b.Input),
			byHand("start workers if many attempts wait, otherwise a dispatcher"), false})
	}
	if b.Messages > 0 && e.now.Sub(b.LastPoller) > maxLateness {
		found := "none"
		if !b.LastPoller.IsZero() {
			found = "silence since " + model.FormatTime(b.LastPoller)
		}
		e.note(Finding{Warning, "poller-late", k.Output(), "a poller for " + strconv.FormatInt(b.Messages, 10) + " messages", found, byHand("start a poller"), false})
	}
}

func (e *examination) outbox(b scripts.Backlog) {
	if b.Outbox == 0 {
		return
	}
	f := Finding{Info, "outbox", e.store.Keys.Outbox(), "notifications that are delivered", fmt.Sprintf("%d that wait, the oldest of %s", b.Outbox, model.FormatTime(b.OldestNotice)), "", false}
	if b.Outbox > manyNotices {
		f.Severity, f.Repair = Warning, byHand("deliver them, or XTRIM "+f.Where+" MAXLEN 0 if nobody is to be told")
	}
	e.note(f)
}

func (e *examination) rejected(ctx context.Context, n int64) error {
	if n == 0 || !e.readable(e.store.Keys.Rejected()) {
		return nil
	}
	reason, err := e.store.LastRejected(ctx)
	if err != nil {
		return err
	}
	e.note(Finding{Warning, "rejected", e.store.Keys.Rejected(), "messages that can be handled", fmt.Sprintf("%d that could not, the last: %s", n, reason),
		byHand("look at them, and DEL " + e.store.Keys.Rejected()), false})
	return nil
}

func (e *examination) wake(ctx context.Context, n int64) error {
	if n <= 1 {
		return nil
	}
	f := Finding{Warning, "wake-long", e.store.Keys.Wake(), "at most one call", strconv.FormatInt(n, 10), "--repair leaves one", false}
	return e.attend(f, true, "mended: one is left", func() error { return e.store.TrimWake(ctx) })
}

func (e *examination) brake(ctx context.Context) error {
	if !e.readable(e.store.Keys.Brake()) || !e.readable(e.store.Keys.Stats()) {
		return nil
	}
	brake, err := e.store.Brake(ctx)
	if err != nil {
		return err
	}
	if brake.Engaged {
		e.note(Finding{Warning, "brake-engaged", e.store.Keys.Brake(), "a released brake", "one engaged since " + brake.EngagedAt + ": final failures are held back",
			byHand("look why attempts fail; then refreshd brake release"), false})
	}
	return nil
}
