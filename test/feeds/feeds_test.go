package feeds

import (
	"strings"
	"sync"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

var (
	must   = testkit.Must
	failIf = testkit.FailIf
	stopIf = testkit.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestFetchGetsWhatWasWrittenFromEachServer also makes the table of docs/feeds.md, when it is told to.
func TestFetchGetsWhatWasWrittenFromEachServer(t *testing.T) {
	var mu sync.Mutex
	rows := map[int]row{}
	t.Cleanup(func() { t.Logf("%+v", rows) })
	number := 0
	for _, s := range debianServers {
		for _, i := range s.installations() {
			place := number
			number++
			t.Run(strings.ReplaceAll(s.name, "`", ""), func(t *testing.T) {
				t.Parallel()
				s.require(t)
				r := observe(t, &s, i)
				mu.Lock()
				defer mu.Unlock()
				rows[place] = r
			})
		}
	}
}
