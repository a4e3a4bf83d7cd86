package demo

import (
	"context"
	"errors"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// lookEvery is how often the state of all models is read, for the table and for what is no transition: statuses. It is also
// how often the next model is saved, so that the audience can follow.
const lookEvery = 250 * time.Millisecond

// watcher follows the queue, shows what happens, ticks off what was seen and gives the director its cues. Its fields belong
// to the goroutine of run.
type watcher struct {
	store    *scripts.Store
	view     view
	check    *checklist
	director *director
	complete func()               // called once when everything was seen
	outbox   string               // position in the outbox
	notices  []model.Notification // read, and not yet shown
	statuses map[string]report    // what each model told last
}

// report is what an attempt told of itself.
type report struct {
	attempt, text string
	progress      int
}

func newWatcher(store *scripts.Store, v view, d *director, complete func()) *watcher {
	return &watcher{
		store: store, view: v, check: newChecklist(), director: d, complete: complete,
		outbox: scripts.TailStart, statuses: make(map[string]report),
	}
}

// tail is some news of the journal, or why there is none.
type tail struct {
	entries []model.JournalEntry
	err     error
}

// run watches until ctx ends. A waiting call to Redis makes that take up to a second.
func (w *watcher) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	news, done := make(chan tail), make(chan struct{})
	go func() {
		defer close(done)
		follow(ctx, w.store, news)
	}()
	err := w.watch(ctx, news)
	end()
	<-done
	return err
}

func (w *watcher) watch(ctx context.Context, news <-chan tail) error {
	defer w.view.end() // deferred, because a panic must not take the cursor with it
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case t := <-news:
			err = errors.Join(t.err, w.read(ctx, t.entries))
		case <-w.director.feeds.stopped:
			err = w.act(ctx, w.director.slowStopped)
		case <-w.director.crew.gone:
			err = w.act(ctx, w.director.workersGone)
		case <-ticker.C:
			err = errors.Join(w.director.open(ctx), w.look(ctx))
		}
		if ctx.Err() != nil {
			return nil // the error is only its echo
		}
		if err != nil {
			return err
		}
		w.tick()
	}
}

// follow sends the journal's news until ctx ends or Redis is in trouble.
func follow(ctx context.Context, store *scripts.Store, news chan<- tail) {
	var t tail
	for position := scripts.TailStart; ctx.Err() == nil && t.err == nil; {
		t.entries, position, t.err = store.Tail(ctx, position)
		select {
		case news <- t:
		case <-ctx.Done():
		}
	}
}

// read shows transitions, each with the notification that was written with it.
func (w *watcher) read(ctx context.Context, entries []model.JournalEntry) error {
	notices, position, err := w.store.TailOutbox(ctx, w.outbox)
	if err != nil {
		return err
	}
	// Some of them may belong to transitions that come with the next news.
	w.notices, w.outbox = append(w.notices, notices...), position
	for _, e := range entries {
		w.check.transition(e)
		w.view.line(transitionLine(e))
		if len(w.notices) > 0 && caused(e, w.notices[0]) {
			w.check.notice(w.notices[0])
			w.view.line(noticeLine(w.notices[0]))
			w.notices = w.notices[1:]
		}
		acts, err := w.director.react(ctx, e)
		for _, act := range acts {
			w.view.line(act)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// caused reports whether the notification was written with the transition.
func caused(e model.JournalEntry, n model.Notification) bool {
	if e.UID != n.UID || !e.At.Equal(n.At) {
		return false
	}
	return e.Final || n.Notice == policy.NoticeRecovered && e.Event == model.EventSuccess
}

// act lets the director act on something that is no transition, and shows what was done.
func (w *watcher) act(ctx context.Context, do func(context.Context, time.Time) (line, error)) error {
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	done, err := do(ctx, now)
	w.view.line(done)
	return err
}

// look reads the state of all models and shows it.
func (w *watcher) look(ctx context.Context) error {
	s, err := takeSnapshot(ctx, w.store)
	if err != nil {
		return err
	}
	for _, record := range s.models {
		w.listen(s.now, record)
	}
	w.check.counters(s.counters)
	s.seen = w.check.count()
	w.view.show(s)
	return nil
}

// listen shows what a running attempt tells of itself, which is no transition.
func (w *watcher) listen(now time.Time, record *scripts.Record) {
	told := report{record.AttemptUID, record.UserFriendlyStatus, record.Progress}
	if !record.Running() || told.text == "" || told == w.statuses[record.UID] {
		return
	}
	w.statuses[record.UID] = told
	w.check.progress(record.UID, record.Progress)
	w.view.line(statusLine(now, record))
}

func (w *watcher) tick() {
	before := w.check.complete()
	w.check.tick()
	if !before && w.check.complete() {
		w.complete()
	}
}
