package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// look is how often a command looks how far its bulk is.
const look = 200 * time.Millisecond

// follow shows how far a bulk is until it is over. Whoever goes away leaves it running.
func (a *app) follow(ctx context.Context, queue *store.Queue, id string) error {
	v, err := a.awaitBulk(ctx, queue, id)
	switch {
	case err == nil:
		return a.tellBulk(v)
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; the bulk goes on: refreshd bulk show %s tells how far it is, refreshd bulk cancel %s ends it", id, id)
	default:
		return fmt.Errorf("%w; the bulk goes on: refreshd bulk show %s", err, id)
	}
}

// awaitBulk looks at a bulk until it is over.
func (a *app) awaitBulk(ctx context.Context, queue *store.Queue, id string) (bulkView, error) {
	if err := a.missPoller(ctx, queue); err != nil {
		return bulkView{}, err
	}
	bar := a.bulkBar()
	for {
		v, err := readBulk(ctx, queue, id)
		if err != nil {
			return v, err
		}
		bar.show(v)
		if v.State != store.BulkRunning {
			bar.end()
			return v, nil
		}
		timer := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (a *app) tellBulk(v bulkView) error {
	var err error
	if a.json() {
		err = a.printJSON(v)
	} else {
		_, err = fmt.Fprintln(a.stdout, v)
	}
	if err == nil && v.State == store.BulkCancelled {
		err = fmt.Errorf("%s: expected to end it, found that somebody has cancelled it", v.ID)
	}
	return err
}

// missPoller tells if nobody is there who could carry out a bulk: it then waits.
func (a *app) missPoller(ctx context.Context, queue *store.Queue) error {
	return queue.Each(func(part *store.Store) error {
		signs, err := part.Report().Liveness(ctx)
		if last, known := signs.Last[model.RolePoller]; err == nil && (!known || signs.Now.Sub(last) > model.LongestSilence) {
			a.complain(part.Keys.Queue() + ": no poller lives; the bulk waits until one begins")
		}
		return err
	})
}

// bulkBar shows a bulk on the terminal; nil: there is none for it.
type bulkBar struct{ *progressbar.ProgressBar }

func (a *app) bulkBar() *bulkBar {
	errors, is := a.stderr.(*os.File)
	if !is || !isTerminal(errors) {
		return nil
	}
	return &bulkBar{progressbar.NewOptions64(-1, progressbar.OptionSetWriter(errors), progressbar.OptionSetPredictTime(true), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())}
}

func (b *bulkBar) show(v bulkView) {
	if b == nil {
		return
	}
	if v.Size > 0 {
		b.ChangeMax64(max(v.Size, v.Seen))
	}
	b.Describe(fmt.Sprintf("%s: %d done, %d refused", v.ID, v.Done, v.Refused))
	_ = b.Set64(v.Seen) // a bar that cannot be drawn is no failure
}

func (b *bulkBar) end() {
	if b != nil {
		_ = b.Finish()
	}
}
