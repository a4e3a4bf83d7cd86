package demo

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/model"
)

// director plays everybody outside refreshd: the application, the owners of its models, and a worker that is late. All of
// them push JSON, and each acts on a cue.
type director struct {
	site  string    // the address of the feeds
	start time.Time // where the schedules begin
	push  outside
	feeds *feeds
	crew  *crew
	cues  []*cue
	saved int      // roles of the cast that were saved
	hangs []string // attempts of uidHangs that have timed out
}

// outside is where everybody outside refreshd can write to.
type outside struct {
	control func(ctx context.Context, message string) error
	output  func(ctx context.Context, message string) error
}

// cue is a transition that makes somebody act: the one with this number among those of the model with this event.
type cue struct {
	uid   string
	event model.Event
	left  int // such transitions still to come, this one included
	text  string
	act   func(ctx context.Context) error
}

func newDirector(site string, start time.Time, push outside, f *feeds, c *crew) *director {
	d := &director{site: site, start: start, push: push, feeds: f, crew: c}
	d.cues = []*cue{
		{uidManual, model.EventCreate, 1, "somebody asks for a refresh by hand", d.run(uidManual)},
		{uidBanner, model.EventStart, 1, "the banner is edited while its first edition is being refreshed", d.save(find(uidBanner), 2)},
		{uidBanner, model.EventUpdate, 1, "", d.release},
		{uidMoved, model.EventFailure, 1, "the owner reads the reason and saves the new address", d.save(d.movedTo(pathSteady), 2)},
		{uidHangs, model.EventTimeout, 2, "a worker answers for the first attempt, long after its deadline", d.answerLate},
	}
	return d
}

// open saves the next model of the cast, as an application does that begins to use refreshd.
func (d *director) open(ctx context.Context) error {
	if d.saved == len(cast) {
		return nil
	}
	role := cast[d.saved]
	d.saved++
	return d.save(role, 1)(ctx)
}

// react lets whoever waits for this transition act, and returns what they did.
func (d *director) react(ctx context.Context, e model.JournalEntry) ([]line, error) {
	if e.UID == uidHangs && e.Event == model.EventTimeout {
		d.hangs = append(d.hangs, e.AttemptUID)
	}
	var lines []line
	for _, c := range d.cues {
		if c.uid != e.UID || c.event != e.Event {
			continue
		}
		if c.left--; c.left != 0 {
			continue
		}
		if c.text != "" {
			lines = append(lines, actLine(e.At, c.uid, c.text))
		}
		if err := c.act(ctx); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// slowStopped is called when the slow feed has stopped halfway. A transition would be too early a cue: the workers could be
// sent away before their request has reached the feed, and the next request would be the one that gets stuck.
func (d *director) slowStopped(_ context.Context, now time.Time) (line, error) {
	d.crew.leave()
	return actLine(now, uidSlow, "a deploy: the workers have to stop"), nil
}

// workersGone is called when the last worker has stopped: what is started now finds nobody until its deadline.
func (d *director) workersGone(ctx context.Context, now time.Time) (line, error) {
	d.cues = append(d.cues, &cue{uidManual, model.EventWithdrawn, 1, "the workers are back", d.resume})
	return actLine(now, uidManual, "no worker is there: somebody asks for a refresh by hand"), d.run(uidManual)(ctx)
}

func (d *director) save(r role, edition int) func(context.Context) error {
	return func(ctx context.Context) error { return d.push.control(ctx, r.put(d.site, d.start, edition)) }
}

func (d *director) movedTo(path string) role {
	r := find(uidMoved)
	r.path = path
	return r
}

func (d *director) run(uid string) func(context.Context) error {
	return func(ctx context.Context) error { return d.push.control(ctx, runMessage(uid)) }
}

func (d *director) release(context.Context) error {
	d.feeds.releaseBanner()
	return nil
}

// answerLate answers for an attempt that has long been followed by another.
func (d *director) answerLate(ctx context.Context) error {
	return d.push.output(ctx, successMessage(uidHangs, d.hangs[0]))
}

func (d *director) resume(context.Context) error {
	d.crew.comeBack()
	return nil
}
