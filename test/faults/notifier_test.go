package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// hookWitness takes notices, and leaves some requests without an answer.
type hookWitness struct {
	mu     sync.Mutex // guards what follows
	silent map[int]bool
	asked  int
	told   []string // uids, in the order of the answers
	ids    map[string]int
}

func (w *hookWitness) take(r *http.Request) (answer bool) {
	body, _ := io.ReadAll(r.Body)
	var message struct {
		Data struct{ UID string }
	}
	_ = json.Unmarshal(body, &message)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	w.ids[r.Header.Get("webhook-id")]++
	if w.silent[w.asked] {
		return false
	}
	w.told = append(w.told, message.Data.UID)
	return true
}

// TestAKilledNotifierLosesNoNotice kills the real process while a webhook holds a request, and starts another one each time.
func TestAKilledNotifierLosesNoNotice(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	kills, notices := long.Or(1, 4), 50
	w := &hookWitness{silent: map[int]bool{}, ids: map[string]int{}}
	for i := range kills {
		w.silent[5+10*i] = true
	}
	held, end := make(chan struct{}, kills), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !w.take(r) {
			held <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-end:
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	dir := t.TempDir()
	routes := filepath.Join(dir, "routes.yaml")
	for name, text := range map[string]string{
		"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
		"routes.yaml": fmt.Sprintf("channels:\n  ops: {webhook: %q, secret: {file: %q}, digest: none, timeout: 30s}\n", server.URL, filepath.Join(dir, "secret")) +
			"  copy: {list: copy}\nroutes:\n- {events: [disabled], channels: [ops, copy]}\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for i := range notices {
		entry := &redis.XAddArgs{Stream: f.Store.Keys.Outbox, Values: []string{"event", "disabled", "uid", fmt.Sprint("m", i)}}
		must(t, f.Redis.XAdd(f.ctx, entry).Err())
	}
	start := func() *testkit.Process {
		return f.start("notifier", "--routes", routes, "--tick", "20ms")
	}
	f.start("dispatcher") // trims
	notifier := start()
	for range kills {
		testkit.Await(t, held, "a request that the webhook holds")
		notifier.Kill()
		// What was in hand is another one's when its time has come: here at once.
		for _, recipient := range f.Redis.ZRange(f.ctx, f.Store.Keys.Recipients("ops"), 0, -1).Val() {
			f.Redis.ZAdd(f.ctx, f.Store.Keys.Recipients("ops"), redis.Z{Member: recipient})
		}
		notifier = start()
	}
	testkit.Eventually(t, "each notice is told", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(slices.Compact(slices.Sorted(slices.Values(w.told)))) >= notices
	})
	testkit.Eventually(t, "nothing is left", func() bool {
		return f.Redis.Exists(f.ctx, f.Store.Keys.Notices("ops"), f.Store.Keys.Deliveries).Val() == 0
	})
	stopAll(t, notifier)
	w.mu.Lock()
	defer w.mu.Unlock()
	if told := slices.Compact(slices.Sorted(slices.Values(w.told))); len(told) != notices || len(w.ids) != notices {
		t.Errorf("told %v under %d ids, want each, and those that were in hand repeated under their ids", w.told, len(w.ids))
	}
	copied := f.Redis.LLen(f.ctx, f.Store.Keys.Told("copy")).Val()
	failIf(t, copied < int64(notices), "want all notices in the list, got %d", copied)
}
