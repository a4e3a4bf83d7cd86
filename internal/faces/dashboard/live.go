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
	// maxStreams is how many open pages are served at the same time.
	maxStreams = 200
	// maxOfClient is how many of them one client may have.
	maxOfClient = 10
	// streamTime is how long one stream lasts. The browser then opens another, so that the stream of a lost browser ends too.
	streamTime = 30 * time.Minute
	// sendTime bounds one write to a browser that takes nothing.
	sendTime = 10 * time.Second
	// restFactor is how many times as long as it read a reader rests, unless its tick is longer: expensive pages are read less often.
	restFactor = 9
)

const streamType = "text/event-stream"

// streams are the open pages. Those of one address share a subscription, which ends with the last of them. It is safe for concurrent use.
type streams struct {
	tick  time.Duration
	clock func() time.Time

	mu      sync.Mutex
	open    int                      // guarded by mu
	clients map[string]int           // guarded by mu: open pages by client
	readers map[string]*subscription // guarded by mu: by address
	running sync.WaitGroup
}

func newStreams(tick time.Duration, clock func() time.Time) *streams {
	return &streams{tick: tick, clock: clock, clients: map[string]int{}, readers: map[string]*subscription{}}
}

// subscription reads one page whenever its queue has changed, for all who have it open. Its fields are guarded by mu of the streams.
type subscription struct {
	changed chan struct{} // closed when newer fragments are there
	sent    []fragment    // the last ones
	readAt  time.Time
	no      int // how many times fragments differed
	open    int // pages
	pulse   *pulse
	stop    context.CancelFunc
}

// fragment is a part of a page.
type fragment struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Age  int64  `json:"age"` // ms since it was read
	no   int    // the reading at which it changed
}

// passing is what time alone changes, which browsers change themselves.
var passing = regexp.MustCompile(`(<time [^>]*data-from=")\d+("[^>]*>)[^<]*`)

// same reports whether a fragment says the same as an older one.
func (f *fragment) same(as *fragment) bool {
	return f.HTML == as.HTML || passing.ReplaceAllString(f.HTML, "$1$2") == passing.ReplaceAllString(as.HTML, "$1$2")
}

// read returns the fragments of a page.
type read func(ctx context.Context) ([]fragment, error)

// join opens a page; nil: too many are open.
func (s *streams) join(ctx context.Context, client, address string, pulse *pulse, read read) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == maxStreams || s.clients[client] == maxOfClient {
		return nil
	}
	s.open++
	s.clients[client]++
	one := s.readers[address]
	if one == nil {
		ctx, stop := context.WithCancel(ctx)
		one = &subscription{changed: make(chan struct{}), pulse: pulse, stop: stop}
		s.readers[address] = one
		first := s.begin(context.WithoutCancel(ctx), pulse)
		s.running.Go(func() { s.follow(ctx, one, first, read) })
	}
	one.open++
	return one
}

func (s *streams) leave(client, address string, one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.clients[client]--; s.clients[client] == 0 {
		delete(s.clients, client)
	}
	if one.open--; one.open == 0 {
		one.stop()
		one.pulse.end()
		delete(s.readers, address)
	}
}

// follow reads after each change, at most once a tick. A reading that fails changes nothing, and is done again. nil: it reads at once.
func (s *streams) follow(ctx context.Context, one *subscription, change <-chan struct{}, read read) {
	for {
		if change != nil {
			select {
			case <-ctx.Done():
			case <-change:
			}
		}
		if ctx.Err() != nil {
			return
		}
		change = s.next(one.pulse) // before it reads, so that none is missed
		begun := s.clock()
		if fragments, err := read(ctx); err == nil {
			s.publish(one, fragments)
		} else if statusOf(err) >= http.StatusInternalServerError { // else it stays so until the queue changes
			change = nil
		}
		backoff.Rest(ctx, max(s.tick, restFactor*s.clock().Sub(begun)), nil)
	}
}

func (s *streams) publish(one *subscription, fragments []fragment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for i := range fragments {
		if i < len(one.sent) && fragments[i].same(&one.sent[i]) {
			fragments[i].no = one.sent[i].no
		} else {
			fragments[i].no, changed = one.no+1, true
		}
	}
	one.sent, one.readAt = fragments, s.clock()
	if changed {
		one.no++
		close(one.changed)
		one.changed = make(chan struct{})
	}
}

// since returns the fragments that have changed since a reading, the number of the last one, and a channel that is closed at the next.
func (s *streams) since(one *subscription, no int) (changed []fragment, last int, next <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fragment := range one.sent {
		if fragment.no > no {
			fragment.Age = s.clock().Sub(one.readAt).Milliseconds()
			changed = append(changed, fragment)
		}
	}
	return changed, one.no, one.changed
}

// stream sends the fragments of a page that change, for as long as it is open.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request, site *site, page *page) {
	query := r.URL.Query()
	session := d.session(r)
	client, address := d.auth.client(r), session.key()+here(site, page, query)
	one := d.streams.join(context.WithoutCancel(r.Context()), client, address, &site.pulse, func(ctx context.Context) ([]fragment, error) { return d.fragments(ctx, site, page, session, query) })
	if one == nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer d.streams.leave(client, address, one)
	w.Header().Set("Content-Type", streamType)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	out := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	_ = out.SetWriteDeadline(time.Time{}) // that of a page would end it
	send := func(text string) bool {
		stuck := time.AfterFunc(sendTime, func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) }) // which has passed on any clock
		defer stuck.Stop()
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	for no, sending := 0, send(": open\n\n"); sending; {
		changed, last, next := d.streams.since(one, no)
		no = last
		for _, fragment := range changed {
			text, _ := json.Marshal(fragment) // strings always marshal
			sending = sending && send("event: fragment\ndata: "+string(text)+"\n\n")
		}
		select {
		case <-ctx.Done():
			return
		case <-d.ending:
			return
		case <-next:
		case <-alive.C:
			sending = sending && send(": still\n\n")
		}
	}
}

// fragments reads a page and renders its live parts.
func (d *Dashboard) fragments(ctx context.Context, site *site, page *page, session session, query url.Values) ([]fragment, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	f := d.frame(site, page, session, query)
	if err := d.read(ctx, f, page, session, query); err != nil {
		return nil, err
	}
	fragments := make([]fragment, len(page.live))
	for i, name := range page.live {
		var text bytes.Buffer
		if err := d.templates[page.file].ExecuteTemplate(&text, name, f); err != nil {
			d.config.Log.Error().Err(err).Msg("rendering a fragment failed")
			return nil, err
		}
		fragments[i] = fragment{ID: name, HTML: text.String()}
	}
	return fragments, nil
}
