package feeds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

// feed is one file of a site, and the model that is refreshed from it.
type feed struct {
	*site
	name    string
	dir     string // of what was downloaded
	handler worker.Handler
}

// feedOf makes the model. It has the name of the file.
func (s *site) feed(name string) *feed {
	f := &feed{site: s, name: name, dir: s.TempDir()}
	f.handler = check.Got(handlers.Fetch(f.dir, handlers.FetchOptions{AllowPrivate: true}))(s.T)
	return f
}

// fetch runs one planned attempt, and returns its last status.
func (f *feed) fetch() (status string) {
	f.Helper()
	payload := check.Got(json.Marshal(map[string]string{"input_url": "http://" + f.address + "/" + f.name}))(f.T)
	attempt := &worker.Attempt{UID: "tbl_1", AttemptUID: "a1", AttemptNo: 1, Purpose: model.ForPlanned, Payload: payload}
	told := check.Got(worker.Try(f.Context(), f.handler, attempt))(f.T)
	end := told[len(told)-1]
	stopIf(f.T, end.Type != model.MessageSuccess, "%s: want a success, got %+v", f.name, end)
	return told[len(told)-2].Status
}

func (f *feed) holds(want []byte) bool {
	return bytes.Equal(want, check.Got(os.ReadFile(filepath.Join(f.dir, "tbl_1")))(f.T))
}

// notices reports whether an attempt gets what was written. A server may answer from memory for some seconds; one that answers so for longer than
// patience does it for ever, or until a time of its own ends.
func (f *feed) notices(want []byte, patience time.Duration) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); ; <-tick.C {
		if f.fetch(); f.holds(want) {
			return true
		}
		if time.Now().After(until) {
			return false
		}
	}
}

// table is a CSV of 200,000 bytes. Each version of it has as many.
func table(version int) []byte {
	text := bytes.NewBufferString("id,name\n")
	for row := 1; text.Len() < 200_000; row++ {
		fmt.Fprintf(text, "%d,the name of %d in version %d\n", row, row, version)
	}
	text.Truncate(199_999)
	return append(text.Bytes(), '\n')
}

func TestEveryVersionOfTheTableHasAsManyBytes(t *testing.T) {
	for version := range 3 {
		if got := len(table(version)); got != 200_000 {
			t.Errorf("version %d: want 200,000 bytes, got %d", version, got)
		}
	}
}
