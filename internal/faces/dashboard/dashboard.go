package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// Dashboard serves the pages of queues over HTTP.
type Dashboard struct {
	config   Config
	listener net.Listener
	shown    shown
	theming  map[string]*template // by the path of the page
	csrf     string               // stands in each form, and is new with each process
	tellings tellings
	door     door
	streams  streams
	ending   chan struct{} // closed when it is told to stop: streams, which would go on for ever, end
	plays    chan struct{} // holds one for each simulation that runs
}

// site is the pages of one queue.
type site struct {
	queue   *store.Queue
	base    string             // of its addresses, as in /q/bigtables
	observe func() func(error) // nil: nobody is told
	sampler sampler
}

// shown are the sites, in the order of their names. It is safe for concurrent use.
type shown struct {
	mu    sync.Mutex
	sites []*site // guarded by mu; a slice that was handed out is not changed
}

func (s *shown) all() []*site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sites
}

func (s *shown) add(queue *store.Queue, observe func() func(error)) *site {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &site{queue: queue, base: "/q/" + url.PathEscape(queue.Name), observe: observe}
	s.sites = append(slices.Clone(s.sites), one)
	slices.SortFunc(s.sites, func(a, b *site) int { return cmp.Compare(a.queue.Name, b.queue.Name) })
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
	d := &Dashboard{config: config, csrf: rand.Text(), ending: make(chan struct{}), door: door{token: config.Token, clock: config.Clock, proxies: config.TrustedProxies}, plays: make(chan struct{}, mostPlays)}
	d.streams.tick, d.streams.clock = config.Tick, config.Clock
	for _, queue := range queues {
		d.shown.add(queue, d.config.Observe)
	}
	var err error
	d.theming, err = parseTemplates()
	return d, err
}

// URL is the address for a browser.
func (d *Dashboard) URL() string { return "http://" + d.listener.Addr().String() + "/" }

// Close ends a dashboard that was never run.
func (d *Dashboard) Close() { _ = d.listener.Close() }

// Show adds the pages of one more queue, and reads its counters until ctx ends. observe takes the place of Config.Observe. A queue is
// added once: its pages stay until the dashboard ends.
func (d *Dashboard) Show(ctx context.Context, queue *store.Queue, observe func() func(error)) {
	d.sample(ctx, d.shown.add(queue, observe))
}

// Run serves until ctx ends, then lets answers under way finish for no longer than the grace.
func (d *Dashboard) Run(ctx context.Context) error {
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	sampling, stopSampling := context.WithCancel(ctx)
	server := &http.Server{
		Handler: d.Handler(), BaseContext: func(net.Listener) context.Context { return answering },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: writeTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	var running sync.WaitGroup
	for _, site := range d.shown.all() {
		running.Go(func() { d.sample(sampling, site) })
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(d.listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		close(d.ending)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.Grace)
		_ = server.Shutdown(grace) // what it leaves is closed below
		cancel()
		_ = server.Close()
		err = <-served
	}
	stopAnswering()
	stopSampling()
	d.streams.wait()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the dashboard: %w", err)
}

// writeTime bounds an answer that is no stream.
const writeTime = 30 * time.Second

// site is that of a name; nil: none.
func (d *Dashboard) site(name string) *site {
	for _, site := range d.shown.all() {
		if site.queue.Name == name {
			return site
		}
	}
	return nil
}
