package notifier

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

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

func (b *bench) another(routes string) *Notifier {
	b.t.Helper()
	read := check.Got(Read("routes.yaml", strings.NewReader(routes), secrets))(b.t)
	b.t.Cleanup(read.Close)
	log := zerolog.New(&b.log)
	n := check.Got(New(b.Store, read, Config{Log: &log}))(b.t)
	n.adopt = time.Millisecond
	return n
}

// tell writes entries to the outbox as txn.lua does.
func (b *bench) tell(entries ...[]string) {
	b.t.Helper()
	for _, fields := range entries {
		must(b.t, b.Redis.XAdd(b.t.Context(), &redis.XAddArgs{Stream: b.Store.Keys.Outbox, Values: fields}).Err())
	}
}

func disabled(uid, reason string) []string {
	return []string{"event", "disabled", "uid", uid, "at", "2026-11-21T07:00:00.000Z", "attempt_no", "3", "reason", reason, "refresh_why", "disabled, not retryable"}
}

// round routes everything, and delivers to everybody whose time has come.
func (b *bench) round(n *Notifier) {
	b.t.Helper()
	repeat := func(do func() (more bool, err error)) {
		for more := true; more; {
			more = check.Got(do())(b.t)
		}
	}
	repeat(func() (bool, error) {
		more, err := n.Route(b.t.Context())
		return more && b.unread() > 0, err
	})
	for _, name := range slices.Sorted(maps.Keys(n.routes.channels)) {
		repeat(func() (bool, error) { return n.Deliver(b.t.Context(), name) })
	}
}

// after turns the clock, and lets the notifier do a round.
func (b *bench) after(wait time.Duration) {
	b.t.Helper()
	b.Clock.Turn(wait)
	b.round(b.Notifier)
}

// unread is how many entries no notifier has acknowledged.
func (b *bench) unread() int {
	b.t.Helper()
	must(b.t, check.Only(outbox.Of(b.Store).TrimOutbox(b.t.Context())))
	return int(b.Redis.XLen(b.t.Context(), b.Store.Keys.Outbox).Val())
}

func (b *bench) save(uid, fields string) {
	b.t.Helper()
	var value any
	must(b.t, json.Unmarshal([]byte(`{"uid":"`+uid+`",`+fields+`}`), &value))
	definition := check.Got(model.ParseDefinition(value))(b.t)
	records := check.Got(b.Store.Load(b.t.Context(), []string{uid}))(b.t)
	p := policy.Default()
	if definition.Inline != nil {
		definition.Complete(p)
		p = *definition.Inline
	}
	now := b.Clock.Now()
	decision, _, err := records[uid].Put(definition, p, false, now)
	must(b.t, err)
	b.Commit(now, records[uid].Decide(decision, now))
}

// hook is a real HTTP server that answers as it is told, and then 200.
type hook struct {
	*httptest.Server
	mu      sync.Mutex // guards what follows
	answers []int
	headers map[string]string // of these answers
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
		for name, value := range h.headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(h.answers[0])
		h.answers = h.answers[1:]
	}
}

func (h *hook) all() []received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

func (b *bench) undelivered() []outbox.Undelivered {
	b.t.Helper()
	all := check.Got(outbox.Of(b.Store).Undelivered(b.t.Context()))(b.t)
	return all
}
