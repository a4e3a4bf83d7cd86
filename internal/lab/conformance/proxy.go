package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/model"
)

// proxy relays between a worker and Redis: it counts commands and round trips, can cut or mute all connections, and can answer like a Redis
// that takes nothing for a moment.
type proxy struct {
	listener net.Listener
	redis    string // host:port
	copying  sync.WaitGroup
	begun    chan struct{} // closed by the first command

	losing     atomic.Bool // the next result is lost: its connection breaks before Redis gets it
	muting     atomic.Bool // the next entry that is taken is lost: the connection on which it goes becomes mute
	clock      func() time.Time
	away       atomic.Bool // new connections are closed at once
	commands   atomic.Int64
	largest    atomic.Int64            // message, in bytes
	roundTrips atomic.Int64            // requests that followed a reply, or were the first
	refusing   atomic.Pointer[refusal] // an empty one: nothing is refused

	mu     sync.Mutex
	open   map[*link]bool         // guarded by mu
	outage bool                   // guarded by mu: new connections wait until over is signalled
	over   sync.Cond              // of mu
	said   map[saying][]time.Time // guarded by mu: when the worker has said it
}

func newProxy(redis string, clock func() time.Time) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, redis: redis, clock: clock, open: map[*link]bool{}, said: map[saying][]time.Time{}, begun: make(chan struct{})}
	p.over.L = &p.mu
	p.refusing.Store(&refusal{})
	p.copying.Go(func() {
		for {
			worker, err := listener.Accept()
			if err != nil {
				return
			}
			p.copying.Go(func() { p.serve(worker) })
		}
	})
	return p, nil
}

// serve carries one connection until either side ends it.
func (p *proxy) serve(worker net.Conn) {
	defer func() { _ = worker.Close() }()
	redis, err := net.DialTimeout("tcp", p.redis, 5*time.Second)
	if err != nil || p.away.Load() {
		return
	}
	defer func() { _ = redis.Close() }()
	l := &link{proxy: p, worker: worker, redis: redis}
	l.answered.Store(true)
	p.enter(l)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, l)
	}()
	ended := make(chan struct{})
	p.copying.Go(func() {
		defer close(ended)
		p.ask(l, bufio.NewReader(worker))
		_ = redis.Close()
	})
	_, _ = io.Copy(l, redis)
	if l.muted.Load() {
		<-ended
	}
}

// link is a connection of the worker.
type link struct {
	proxy         *proxy
	worker, redis net.Conn
	answered      atomic.Bool // a reply has come since it was asked last
	muted         atomic.Bool // it carries nothing any more, and nothing closes it
	script        atomic.Bool // the last command takes, where a pop that waits may only look
}

// Write passes on a reply.
func (l *link) Write(reply []byte) (int, error) {
	l.answered.Store(true)
	if l.script.Load() && bytes.Contains(reply, []byte("refresh_attempt_uid")) && l.proxy.muting.Swap(false) {
		l.mute()
	}
	if l.muted.Load() {
		return len(reply), nil
	}
	return l.worker.Write(reply)
}

func (l *link) mute() {
	l.muted.Store(true)
	_ = l.redis.Close() // it waits for nothing any more
}

// ask passes on one command after the other, and counts them, until the worker says no more. A command that is refused becomes one to which Redis
// answers with an error: so that comes in the sequence of all replies.
func (p *proxy) ask(l *link, worker *bufio.Reader) {
	for {
		words, raw, err := readCommand(worker)
		if err != nil {
			return
		}
		if l.muted.Load() {
			continue
		}
		if len(words) > 0 {
			l.script.Store(strings.HasPrefix(strings.ToLower(words[0]), "eval"))
			lose, refused := p.count(words, l.answered.Swap(false))
			if lose {
				return // before Redis got it
			}
			if refused != "" {
				const script = "return redis.error_reply(ARGV[1])"
				raw = fmt.Appendf(nil, "*4\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n$%d\r\n%s\r\n", len(script), script, len(refused), refused)
			}
		}
		_, _ = l.redis.Write(raw) // when that fails the replies end, too
	}
}

// enter waits for the end of an outage.
func (p *proxy) enter(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.outage {
		p.over.Wait()
	}
	p.open[l] = true
}

// count counts a command, and what it says of attempts. It may be to be lost, or refused with an error.
func (p *proxy) count(words []string, roundTrip bool) (lose bool, refused string) {
	refusing := p.refusing.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, word := range words {
		if !strings.HasPrefix(word, "{") {
			continue
		}
		message, err := model.Wire{}.DecodeMessage([]byte(word))
		if err != nil {
			continue
		}
		said := saying{message.AttemptUID, message.Type}
		p.said[said] = append(p.said[said], p.clock())
		p.largest.Store(max(p.largest.Load(), int64(len(word))))
		if len(p.said[said]) <= refusing.times {
			refused = refusing.text
		}
		if said.kind == model.MessageSuccess || said.kind == model.MessageFailure {
			lose = p.losing.Swap(false)
		}
	}
	if refusing.all && !slices.Contains(greetings, strings.ToLower(words[0])) {
		refused = refusing.text
	}
	if p.commands.Add(1) == 1 {
		close(p.begun)
	}
	if roundTrip {
		p.roundTrips.Add(1)
	}
	return lose, refused
}

type saying struct {
	attemptUID string
	kind       model.MessageType
}

// refusal is the error that Redis answers to messages.
type refusal struct {
	text  string
	times int  // so often to each message
	all   bool // and always to all commands
}

// greetings are refused never: with them a connection begins.
var greetings = []string{"hello", "auth", "client", "quit"}

func (p *proxy) refuse(r refusal) { p.refusing.Store(&r) }

// heard is how often the worker has said one of these things of an attempt.
func (p *proxy) heard(attemptUID string, kinds ...model.MessageType) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kind := range kinds {
		times += len(p.said[saying{attemptUID, kind}])
	}
	return times
}

// widest is the longest pause between two pushes of a success since an instant, until now.
func (p *proxy) widest(attemptUID string, since time.Time) (pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range append(p.said[saying{attemptUID, model.MessageSuccess}], p.clock()) {
		if at.After(since) {
			pause, since = max(pause, at.Sub(since)), at
		}
	}
	return pause
}

// cut closes all connections. New ones are not answered until restore is called.
func (p *proxy) cut() { p.interrupt(func(l *link) { _ = l.worker.Close() }) }

// freeze lets all connections stay open and carry nothing. New ones are not answered until restore is called.
func (p *proxy) freeze() { p.interrupt((*link).mute) }

func (p *proxy) interrupt(end func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = true
	for l := range p.open {
		end(l)
	}
}

func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = false
	p.over.Broadcast()
}

// readCommand reads a command, as words and as it came: an array of words, each behind its length, or one line, as people type it.
func readCommand(from *bufio.Reader) (words []string, raw []byte, err error) {
	raw, err = from.ReadBytes('\n')
	count, isArray := sizeIn(raw, '*')
	if err != nil || !isArray {
		return strings.Fields(string(raw)), raw, err
	}
	for range count {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return nil, nil, err
		}
		size, isWord := sizeIn(line, '$')
		if !isWord || size < 0 || size > 512<<20 { // as Redis lets a word be
			return nil, nil, fmt.Errorf("expected the length of a word, found %q", line)
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(from, word); err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, line...), word...)
		words = append(words, string(word[:size]))
	}
	return words, raw, nil
}

// sizeIn reads a line such as "*3" or "$12".
func sizeIn(line []byte, kind byte) (int, bool) {
	text, is := strings.CutPrefix(strings.TrimSpace(string(line)), string(kind))
	size, err := strconv.Atoi(text)
	return size, is && err == nil
}
