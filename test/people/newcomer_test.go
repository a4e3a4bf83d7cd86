package people

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/internal/testkit/post"
)

const ownWorker = `import urllib.error
import urllib.request

import refreshd


def refresh(attempt):
    try:
        with urllib.request.urlopen(attempt.payload["input_url"]) as feed:
            rows = feed.read().count(b"\n")
    except urllib.error.HTTPError as error:
        raise refreshd.Failure("HTTP %d" % error.code, error_type="http_%d" % error.code,
                               user_friendly_reason="Your feed answers with HTTP %d." % error.code)
    attempt.status("%d rows" % rows, 100)


refreshd.Worker(refresh).run()
`

const ownPolicy = `- This policy is called mine
- Allow 1 minute for a response
- Never retry on http_404
- On the first failure, give up:
  - Disable auto-refresh
  - Email the customer at owner_email of the payload that the refresh has been disabled
- Email the customer when it recovers
`

func TestANewcomerInstallsAReleaseSeesWhyTheirTableFailsGetsTheMailMendsItAndSeesItRecover(t *testing.T) {
	long.Only(t)
	t.Parallel()
	for program, debian := range map[string]string{"curl": "curl", "redis-cli": "redis-tools", "pip3": "python3-pip"} {
		testkit.RequireProgram(t, program, debian)
	}
	python, environ := testkit.Interpreter(t, "python")
	tab, mail := browser.Open(t), post.Open(t, nil)
	feeds := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/feed.csv" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("sku,price\n1,2\n3,4\n"))
	})
	dist, version := release(t)
	downloads := serve(t, http.FileServer(http.Dir(dist)).ServeHTTP)

	// Without Go, a clone and a Redis: install the program, and the client beside the redis-py of the system.
	me := &desk{t: t, dir: t.TempDir()}
	me.refreshd = filepath.Join(me.dir, ".local/bin/refreshd")
	_, port, _ := strings.Cut(testkit.FreeAddress(t), ":")
	me.environ = append(environ, "HOME="+me.dir, "PATH="+toolbox(t, append(forInstalling, "curl", "sha256sum")...))
	began := time.Now()
	logTime := func(what string) {
		t.Logf("%v from the first command: %s", time.Since(began).Round(time.Millisecond), what)
	}
	me.run("sh", "-c", "! command -v go && curl -fsSLO "+downloads+"/install.sh && REFRESHD_DOWNLOADS="+downloads+" sh install.sh")
	me.run(python, "-m", "venv", "--system-site-packages", "--without-pip", "env")
	python = filepath.Join(me.dir, "env/bin/python")
	me.run(python, "-m", "pip", "install", "--quiet", "--no-index", downloads+"/refreshd-"+version[1:]+"-py3-none-any.whl")
	logTime("all is installed")
	pages := testkit.FreeAddress(t)
	me.write("routes.yaml", `channels:
  owners: {email: "`+mail.Address+`", tls: none, from: refreshd@example.com, to: policy, gather: 1s, digest: none}
routes:
- {events: [disabled, recovered], channels: [owners]}
`)
	up := me.start(me.refreshd, "up", "--port", port, "--dashboard", pages, "--routes", "routes.yaml")
	up.AwaitOutput(t, "the dashboard is served")
	logTime("refreshd is up")
	me.environ = append(me.environ, "REDIS_URL=redis://127.0.0.1:"+port)

	// Their own worker, and their own model, whose address has a slip of the pen.
	me.write("worker.py", ownWorker)
	work := me.start(python, "worker.py")
	me.write("policy.txt", ownPolicy)
	me.run(me.refreshd, "policy", "put", "policy.txt")
	model := `uid: my_table
payload: {input_url: "` + feeds + `/fed.csv", owner_email: owner@example.com}
rrule: FREQ=HOURLY
policy: mine
`
	me.write("models.yaml", model)
	me.run(me.refreshd, "model", "put", "models.yaml")
	me.run(me.refreshd, "model", "run", "my_table")

	// It fails: on screen, in redis-cli, in the browser, and by mail to the owner.
	const reason = "Your feed answers with HTTP 404"
	me.prints(reason, me.refreshd, "explain", "my_table")
	work.AwaitOutput(t, "my_table: failure after ")
	logTime("the failure and its reason")
	me.prints(reason, "redis-cli", "-p", port, "HGET", "bigtables:model:my_table", "refresh_disabled_user_friendly_reason")
	me.prints("http_404", "redis-cli", "-p", port, "LRANGE", "bigtables:history:my_table", "0", "-1")
	tab.Go("http://" + pages)
	tab.Follow("Failures")
	tab.AwaitText("http_404")
	tab.Follow("my_table")
	tab.AwaitText(reason)
	requireMail(t, mail, 1, "my_table", reason)

	// They mend it, and see on the open page how it recovers.
	me.write("models.yaml", strings.Replace(model, "/fed.csv", "/feed.csv", 1))
	me.run(me.refreshd, "model", "put", "models.yaml")
	tab.AwaitText("success")
	work.AwaitOutput(t, "my_table: success after ")
	logTime("the first success, with a look at the pages and the mail")
	me.prints("last_success_at", "redis-cli", "-p", port, "HKEYS", "bigtables:model:my_table")
	requireMail(t, mail, 2, "my_table", "works again")
	me.run(me.refreshd, "doctor")
	tab.Leave()
}

// requireMail waits for the n-th letter, and checks that its text has these words.
func requireMail(t *testing.T, office *post.Office, n int, texts ...string) {
	t.Helper()
	check.Eventually(t, fmt.Sprintf("letter %d came", n), func() bool { return len(office.Letters()) >= n })
	letter := office.Letters()[n-1]
	plain := letter.Parts(t)["text/plain"]
	for _, text := range texts {
		failIf(t, letter.To != "owner@example.com" || !strings.Contains(plain, text), "want %q told to the owner, got to %s\n%s", text, letter.To, plain)
	}
}

// release builds what this machine needs of a release, and says which it is.
func release(t *testing.T) (dist, version string) {
	t.Helper()
	testkit.RequireProgram(t, "bash", "bash")
	dist, version = t.TempDir(), releaseOf(t)
	build := exec.Command("../../deploy/release.sh", version, dist)
	build.Env = append(os.Environ(), "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "SBOM=no")
	output, err := build.CombinedOutput()
	stopIf(t, err != nil, "build the release: %v\n%s", err, output)
	return dist, version
}
