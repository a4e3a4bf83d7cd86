package dashboard

import (
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// visitor is somebody with a browser before the dashboard of a queue, and the daemons that serve it.
type visitor struct {
	*fixture.Queue
	t          *testing.T
	queue      *store.Queue
	dashboard  *Dashboard
	server     *httptest.Server
	browser    *http.Client
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
	watching   sync.Once
}

// sit opens a dashboard of a queue whose clock is turned by hand, and with it that of sessions. change changes its settings; nil: nothing.
func sit(t *testing.T, server *testkit.Server, change func(*Config)) *visitor {
	t.Helper()
	q := fixture.New(t, server)
	return sitAt(t, q, "", q.Redis, change)
}

// sitAt opens the dashboard of a queue that asks Redis by a client; an empty name is that of the fixture.
func sitAt(t *testing.T, q *fixture.Queue, name string, client goredis.UniversalClient, change func(*Config)) *visitor {
	t.Helper()
	d := &visitor{Queue: q, t: t}
	config := Config{Clock: time.Now, Tick: time.Millisecond}
	if change != nil {
		change(&config)
	}
	if len(config.Tokens) > 0 {
		config.Clock = q.Clock.Now // of sessions
	}
	var errs [4]error
	d.queue, errs[0] = store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, store.Config{Queue: name, Clock: q.Clock.Now})
	d.dashboard, errs[1] = build([]*store.Queue{d.queue}, config)
	d.dispatcher, errs[2] = dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{Owner: "dispatcher-1", Tick: 50 * time.Millisecond, Clock: q.Clock.Now})
	d.poller, errs[3] = poller.New(poller.RoomsOf(q.Store), poller.Config{Owner: "poller-1", Tick: 50 * time.Millisecond, Lease: time.Hour, Clock: q.Clock.Now})
	must(t, errors.Join(errs[:]...))
	handler := d.dashboard.Handler()
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, home+"live/") {
			d.watching.Do(func() { check.Run(t, d.watch) })
		}
		handler.ServeHTTP(w, r)
	}))
	jar, _ := cookiejar.New(nil) // which never fails
	d.browser = &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(func() {
		d.browser.CloseIdleConnections()
		close(d.dashboard.ending)
		d.server.Close()
	})
	return d
}

// ask sends a request, and follows no redirect.
func (d *visitor) ask(request *http.Request) (*http.Response, string) {
	d.t.Helper()
	once := *d.browser
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := once.Do(request)
	must(d.t, err)
	defer response.Body.Close()
	text := check.Got(io.ReadAll(response.Body))(d.t)
	return response, string(text)
}

func (d *visitor) request(method, path string, fields url.Values) *http.Request {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.server.URL+path, strings.NewReader(fields.Encode()))
	must(d.t, err)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "text/html")
	return request
}

// page reads a page that must be there.
func (d *visitor) page(path string) string {
	d.t.Helper()
	status, text := d.status(path)
	stopIf(d.t, status != http.StatusOK, "%s: expected 200, found %d\n%s", path, status, text)
	return text
}

// status reads a page that need not be there.
func (d *visitor) status(path string) (int, string) {
	d.t.Helper()
	response, text := d.ask(d.request(http.MethodGet, path, nil))
	return response.StatusCode, text
}

// post sends a form as the page with it would.
func (d *visitor) post(path string, fields ...string) (*http.Response, string) {
	d.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return d.ask(d.request(http.MethodPost, path, form))
}

// press sends a form, and returns the page that follows, or its own if it was refused.
func (d *visitor) press(path string, fields ...string) string {
	d.t.Helper()
	response, text := d.post(path, fields...)
	if response.StatusCode == http.StatusUnprocessableEntity || response.StatusCode == http.StatusServiceUnavailable {
		return text
	}
	stopIf(d.t, response.StatusCode != http.StatusSeeOther, "%s: expected a way to go on, found %s\n%s", path, response.Status, text)
	return d.page(response.Header.Get("Location"))
}

var formField = regexp.MustCompile(`<(?:input|select|textarea)[^>]* name="([^"]+)"(?: value="([^"]*)")?`)

// submit fills the form of a page that leads to an action and has these fields, as a browser without scripts would, and returns the page that follows.
func (d *visitor) submit(page, action string, fields ...string) string {
	d.t.Helper()
	forms := strings.Split(d.page(home+page), `action="`+home+action+`"`)
	for _, form := range forms[1:] {
		form, _, _ = strings.Cut(form, "</form>")
		known, values := map[string]bool{}, []string{}
		for _, field := range formField.FindAllStringSubmatch(form, -1) {
			if known[field[1]] = true; strings.Contains(field[0], `type="hidden"`) {
				values = append(values, field[1], html.UnescapeString(field[2]))
			}
		}
		fits := known["back"]
		for i := 0; i < len(fields); i += 2 {
			fits = fits && known[fields[i]]
		}
		if fits {
			return d.press(home+action, append(values, fields...)...)
		}
	}
	d.t.Fatalf("%s: expected a form %s with back and %v, found\n%s", page, action, fields, strings.Join(forms[1:], "\n"))
	return ""
}

// put saves models, each a JSON object without its braces.
func (d *visitor) put(models ...string) {
	d.t.Helper()
	for _, one := range models {
		d.Command(`{"type":"put",` + one + `}`)
	}
	d.apply()
}

// apply lets the poller apply all that was said.
func (d *visitor) apply() {
	d.t.Helper()
	for {
		round := check.Got(d.poller.RunOnce(d.t.Context()))(d.t)
		if round.Claimed == 0 {
			return
		}
	}
}

// start lets the dispatcher look, and a worker take what it hands out.
func (d *visitor) start() {
	d.t.Helper()
	must(d.t, check.Only(d.dispatcher.RunOnce(d.t.Context())))
	for more := true; more; {
		_, more = d.Take()
	}
}

func (d *visitor) answer(kind, uid string, fields ...string) {
	d.t.Helper()
	d.Say(fixture.Result(kind, uid, d.Attempt(uid), fields...))
	d.apply()
}

func expect(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		failIf(t, !strings.Contains(text, want), "expected %q, found\n%s", want, text)
	}
}

func expectNone(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		failIf(t, strings.Contains(text, want), "expected no %q, found\n%s", want, text)
	}
}

const home = "/q/bigtables/"
