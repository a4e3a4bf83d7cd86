package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

const table = "id,name\n1,\"a\nb\"\n2,c\n"

// feed fetches from a server into a directory.
type feed struct {
	t       *testing.T
	dir     string
	url     string
	handler worker.Handler
	said    []model.Message
}

func newFeed(t *testing.T, serveFeed http.HandlerFunc, options FetchOptions) *feed {
	t.Helper()
	f := &feed{t: t, dir: filepath.Join(t.TempDir(), "feeds"), url: serve(t, serveFeed) + "/feed.csv"}
	options.Client = ownClient(t)
	handler, err := Fetch(f.dir, options)
	must(t, err)
	f.handler = handler
	return f
}

// fetch runs the handler as a pool would, and returns what the poller would understand.
func (f *feed) fetch(ctx context.Context, url string) model.Message {
	f.t.Helper()
	payload, err := json.Marshal(map[string]string{"input_url": url})
	if err != nil {
		f.t.Fatal(err)
	}
	a := &worker.Attempt{UID: "tbl/1", AttemptUID: "a1", Payload: payload}
	said, end := try(ctx, f.t, f.handler, a)
	f.said = append(f.said, said...)
	if ctx.Err() == nil {
		f.clean()
	}
	return end
}

// clean checks that no temporary file is left.
func (f *feed) clean() {
	f.t.Helper()
	for _, name := range f.files() {
		if strings.HasSuffix(name, tempSuffix) {
			f.t.Errorf("left behind: %s", name)
		}
	}
}

func (f *feed) files() (names []string) {
	f.t.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *feed) holds(want string) {
	f.t.Helper()
	got, err := os.ReadFile(filepath.Join(f.dir, "tbl%2F1"))
	if err != nil || string(got) != want {
		f.t.Errorf("the file holds %.60q, %v; want %.60q", got, err, want)
	}
}

var success = model.Message{Type: model.MessageSuccess}

func unchanged() model.Message { return model.Message{Type: model.MessageSuccess, Changed: new(bool)} }

func (f *feed) expect(want, got model.Message) {
	f.t.Helper()
	if diff := cmp.Diff(want, got, whole); diff != "" {
		f.t.Errorf("told (-want +got):\n%s", diff)
	}
}
