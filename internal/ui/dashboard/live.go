package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
)

const (
	// maxStreams bounds the open pages.
	maxStreams = 200
	// maxOfClient bounds those of one client.
	maxOfClient = 10
	// streamTime is how long one stream lasts. The browser then opens another, so that the stream of a lost browser ends too.
	streamTime = 30 * time.Minute
	// sendTime bounds one write to a browser that reads nothing.
	sendTime = 10 * time.Second
	// restFactor makes expensive pages rest longer: so many times as long as reading took, at least a tick.
	restFactor = 9
	// beatTicks is after how many ticks open pages are read again without a change: late models become stale.
	beatTicks = 30
	// askTime bounds a tick: the health checks take 15 s without a round as stuck, and a Redis that hangs must not cause a restart.
	askTime = 10 * time.Second
)

const streamType = "text/event-stream"

// beat is the time between two changes of a queue. Meanwhile all readers of an address share one reading. It is safe for concurrent use.
type beat struct {
	over  chan struct{} // closed at its end
	pages sync.Map      // func() rendered, by address
}

type rendered struct {
	fragments []fragment
	at        time.Time
	err       error
}

type fragment struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Age  int64  `json:"age"` // ms since it was read
}

// passing matches what time alone changes, which browsers update themselves.
var passing = regexp.MustCompile(`(<time [^>]*data-from=")\d+("[^>]*>)[^<]*`)

// same reports whether a fragment shows the same as an older one.
func (f *fragment) same(as *fragment) bool {
	return f.HTML == as.HTML || passing.ReplaceAllString(f.HTML, "$1$2") == passing.ReplaceAllString(as.HTML, "$1$2")
}

// read reads a page once in a beat. A failed one is read again.
func (b *beat) read(address string, read func() rendered) rendered {
	shared, _ := b.pages.LoadOrStore(address, sync.OnceValue(read))
	once, _ := shared.(func() rendered)
	found := once()
	if found.failed() {
		b.pages.Delete(address)
	}
	return found
}

// failed reports whether another try may succeed without a change of the queue.
func (r *rendered) failed() bool {
	return r.err != nil && statusOf(r.err) >= http.StatusInternalServerError
}

// watch checks once a tick whether the queue has changed, and then begins another beat, until ctx ends. A queue that cannot be read counts as
// unchanged.
func (d *Dashboard) watch(ctx context.Context, site *site) {
	for last, ticks := "", 0; ctx.Err() == nil; ticks++ {
		ended := site.observe()
		asking, cancel := context.WithTimeout(ctx, askTime)
		version, err := site.version(asking)
		cancel()
		if ctx.Err() == nil {
			ended(err)
		}
		if err == nil && (version != last || ticks >= beatTicks) {
			last, ticks = version, 0
			close(site.beat.Swap(newBeat()).over)
		}
		backoff.Rest(ctx, d.config.Tick, nil)
	}
}

func newBeat() *beat { return &beat{over: make(chan struct{})} }

type streams struct {
	mu      sync.Mutex
	open    int            // guarded by mu
	clients map[string]int // guarded by mu: open pages by client
}

// enter reports whether a client may open one more page. If so, it must leave.
func (s *streams) enter(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == maxStreams || s.clients[client] == maxOfClient {
		return false
	}
	s.open++
	s.clients[client]++
	return true
}

func (s *streams) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
}

// stream reads an open page after each change of its queue, at most once a tick, and sends the fragments that differ.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, req *request, page *page) {
	client := d.auth.client(r)
	if !d.streams.enter(client) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer d.streams.leave(client)
	w.Header().Set("Content-Type", streamType)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	out := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	alive, rest, now := time.NewTicker(15*time.Second), time.NewTimer(0), make(chan struct{})
	defer alive.Stop()
	defer rest.Stop()
	close(now)
	_ = out.SetWriteDeadline(time.Time{}) // the deadline of a page would end it
	send := func(text string) bool {
		stuck := time.AfterFunc(sendTime, func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) }) // which has passed on any clock
		defer stuck.Stop()
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	sent, address := make([]fragment, len(page.live)), req.session.key()+req.address(page.path, req.query)
	var change <-chan struct{} // nil: it rests
	for next, sending := now, send(": open\n\n"); sending; {
		select {
		case <-ctx.Done():
			return
		case <-d.ending:
			return
		case <-alive.C:
			sending = send(": still\n\n")
		case <-rest.C:
			change = next
		case <-change:
			beat, begun := req.beat.Load(), d.config.Clock() // before it reads, so that no change is missed
			found := beat.read(address, func() rendered { return d.fragments(ctx, req.site, page, req.session, req.query) })
			if change, next = nil, beat.over; found.failed() {
				next = now
			}
			for i, fragment := range found.fragments {
				if fragment.same(&sent[i]) {
					continue
				}
				sent[i], fragment.Age = fragment, d.config.Clock().Sub(found.at).Milliseconds()
				text, _ := json.Marshal(fragment) // strings always marshal
				sending = sending && send("event: fragment\ndata: "+string(text)+"\n\n")
			}
			rest.Reset(max(d.config.Tick, restFactor*d.config.Clock().Sub(begun)))
		}
	}
}

func (d *Dashboard) fragments(ctx context.Context, site *site, page *page, session session, query url.Values) (found rendered) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	req := d.newRequest(site, session, query)
	f := d.frame(req, page)
	if found.err = f.read(ctx, page, req); found.err != nil {
		return found
	}
	found.at = d.config.Clock()
	for _, name := range page.live {
		var text bytes.Buffer
		if found.err = d.templates[page.file].ExecuteTemplate(&text, name, f); found.err != nil {
			d.config.Log.Error().Err(found.err).Msg("rendering a fragment failed")
			return rendered{err: found.err}
		}
		found.fragments = append(found.fragments, fragment{ID: name, HTML: text.String()})
	}
	return found
}
