package handlers

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

// doubtful is a queue with its daemons and a pool that fetches one feed, which has an ETag. A guard doubts it below two rows.
type doubtful struct {
	*fixture.Queue
	t    *testing.T
	dir  string
	feed atomic.Pointer[string]
	seen string // the journal up to here
}

func startDoubtful(t *testing.T, then policy.OnSuspect) *doubtful {
	t.Helper()
	g := &doubtful{Queue: fixture.Live(t, testkit.Miniredis(t)), t: t, dir: t.TempDir(), seen: "0"}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := *g.feed.Load()
		etag := `"` + digest(body) + `"`
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Type", "text/csv")
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, body)
	})
	fetch := check.Got(Fetch(g.dir, FetchOptions{Client: ownClient(t)}))(t)
	pool := check.Got(worker.New(g.Store.Pool(), fetch, worker.Config{}))(t)
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(g.Store), dispatcher.Config{}))(t)
	p := check.Got(poller.New(poller.RoomsOf(g.Store), poller.Config{}))(t)
	check.Run(t, d.Run, p.Run, pool.Run)
	g.set(twoRows)
	g.Command(fmt.Sprintf(`{"type":"put","uid":"m","payload":{"input_url":%q},"policy":{"retries":["0s","0s"],"guard":[{"rows":{"min":2}}],"on_suspect":%q}}`, address+"/feed", then))
	g.await(model.EventSuccess)
	return g
}

const twoRows, noRows = "id\n1\n2\n", "id\n"

func (g *doubtful) set(body string) { g.feed.Store(&body) }

// await follows the journal up to the next end of an attempt, which must be this one.
func (g *doubtful) await(want model.Event) {
	g.t.Helper()
	for {
		streams := check.Got(g.Redis.XRead(g.t.Context(), &redis.XReadArgs{Streams: []string{g.Store.Keys.Journal, g.seen}, Count: 1}).Result())(g.t)
		entry := streams[0].Messages[0]
		g.seen = entry.ID
		switch got := model.Event(fmt.Sprint(entry.Values["event"])); got {
		case want:
			return
		case model.EventSuccess, model.EventFailure, model.EventSuspect, model.EventTimeout:
			g.t.Fatalf("got %s: %v, want %s", got, entry.Values, want)
		}
	}
}

func (g *doubtful) holds(want string) {
	g.t.Helper()
	got := string(check.Got(os.ReadFile(filepath.Join(g.dir, "m")))(g.t))
	if got != want {
		g.t.Errorf("the file holds %q, want %q", got, want)
	}
}

func TestADoubtedDownloadStaysAFailureThoughTheServerSaysThatNothingHasChanged(t *testing.T) {
	t.Parallel()
	g := startDoubtful(t, policy.SuspectFail)
	g.set(noRows)
	g.Command(`{"type":"run","uid":"m"}`)
	for range 3 { // and two retries
		g.await(model.EventFailure)
		g.holds(twoRows)
	}
}

func TestARejectedDownloadIsDoubtedAgainAndAnAcceptedOneReplacesTheFile(t *testing.T) {
	t.Parallel()
	g := startDoubtful(t, policy.SuspectHold)
	g.set(noRows)
	g.Command(`{"type":"run","uid":"m"}`)
	g.await(model.EventSuspect)
	g.Command(`{"type":"reject","uid":"m"}`)
	g.await(model.EventFailure)
	g.await(model.EventSuspect)
	g.holds(twoRows)
	g.Command(`{"type":"accept","uid":"m"}`)
	g.await(model.EventSuccess)
	g.holds(noRows)
	g.Command(`{"type":"run","uid":"m"}`) // it has not changed since
	g.await(model.EventSuccess)
	g.holds(noRows)
}
