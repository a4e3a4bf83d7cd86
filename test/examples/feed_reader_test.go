package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestTheFeedReaderReadsWhatHasChangedWaitsAsItIsToldAndStopsAtAFeedThatIsGone(t *testing.T) {
	long.Only(t)
	t.Parallel()
	web := &feeds{}
	s := newStack(t, "feed-reader", "python", "http://feeds/", web.serve(t))
	web.dir = filepath.Join(s.dir, "feeds")
	s.follow()
	failIf(t, web.notModified() == 0, "want a feed that has not changed answered with 304, it was not")

	// Two hours are longer than the hour of its schedule, which waits too.
	waits := func(uid string, status int) {
		web.fail(status, "7200")
		s.runModel(uid)
		check.Eventually(t, uid+" waits for two hours", func() bool {
			at, _ := time.Parse(time.RFC3339, s.model(uid, "refresh_at"))
			return time.Until(at) > 110*time.Minute
		})
	}
	waits("blog", 503)

	web.fail(410, "")
	s.runModel("blog")
	check.Eventually(t, "it is stopped, and its owner reads why", func() bool {
		return strings.Contains(s.model("blog", "refresh_disabled_user_friendly_reason"), "gone for good")
	})
	web.fail(0, "")
	models := filepath.Join(s.dir, "models", "feeds.yaml")
	text := check.Got(os.ReadFile(models))(t)
	must(t, os.WriteFile(models, []byte(strings.Replace(string(text), "blog.xml", "moved/blog.xml", 1)), 0o600))
	check.Got(s.run("docker compose run --rm models"))(t)
	check.Eventually(t, "a new address mends it", func() bool { return s.model("blog", "user_friendly_status") == "1 items" })

	waits("news", 429)
}
