package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	html "html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
)

// Dashboard serves the pages of queues over HTTP.
type Dashboard struct {
	config    Config
	listener  net.Listener
	sites     sites
	templates map[string]*html.Template // by the file of the page
	auth      auth
	streams   streams
	ending    chan struct{} // closed by Run when it stops, to end streams
	plays     chan struct{} // holds one for each simulation that runs
}

type site struct {
	queue   *store.Queue
	base    string // of its addresses, as in /q/bigtables
	observe func() func(error)
	planner *planner
	version func(ctx context.Context) (string, error) // it differs as soon as a page may
	beat    atomic.Pointer[beat]
}

// sites are sorted by name. It is safe for concurrent use.
type sites struct {
	mu   sync.Mutex
	list []*site // guarded by mu; replaced, never changed
}

func (s *sites) all() []*site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *sites) add(queue *store.Queue, observe func() func(error)) *site {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &site{queue: queue, base: "/q/" + url.PathEscape(queue.Name), observe: observe, planner: &planner{wanted: make(chan struct{}, 1)}}
	one.version = func(ctx context.Context) (string, error) {
		version, err := report.OfQueue(queue).Version(ctx)
		return version + one.planner.version(), err
	}
	one.beat.Store(newBeat())
	s.list = append(slices.Clone(s.list), one)
	slices.SortFunc(s.list, func(a, b *site) int { return cmp.Compare(a.queue.Name, b.queue.Name) })
	return one
}

// Open begins to listen. Whoever opens a dashboard runs it: Run closes it.
func Open(queues []*store.Queue, config Config) (*Dashboard, error) {
	d, err := build(queues, config)
	if err != nil {
		return nil, err
	}
	if d.listener, err = net.Listen("tcp", d.config.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return d, nil
}

// build makes a dashboard that does not listen.
func build(queues []*store.Queue, config Config) (*Dashboard, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, err
	}
	templates, err := parseTemplates()
	if err != nil {
		return nil, err
	}
	d := &Dashboard{
		config: config, templates: templates, streams: streams{clients: map[string]int{}},
		auth:   auth{tokens: config.Tokens, clock: config.Clock, proxies: config.TrustedProxies, ended: map[string]time.Time{}, tries: newTries(config.Clock)},
		ending: make(chan struct{}), plays: make(chan struct{}, maxPlays),
	}
	for _, queue := range queues {
		d.sites.add(queue, config.Observe)
	}
	return d, nil
}

// URL is the address for a browser.
func (d *Dashboard) URL() string { return "http://" + d.listener.Addr().String() + "/" }

// Close ends a dashboard that was never run.
func (d *Dashboard) Close() { _ = d.listener.Close() }

// Show adds the pages of one more queue, and asks whether it changes until ctx ends. observe takes the place of Config.Observe. A queue is
// added once: its pages stay until the dashboard ends.
func (d *Dashboard) Show(ctx context.Context, queue *store.Queue, observe func() func(error)) {
	d.follow(ctx, d.sites.add(queue, observe))
}

// follow watches and plans a queue until ctx ends.
func (d *Dashboard) follow(ctx context.Context, site *site) {
	var planning sync.WaitGroup
	planning.Go(func() { site.planner.run(ctx, site.queue, d.config.Clock) })
	d.watch(ctx, site)
	planning.Wait()
}

// Run serves until ctx ends, then lets answers under way finish for no longer than the grace.
func (d *Dashboard) Run(ctx context.Context) error {
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	following, stopFollowing := context.WithCancel(ctx)
	server := &http.Server{
		Handler: d.Handler(), BaseContext: func(net.Listener) context.Context { return answering },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	var running sync.WaitGroup
	for _, site := range d.sites.all() {
		running.Go(func() { d.follow(following, site) })
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(d.listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		close(d.ending)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.Grace)
		_ = server.Shutdown(grace) // the rest is closed below
		cancel()
		_ = server.Close()
		err = <-served
	}
	stopAnswering()
	stopFollowing()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the dashboard: %w", err)
}
