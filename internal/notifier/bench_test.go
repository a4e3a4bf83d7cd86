package notifier

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secrets(name string) string {
	return map[string]string{"SECRET": testSecret, "PASSWORD": "p4ss"}[name]
}

// bench is a queue with a notifier that goes by the clock of the test.
type bench struct {
	*fixture.Queue
	*Notifier
	t   *testing.T
	log bytes.Buffer
}

func setup(t *testing.T, server *testkit.Server, routes string) *bench {
	t.Helper()
	b := &bench{Queue: fixture.New(t, server), t: t}
	b.Notifier = b.another(routes)
	return b
}

// another is a second notifier of the queue.
func (b *bench) another(routes string) *Notifier {
	b.t.Helper()
	read, err := Read("routes.yaml", strings.NewReader(routes), secrets)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(read.Close)
	log := zerolog.New(&b.log)
	n, err := New(b.Store, read, Config{Log: &log, Adopt: time.Millisecond})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// tell writes entries to the outbox as commit.lua does.
func (b *bench) tell(entries ...[]string) {
	b.t.Helper()
	for _, fields := range entries {
		if err := b.Redis.Do(b.t.Context(), append([]any{"XADD", b.Store.Keys.Outbox(), "*"}, anys(fields)...)...).Err(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func disabled(uid, reason string) []string {
	return []string{"event", "disabled", "uid", uid, "at", "2026-11-21T07:00:00.000Z", "attempt_no", "3", "reason", reason, "refresh_why", "final: not retryable"}
}

// round routes everything, and tells everybody whose time has come.
func (b *bench) round(n *Notifier) {
	b.t.Helper()
	for more := true; more; {
		var err error
		if more, err = n.Route(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		more = more && b.Redis.XLen(b.t.Context(), b.Store.Keys.Outbox()).Val() > 0 && b.unread() > 0
	}
	for _, name := range slices.Sorted(channelNames(n)) {
		for more := true; more; {
			var err error
			if more, err = n.Tell(b.t.Context(), name); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// unread is how many entries no notifier has acknowledged.
func (b *bench) unread() int {
	b.t.Helper()
	if _, err := b.Store.TrimOutbox(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return int(b.Redis.XLen(b.t.Context(), b.Store.Keys.Outbox()).Val())
}

func channelNames(n *Notifier) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range n.routes.channels {
			if !yield(name) {
				return
			}
		}
	}
}

// save saves a model with labels and a payload under a policy.
func (b *bench) save(uid, fields string) {
	b.t.Helper()
	var value any
	if err := json.Unmarshal([]byte(`{"uid":"`+uid+`",`+fields+`}`), &value); err != nil {
		b.t.Fatal(err)
	}
	definition, err := model.ParseDefinition(value)
	if err != nil {
		b.t.Fatal(err)
	}
	records, err := b.Store.Load(b.t.Context(), []string{uid})
	if err != nil {
		b.t.Fatal(err)
	}
	p := policy.Default()
	if definition.Inline != nil {
		definition.Complete(p)
		p = *definition.Inline
	}
	now := b.Clock.Now()
	decision, _, err := records[uid].Put(definition, p, false, now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Commit(now, records[uid].Decide(decision, now))
}

// hook is a real HTTP server that answers as it is told, and then 200.
type hook struct {
	*httptest.Server
	mu      sync.Mutex // guards what follows
	answers []int
	got     []received
}

type received struct {
	id, at, signature string
	body              []byte
}

func newHook(t *testing.T, answers ...int) *hook {
	h := &hook{answers: answers}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, received{r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), body})
	if len(h.answers) > 0 {
		w.WriteHeader(h.answers[0])
		h.answers = h.answers[1:]
	}
}

func (h *hook) all() []received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// post is a real SMTP server that takes what it is given, unless it is told to refuse.
type post struct {
	*smtp.Server
	address string
	mu      sync.Mutex // guards what follows
	refuse  []error
	got     []letter
	users   []string
}

type letter struct {
	from, to string
	raw      string
}

func newPost(t *testing.T, change func(*smtp.Server), refuse ...error) *post {
	t.Helper()
	p := &post{refuse: refuse}
	p.Server = smtp.NewServer(p)
	p.Domain, p.AllowInsecureAuth = "localhost", false
	if change != nil {
		change(p.Server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	served := make(chan struct{})
	go func() { defer close(served); _ = p.Serve(listener) }()
	t.Cleanup(func() { _ = p.Close(); <-served })
	return p
}

func (p *post) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{post: p}, nil }

func (p *post) letters() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

type session struct {
	post *post
	letter
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.post.mu.Lock()
		defer s.post.mu.Unlock()
		s.post.users = append(s.post.users, user+":"+password)
		if password != "p4ss" {
			return errors.New("wrong password")
		}
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error { s.to += to; return nil }

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	s.raw = string(raw)
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	if len(s.post.refuse) > 0 {
		err, s.post.refuse = s.post.refuse[0], s.post.refuse[1:]
		return err
	}
	s.post.got = append(s.post.got, s.letter)
	return err
}

func (*session) Reset() {}

func (*session) Logout() error { return nil }

func (l *letter) parse(t *testing.T) *mail.Message {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(l.raw))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (b *bench) undelivered() []scripts.Undelivered {
	b.t.Helper()
	all, err := b.Store.Undelivered(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}
