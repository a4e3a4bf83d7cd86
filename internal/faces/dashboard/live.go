package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// mostStreams is how many open pages are served at the same time.
	mostStreams = 200
	// mostOfClient is how many of them one client may have.
	mostOfClient = 10
	// streamTime is how long one stream lasts. The browser begins another: so one that a gone browser has left ends as well.
	streamTime = 30 * time.Minute
	// sendTime bounds one write to a browser that takes nothing.
	sendTime = 10 * time.Second
)

// restFactor is how many times as long as a reading took a reader rests, if that is longer than its tick: pages that are dear to read are
// read less often.
const restFactor = 9

// longAgo is a deadline that has passed, on any clock.
var longAgo = time.Unix(1, 0)

// streams are the open pages. Those of one address share a reader, which ends with the last of them. It is safe for concurrent use.
type streams struct {
	tick  time.Duration
	clock func() time.Time

	mu      sync.Mutex
	open    int              // guarded by mu
	clients map[string]int   // guarded by mu: open pages by client
	readers map[string]*look // guarded by mu: by address
	running sync.WaitGroup
}

// look reads one page again and again for all who have it open.
type look struct {
	seen chan struct{} // closed when newer fragments are there; guarded by mu of the streams
	sent []fragment    // guarded by mu of the streams: the last ones
	no   int           // guarded by mu of the streams: how many times fragments differed
	by   int           // guarded by mu of the streams: open pages
	stop context.CancelFunc
}

// fragment is a part of a page.
type fragment struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	no   int    // the reading at which it changed
}

// read returns the fragments of a page.
type read func(ctx context.Context) ([]fragment, error)

// join opens a page; nil: too many are open.
func (s *streams) join(ctx context.Context, client, address string, read read) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == mostStreams || s.clients[client] == mostOfClient {
		return nil
	}
	if s.clients == nil {
		s.clients = map[string]int{}
	}
	s.open++
	s.clients[client]++
	one := s.readers[address]
	if one == nil {
		looking, stop := context.WithCancel(ctx)
		one = &look{seen: make(chan struct{}), stop: stop}
		if s.readers == nil {
			s.readers = map[string]*look{}
		}
		s.readers[address] = one
		s.running.Go(func() { s.follow(looking, one, read) })
	}
	one.by++
	return one
}

func (s *streams) leave(client, address string, one *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
	if one.by--; one.by == 0 {
		one.stop()
		delete(s.readers, address)
	}
}

// follow reads at once, and then each tick. A reading that fails changes nothing: the pages show what was known.
func (s *streams) follow(ctx context.Context, one *look, read read) {
	for ctx.Err() == nil {
		begun := s.clock()
		if fragments, err := read(ctx); err == nil {
			s.publish(one, fragments)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(s.tick, restFactor*s.clock().Sub(begun))):
		}
	}
}

func (s *streams) publish(one *look, fragments []fragment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for i := range fragments {
		fragments[i].no = one.no + 1
		if i < len(one.sent) && one.sent[i].HTML == fragments[i].HTML {
			fragments[i].no = one.sent[i].no
			continue
		}
		changed = true
	}
	if changed {
		one.no++
		one.sent = fragments
		close(one.seen)
		one.seen = make(chan struct{})
	}
}

// since returns the fragments that have changed since a reading, the number of the last one, and what is closed at the next.
func (s *streams) since(one *look, no int) (changed []fragment, last int, next <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fragment := range one.sent {
		if fragment.no > no {
			changed = append(changed, fragment)
		}
	}
	return changed, one.no, one.seen
}

// wait returns when all readers have ended.
func (s *streams) wait() { s.running.Wait() }

// stream sends the fragments of a page that change, for as long as it is open.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, site *site, page *page) {
	query := without(r.URL.Query(), "told")
	client, address := d.door.client(r), here(site, page, query)
	one := d.streams.join(context.WithoutCancel(r.Context()), client, address, func(ctx context.Context) ([]fragment, error) { return d.fragments(ctx, site, page, query) })
	if one == nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer d.streams.leave(client, address, one)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy is not to wait for more
	out := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	_ = out.SetWriteDeadline(time.Time{}) // that of a page would end it
	send := func(text string) bool {
		stuck := time.AfterFunc(sendTime, func() { _ = out.SetWriteDeadline(longAgo) })
		defer stuck.Stop()
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	for no, going := 0, send(": open\n\n"); going; {
		changed, last, next := d.streams.since(one, no)
		no = last
		for _, fragment := range changed {
			text, _ := json.Marshal(fragment) // texts can be written
			going = going && send("event: fragment\ndata: "+string(text)+"\n\n")
		}
		select {
		case <-ctx.Done():
			return
		case <-d.ending:
			return
		case <-next:
		case <-alive.C:
			going = going && send(": still\n\n")
		}
	}
}

// fragments reads a page and renders its live parts.
func (d *Dashboard) fragments(ctx context.Context, site *site, page *page, query url.Values) ([]fragment, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f := d.frame(site, page, query)
	var err error
	if f.Data, err = page.read(ctx, d.visit(site, query)); err != nil {
		return nil, err
	}
	fragments := make([]fragment, len(page.live))
	for i, name := range page.live {
		var text bytes.Buffer
		if err := d.theming[page.file].ExecuteTemplate(&text, name, f); err != nil {
			d.config.Log.Error().Err(err).Msg("rendering a fragment failed")
			return nil, err
		}
		fragments[i] = fragment{ID: name, HTML: text.String()}
	}
	return fragments, nil
}
