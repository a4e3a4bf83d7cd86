package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// gag sits between a client and Redis, and can swallow the bytes of the open connections, which stay open.
type gag struct {
	t     *testing.T
	redis string
	URL   string

	mu    sync.Mutex
	mutes []*atomic.Bool // guarded by mu: one for each connection
	all   bool           // guarded by mu: new connections are mute, too

	losing atomic.Pointer[string] // a connection breaks instead of a reply that has this text; nil: none
}

func newGag(t *testing.T, redis string) *gag {
	t.Helper()
	listener := check.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	g := &gag{t: t, redis: redis, URL: "redis://" + listener.Addr().String()}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.serve(conn)
		}
	}()
	return g
}

func (g *gag) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", g.redis)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	mute := &atomic.Bool{}
	g.mu.Lock()
	mute.Store(g.all)
	g.mutes = append(g.mutes, mute)
	g.mu.Unlock()
	go func() {
		_, _ = io.Copy(&gagged{client, mute, &g.losing}, server)
		if !mute.Load() {
			_ = client.Close()
		}
	}()
	_, _ = io.Copy(&gagged{server, mute, &atomic.Pointer[string]{}}, client)
}

// gagged is a connection that takes all writes, and sends nothing while it is mute.
type gagged struct {
	net.Conn
	mute   *atomic.Bool
	losing *atomic.Pointer[string]
}

func (g *gagged) Write(text []byte) (int, error) {
	if g.mute.Load() {
		return len(text), nil
	}
	if losing := g.losing.Load(); losing != nil && bytes.Contains(text, []byte(*losing)) {
		return 0, io.ErrClosedPipe
	}
	return g.Conn.Write(text)
}

// silence swallows what comes from now on: over the open connections, or over all that are made later, too.
func (g *gag) silence(all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = all
	for _, mute := range g.mutes {
		mute.Store(true)
	}
}

// heardSoon returns the worker's next message, within the 15 s of its guarantee.
func heardSoon(t *testing.T, client redis.UniversalClient) string {
	t.Helper()
	begun := time.Now()
	said := heard(t, client)
	failIf(t, time.Since(begun) > 15*time.Second+room, "expected it within 15 s, it came after %v", time.Since(begun))
	return said
}

func TestANodeWorkerTakesAgainWhenItsConnectionsFallSilent(t *testing.T) {
	long.Only(t)
	for how, program := range map[string]string{"taking": handlers["node"], "plain": handlers["node"], "a client that is handed over": handedOver} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := testkit.Redis(t)
			g, client := newGag(t, s.Addr), s.Client(t)
			plain := map[string]string{"plain": "PLAIN=1"}[how]
			worker := startHandler(t, "node", program, g.URL, "REFRESHD_QUEUE=q", plain)
			for _, uid := range []string{"a", "b", "c"} {
				push(t, client, uid, "")
				check.Equal(t, heardSoon(t, client), "started "+uid)
				check.Equal(t, heardSoon(t, client), "success "+uid)
				blocked := func(n string) func() bool {
					return func() bool { return strings.Contains(client.Info(t.Context(), "clients").Val(), "blocked_clients:"+n) }
				}
				check.Eventually(t, "it waits, and so has heard that all was pushed", blocked("1"))
				g.silence(false)
				check.Eventually(t, "nobody waits on a silent connection: a plain worker would lose an entry so", blocked("0"))
			}
			check.Equal(t, worker.Stop(), 0)
		})
	}
}

// TestANodeWorkerEndsWithin15sWhateverRedisDoes lets it have sixteen attempts of eight parts in hand, whose work does not end by itself.
func TestANodeWorkerEndsWithin15sWhateverRedisDoes(t *testing.T) {
	long.Only(t)
	const hangs = `new (require("refreshd.js").Worker)((a) => a.payload.deaf ? new Promise(() => {}) : a.sleep(600), { plain: process.env.PLAIN === "1", concurrency: 16 }).run()`
	for how, strike := range map[string]func(t *testing.T, s *testkit.Server, g *gag){
		"frozen": func(t *testing.T, s *testkit.Server, _ *gag) {
			s.Signal(t, syscall.SIGSTOP)
			t.Cleanup(func() { s.Signal(t, syscall.SIGCONT) })
		},
		"killed": func(t *testing.T, s *testkit.Server, _ *gag) { s.Kill(t) },
		"mute":   func(_ *testing.T, _ *testkit.Server, g *gag) { g.silence(false) },
		"mute for good": func(_ *testing.T, _ *testkit.Server, g *gag) {
			g.silence(true)
		},
	} {
		for _, plain := range []string{"", "1"} {
			for _, inHand := range []int{0, 16} {
				t.Run(fmt.Sprintf("%s, plain %s, %d in hand", how, plain, inHand), func(t *testing.T) {
					t.Parallel()
					s := testkit.Redis(t, "--save", "")
					g, client := newGag(t, s.Addr), s.Client(t)
					must(t, client.HSet(t.Context(), "{q}:settings", "parts", 8).Err())
					worker := startHandler(t, "node", hangs, g.URL, "REFRESHD_QUEUE=q", "PLAIN="+plain)
					for i := range inHand {
						part, more := fmt.Sprintf("{q:%d}", i%8), ""
						if i < 8 {
							more = `,"deaf":1`
						}
						must(t, client.HSet(t.Context(), part+":model:m", "attempt_uid", "a").Err())
						must(t, client.RPush(t.Context(), part+"-input", `{"big_table_uid":"m","refresh_attempt_uid":"a"`+more+`}`).Err())
						check.Equal(t, heardIn(t, client, part), "started m")
					}
					check.Eventually(t, "it waits for work", func() bool {
						return inHand > 0 || strings.Contains(client.Info(t.Context(), "clients").Val(), "blocked_clients:1")
					})
					strike(t, s, g)
					begun := time.Now()
					check.Equal(t, worker.Stop(), 0)
					took := time.Since(begun)
					failIf(t, took > 15*time.Second+room, "expected it to end within 15 s, it took %v", took)
				})
			}
		}
	}
}

func TestANodeApplicationIsAnsweredThoughItsConnectionsFallSilent(t *testing.T) {
	long.Only(t)
	t.Parallel()
	q := fixture.Live(t, testkit.Redis(t))
	p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{}))(t)
	check.Run(t, p.Run)
	g, gates := newGag(t, q.Server.Addr), t.TempDir()
	const saves = `const { existsSync } = require("fs"); const { Client } = require("refreshd.js"); const shop = new Client();
const gate = async (name) => { while (!existsSync(process.env.GATES + "/" + name)) await new Promise((end) => setTimeout(end, 20)); };
(async () => { for (const uid of ["a", "b", "c"]) { await gate(uid); console.log(uid, (await shop.put(uid, {})).outcome); } })()`
	app := startHandler(t, "node", saves, g.URL, "REFRESHD_QUEUE="+q.Store.Keys.Queue, "GATES="+gates)
	save := func(uid string) { t.Helper(); must(t, os.WriteFile(filepath.Join(gates, uid), nil, 0o600)) }
	save("a")
	app.AwaitOutput(t, "a applied")
	g.silence(false)
	save("b")
	app.AwaitOutput(t, "b applied")
	g.silence(true)
	save("c")
	check.Equal(t, app.Wait(), 1)
	failIf(t, !strings.Contains(app.Output(), "does not answer"), "expected to be told, found %s", app.Output())
}
