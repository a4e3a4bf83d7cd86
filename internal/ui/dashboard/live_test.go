package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// viewing is an open page that is told what changes.
type viewing struct {
	t      *testing.T
	events chan fragment
	leave  func()
}

func (d *visitor) view(path string) *viewing {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	request := d.request("GET", path, nil).WithContext(ctx)
	response, err := d.browser.Do(request)
	must(d.t, err)
	stopIf(d.t, response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream",
		"%s: expected a stream, found %s", path, response.Status)
	v := &viewing{t: d.t, events: make(chan fragment)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(v.events)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				var one fragment
				if json.Unmarshal([]byte(data), &one) != nil {
					return
				}
				select {
				case v.events <- one:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	v.leave = func() { cancel(); _ = response.Body.Close(); <-ended }
	d.t.Cleanup(v.leave)
	return v
}

// await reads until a fragment contains a text.
func (v *viewing) await(id, want string) {
	v.t.Helper()
	for {
		if one := check.Await(v.t, v.events, "a fragment "+id+" with "+want); one.ID == id && strings.Contains(one.HTML, want) {
			return
		} else if one.ID == "" {
			v.t.Fatalf("expected %q, found the end", want)
		}
	}
}

func TestAnOpenPageIsSentWhatChangesAndNothingElse(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(failingModel)
		v := d.view(home + "live/model?uid=a")
		v.await("model-state", "Due since")
		d.start()
		v.await("model-state", "Running since")
		d.answer("failure", "a", `"reason":"503"`)
		v.await("model-past", "503")
		d.put(`"uid":"b"`) // which is not of this page
		d.press(home+"model/disable", "uid", "a", "reason", "not paid")
		one := check.Await(t, v.events, "the next change")
		failIf(t, one.ID != "model-state" || !strings.Contains(one.HTML, "not paid"), "expected what differs alone, found %v", one)
	})
}

// watch lets the dashboard ask whether the queue has changed.
func (d *visitor) watch(ctx context.Context) error {
	d.dashboard.watch(ctx, d.dashboard.sites.list[0])
	return nil
}

func TestOpenPagesOfOneAddressShareAReadingUntilTheQueueChanges(t *testing.T) {
	b, reads := newBeat(), 0
	read := func() rendered {
		reads++
		return rendered{fragments: []fragment{{ID: "x", HTML: fmt.Sprint(reads)}}}
	}
	for range 2 {
		found := b.read("/a", read)
		failIf(t, len(found.fragments) != 1 || found.fragments[0].HTML != "1", "expected the first reading, found %v", found)
	}
	b.read("/b", read)
	newBeat().read("/a", read)
	failIf(t, reads != 3, "expected one reading for each address and beat, found %d", reads)
}

func TestAnOpenPageNeverFallsBackBehindWhatItShowedFirst(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(failingModel)
	path, site, reads := home+"model?uid=a", d.dashboard.sites.list[0], 0
	session := d.dashboard.session(d.request("GET", path, nil))
	for range 2 {
		site.beat.Load().read(session.key()+path, func() rendered { reads++; return rendered{} })
		d.page(path)
	}
	failIf(t, reads != 2, "expected it read again behind a page that is newer, found %d readings", reads)
}

func TestPagesThatCannotBeReadKeepWhatTheyShowAndAreReadAgain(t *testing.T) {
	q := fixture.New(t, testkit.Miniredis(t))
	fault, client := new(testkit.Fault), q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	d.put(failingModel)
	site := d.dashboard.sites.list[0]
	client.AddHook(fault) // no page is open, and so nobody else asks Redis
	fault.Arm(1)
	failed := d.dashboard.fragments(t.Context(), site, &modelPage, session{}, url.Values{"uid": {"a"}})
	failIf(t, !failed.failed() || failed.fragments != nil, "expected nothing to show, found %v", failed)
	fault.Arm(0)
	reads := 0
	for range 2 {
		newest := site.beat.Load()
		newest.read("/x", func() rendered { reads++; return failed })
	}
	failIf(t, reads != 2, "expected it read again, found %d readings", reads)
	gone := d.dashboard.fragments(t.Context(), site, &modelPage, session{}, url.Values{"uid": {"nobody"}})
	failIf(t, gone.err == nil || gone.failed(), "expected a model that is not there to stay so, found %v", gone.err)
}

func TestEachPageWithLivePartsNamesItsStreamWhichSendsThem(t *testing.T) {
	d, live := sit(t, testkit.Miniredis(t), nil), 0
	d.put(failingModel)
	for _, page := range pages {
		if page.live == nil {
			continue
		}
		live++
		path := page.path
		if page == &modelPage {
			path += "?uid=a"
		}
		text := d.page(home + path)
		failIf(t, !strings.Contains(text, `data-stream="`+home+"live/"+path+`"`), "%s: want a page that names its stream, got\n%s", path, text)
		v := d.view(home + "live/" + path)
		for range page.live {
			part := check.Await(t, v.events, "a part of "+path)
			failIf(t, !slices.Contains(page.live, part.ID) || !strings.Contains(text, `id="`+part.ID+`" data-live`), "%s: want its parts, got %q", path, part.ID)
		}
		v.leave()
	}
	failIf(t, live < 5, "want most pages live, found %d", live)
}

func TestOpenPagesAreBounded(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.dashboard.streams.open = maxStreams
	if response, _ := d.ask(d.request("GET", home+"live/", nil)); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("expected 503, found %s", response.Status)
	}
	d.dashboard.streams.open = 0
	var open []*viewing
	for range maxOfClient {
		open = append(open, d.view(home+"live/"))
	}
	if response, _ := d.ask(d.request("GET", home+"live/", nil)); response.StatusCode != 503 {
		t.Errorf("expected no more pages for one client, found %s", response.Status)
	}
	failIf(t, !d.dashboard.streams.enter("another"), "expected pages for another client")
	d.dashboard.streams.leave("another")
	open[0].leave()
	check.Eventually(t, "room for one more", func() bool {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		response, err := d.browser.Do(d.request("GET", home+"live/", nil).WithContext(ctx))
		must(t, err)
		defer response.Body.Close()
		return response.StatusCode == 200
	})
}

func TestADashboardEndsWithPagesOpenAndLeavesNothingBehind(t *testing.T) {
	q := fixture.Live(t, testkit.Miniredis(t))
	queue := check.Got(store.Open(t.Context(), &redis.Clients{Read: q.Redis, Write: q.Redis, Block: q.Redis}, store.Config{}))(t)
	ticked := make(chan error, 1000)
	d, err := Open([]*store.Queue{queue}, Config{
		Listen: "127.0.0.1:0", Clock: time.Now, Tick: time.Millisecond, Grace: time.Minute,
		Observe: func() func(error) { return func(err error) { ticked <- err } },
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	if err := check.Await(t, ticked, "a tick"); err != nil {
		t.Error(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response := check.Got(client.Get(d.URL() + "q/bigtables/live/"))(t)
	defer response.Body.Close()
	must(t, check.Only(bufio.NewReader(response.Body).ReadString('\n')))
	stop()
	if err := check.Await(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}

func TestAQueueThatAnswersLaterIsShownToo(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	expectNone(t, d.page(home), `aria-label="Queues"`)
	must(t, check.Await(t, showToo(t, d.dashboard, d.Redis, store.Config{Queue: "banners", Clock: d.Clock.Now}), "a tick"))
	expect(t, d.page(home+"models"), `<a href="/q/banners/">banners</a>`, `<a href="/q/bigtables/" aria-current="true">bigtables</a>`)
	expect(t, d.page("/q/banners/"), "<h1>Overview</h1>", `<a href="/q/banners/" aria-current="true">`, `<a href="/q/bigtables/">`)
	d.put(`"uid":"a"`)
	expectNone(t, d.page("/q/banners/models"), "model?uid=a")
	if response, _ := d.ask(d.request("GET", "/", nil)); response.Header.Get("Location") != "/q/banners/" {
		t.Errorf("expected the first queue by its name, found %s", response.Header.Get("Location"))
	}
}

// showToo shows one more queue until the test ends, and tells of each tick of it.
func showToo(t *testing.T, d *Dashboard, client goredis.UniversalClient, config store.Config) <-chan error {
	t.Helper()
	queue := check.Got(store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, config))(t)
	ticked := make(chan error, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Show(ctx, queue, func() func(error) {
			return func(err error) {
				select {
				case ticked <- err:
				default: // the test is slow, and nobody waits for that many
				}
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return ticked
}
