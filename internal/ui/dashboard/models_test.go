package dashboard

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

var (
	modelLink = regexp.MustCompile(`<th scope="row"><a href="[^"]*">([^<]*)</a>`)
	nextLink  = regexp.MustCompile(`href="([^"]*)" rel="next"`)
)

// readList reads a page of models, and the path of the next one; "": there is none.
func (d *visitor) readList(path string) (uids []string, next string) {
	d.t.Helper()
	page := d.page(path)
	for _, match := range modelLink.FindAllStringSubmatch(page, -1) {
		uids = append(uids, match[1])
	}
	if match := nextLink.FindStringSubmatch(page); match != nil {
		next = html.UnescapeString(match[1])
	}
	return uids, next
}

// walk follows the pages of a list, and returns the uids of each.
func (d *visitor) walk(path string) (pages [][]string) {
	d.t.Helper()
	for path != "" {
		var uids []string
		uids, path = d.readList(path)
		if pages = append(pages, uids); len(pages) > 100 {
			d.t.Fatal("expected an end")
		}
	}
	return pages
}

func TestModelsAreListedPageByPageEachOnce(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		var models []string
		for n := range 120 {
			models = append(models, fmt.Sprintf(`"uid":"m%03d","rrule":"every day at 6 AM","labels":{"tenant":"t%d"}`, n, n%2))
		}
		d.put(models...)
		for path, want := range map[string]int{"models": 120, "models?sort=due": 120, "models?l=tenant%3Dt1": 60, "models?l=uid%3Dm00*": 10, "models?sort=failing": 0, "models?l=status%3Dfailing": 0} {
			pages := d.walk(home + path)
			all := slices.Concat(pages...)
			slices.Sort(all)
			failIf(t, len(all) != want || len(slices.Compact(all)) != want, "%s: expected %d models, each once, found %d", path, want, len(all))
			for _, page := range pages {
				failIf(t, len(page) > maxRows, "%s: expected at most %d on a page, found %d", path, maxRows, len(page))
			}
		}
		expect(t, d.page(home+"models?l=tenant%3Dt1"), `value="tenant=t1"`, `href="/q/bigtables/models?l=tenant%3Dt1">tenant=t1</a>`, "Not refreshed yet.")
	})
}

func TestAListTellsWhatIsWrongWithItsOrderOrCursor(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for query, want := range map[string]string{"sort=age": "sort: expected due, failing, uid or success", "after=x": "after: expected a cursor"} {
		status, page := d.status(home + "models?" + query)
		failIf(t, status != 400, "%s: expected 400, found %d", query, status)
		expect(t, page, want, "<h1>Models</h1>", `role="alert"`)
	}
}

const failingModel = `"uid":"a","refresh":"now","rrule":"every day at 6 AM","labels":{"tenant":"t1"},"payload":{"input_url":"http://x/y"},"policy":{"timeout":"1h","retries":["10m"],"on_exhausted":"give_up"}`

func TestOneModelIsExplainedWithItsPastAndWhatComesNext(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.put(failingModel)
		d.start()
		expect(t, d.page(home+"model?uid=a"), "No attempt has ended yet.", "Running since", `src="/q/bigtables/model/next.svg?uid=a&amp;v=`)
		d.answer("failure", "a", `"reason":"503"`)
		page := d.page(home + "model?uid=a")
		expect(t, page, "<h1>a</h1>", `<p class="glance">503</p>`, "Failed once at", "If it succeeds: ", "If it fails: it is disabled",
			"retry 1 of 1 after 10m", "&#34;input_url&#34;: &#34;http://x/y&#34;", `src="/q/bigtables/model/past.svg?uid=a&amp;v=`, "tenant=t1", `<td data-label="Outcome" class="warn">failure</td>`)
		for path, want := range map[string][]string{
			"model/past.svg?uid=a": {"<title>a</title>", "failure"}, "model/next.svg?uid=a": {">it succeeds<", ">it fails<", ">nobody answers<", ">it is disabled<"},
		} {
			response, picture := d.ask(d.request("GET", home+path, nil))
			if response.StatusCode != 200 || response.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(response.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'unsafe-inline'; sandbox") {
				t.Errorf("%s: found %s %v", path, response.Status, response.Header)
			}
			expect(t, picture, want...)
		}
		d.Clock.Turn(10 * time.Minute)
		d.start()
		d.answer("failure", "a", `"log":"<script>1</script>\nlast line"`)
		attempt := regexp.MustCompile(`model/log\.txt\?uid=a&amp;attempt=(\w+)`).FindStringSubmatch(d.page(home + "model?uid=a"))
		stopIf(t, attempt == nil, "expected a way to the log")
		response, log := d.ask(d.request("GET", home+"model/log.txt?uid=a&attempt="+attempt[1], nil))
		equal(t, "text/plain; charset=utf-8", response.Header.Get("Content-Type"))
		equal(t, "<script>1</script>\nlast line", log)
		for _, other := range []string{"uid=b&attempt=" + attempt[1], "uid=a&attempt=none"} {
			_, log := d.ask(d.request("GET", home+"model/log.txt?"+other, nil))
			equal(t, "The log is not kept any more.", log)
		}
		expect(t, d.page(home+"model?uid=a"), "Disabled since", "Nothing happens until somebody")
	})
}

// Red says that somebody must act: a model that tries again by itself is not red, one that has given up is.
func TestAModelIsRedOnlyIfSomebodyMustAct(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(failingModel)
	red := func() bool {
		return strings.Contains(d.page(home+"model?uid=a"), `<p class="glance bad">`) && strings.Contains(d.page(home+"models"), `<td data-label="State" class="wide bad">`)
	}
	d.start()
	d.answer("failure", "a", `"reason":"503"`)
	failIf(t, red(), "expected no red while it tries again")
	d.Clock.Turn(10 * time.Minute)
	d.start()
	d.answer("failure", "a")
	failIf(t, !red(), "expected a model that has given up in red")
	d.press(home+"model/enable", "uid", "a")
	d.press(home+"model/disable", "uid", "a", "reason", "not paid")
	failIf(t, red(), "expected no red where somebody has acted")
}

func TestEachModelHasAPageWhateverItsUIDAndNoOther(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for path, want := range map[string]int{"model?uid=gone": 404, "model": 400, "model?uid=a+b": 400, "model/past.svg?uid=gone": 404} {
		status, _ := d.status(home + path)
		failIf(t, status != want, "%s: expected %d, found %d", path, want, status)
	}
	for _, uid := range []string{"a/../b", "a//b", "a/.", "a=b+c", "t:1@x~y"} {
		d.put(fmt.Sprintf(`"uid":%q`, uid))
		expect(t, html.UnescapeString(d.page(home+"model?uid="+url.QueryEscape(uid))), "<h1>"+uid+"</h1>")
	}
}

func TestButtonsDoWhatTheySayAndTellWhatBecameOfIt(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		d.put(`"uid":"a","rrule":"every day at 6 AM"`)
		const page, model = "model?uid=a", home + "model/"
		expect(t, d.submit(page, "model/run"), "a was asked for.")
		d.start()
		expect(t, d.press(model+"run", "uid", "a"), `role="alert">a: an attempt is queued or running. To replace it, open &#34;Supersede…&#34; and press &#34;Run now, superseding what runs&#34;.`)
		before := d.Attempt("a")
		d.submit(page, "model/run", "force", "yes")
		d.start()
		after := d.Attempt("a")
		failIf(t, after == before || after == "", "expected another attempt, found %q after %q", after, before)
		expect(t, d.submit(page, "model/disable", "reason", "moved <b>"), "a is disabled until somebody enables it.", "Disabled by ann", "moved &lt;b&gt;")
		expect(t, d.submit(page, "model/enable"), "a is enabled.")
		expect(t, d.press(model+"enable", "uid", "a"), "a: nothing had to be changed.")
		held := d.submit(page, "model/hold", "reason", "a <i>pause</i>", "for", "2h")
		expect(t, held, "a is held. The hold h", "of uid=a, by ann: a &lt;i&gt;pause&lt;/i&gt;")
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(held)[1]
		expect(t, d.press(model+"run", "uid", "a"), "a was asked for.", "Held by ann")
		expectNone(t, d.submit(page, "model/release"), "Release "+id)
		expect(t, d.press(model+"release", "id", id), id+": expected the id of a hold, found none", "<h1>Overview</h1>")
		expect(t, d.press(model+"hold", "uid", "a"), "reason: expected why")
		expect(t, d.press(model+"hold", "uid", "a", "reason", "x", "for", "soon"), "end: expected a length of time such as 2h")
		expect(t, d.press(model+"run", "uid", "gone"), "gone: expected the uid of a stored model")
	})
}

func TestWhatBecameOfAnActionIsToldOnceOnAPageOfItsQueue(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a"`)
	response, _ := d.post(home+"model/disable", "uid", "a")
	path := response.Header.Get("Location")
	expect(t, d.page(path), "a is disabled until somebody enables it.")
	expectNone(t, d.page(path), "a is disabled until somebody enables it.")
	for back, want := range map[string]string{
		home + "models?l=a%3Db": home + "models?l=a%3Db", "https://example.com/": home + "", "//example.com/q/bigtables/": home + "", "/q/bigtables": home + "",
	} {
		response, _ := d.post(home+"model/release", "id", "x", "back", back)
		got := response.Header.Get("Location")
		failIf(t, got != want, "%s: expected %s, found %s", back, want, got)
	}
}

func TestAPastAttemptTellsTheWaitInLineFromTheWork(t *testing.T) {
	started := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	for begun, want := range map[time.Time]string{{}: "– 1h0m0s", started.Add(40 * time.Minute): "40m0s 20m0s"} {
		row := rowOf(&model.Attempt{StartedAt: started, ProcessingAt: begun, EndedAt: started.Add(time.Hour), Duration: time.Hour, Outcome: model.EventSuccess})
		got := row.Wait + " " + row.Length
		failIf(t, got != want, "begun at %s: expected %s, found %s", begun, want, got)
	}
}

func TestAPageTellsItsTimesInOneZoneAndNamesIt(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"tokyo","rrule":"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0","timezone":"Asia/Tokyo"`)
	named := regexp.MustCompile(`<p class="soft">[^<]* ([A-Za-z/]+)\.</p>`)
	for path, zone := range map[string]string{"model?uid=tokyo": "Asia/Tokyo", "models": "UTC", "": "UTC"} {
		page := d.page(home + path)
		found := named.FindAllStringSubmatch(page, -1)
		failIf(t, len(found) == 0 || found[len(found)-1][1] != zone, "%q: expected the zone %s named at the end, found %q", path, zone, found)
		if path != "" {
			expect(t, page, map[string]string{"UTC": "21:00:00", "Asia/Tokyo": "06:00 tomorrow"}[zone])
		}
	}
}

func TestAModelOffersOnlyWhatCanBeDoneNow(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	buttons := map[string]string{"run": ">Run now<", "supersede": ">Supersede…<", "enable": ">Enable<", "disable": ">Disable until it is enabled<", "hold": ">Hold<"}
	offers := func(state string, want ...string) {
		t.Helper()
		page := d.page(home + "model?uid=a")
		for name, text := range buttons {
			if got := strings.Contains(page, text); got != slices.Contains(want, name) {
				t.Errorf("%s: expected %v, found %s offered: %t", state, want, name, got)
			}
		}
	}
	d.put(failingModel)
	offers("due", "run", "disable", "hold")
	d.start()
	offers("running", "supersede", "disable", "hold")
	d.answer("failure", "a")
	d.Clock.Turn(10 * time.Minute)
	d.start()
	d.answer("failure", "a", `"reason":"gone for good"`)
	offers("given up", "run", "enable", "disable", "hold")
	expect(t, d.page(home+"model?uid=a"), `<p class="glance bad">gone for good</p>`)
	d.press(home+"model/disable", "uid", "a", "reason", "not paid")
	offers("disabled by hand", "enable", "hold")
}

func TestThePolicyOfAModelIsToldInSentencesWithItsJSONFolded(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(failingModel)
	page := d.page(home + "model?uid=a")
	expect(t, page, "<li>Allow 1 hour to complete</li><li>On the first failure, retry after 10 minutes</li>", "<li>Give up after the final unsuccessful retry</li></ul>", "<details><summary>As JSON</summary>")
	expectNone(t, page, "Open no circuit", "Send no e-mail")
}

func TestRowsOfAListAreSelectedAndChangedTogether(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		d.put(`"uid":"a","rrule":"every day at 6 AM"`, `"uid":"b","rrule":"every day at 6 AM"`, `"uid":"c","rrule":"every day at 6 AM"`)
		expect(t, d.page(home+"models?l=uid%3Da"), `form="selected" name="uid" value="a"`, `<button type="submit" name="do" value="disable">`)
		_, asked := d.ask(d.request("POST", home+"models/selected", url.Values{"do": {"disable"}, "uid": {"a", "b"}, "back": {home + "models?l=x%3Dy"}}))
		expect(t, asked, "<p>2 models: ", `name="uid" value="a"`, `name="uid" value="b"`, `name="back" value="/q/bigtables/models?l=x%3Dy"`, `name="reason"`)
		expectNone(t, asked, "Type 2")
		change := func(do string, uids ...string) (next, text string) {
			response, _ := d.ask(d.request("POST", home+"models/change", url.Values{"do": {do}, "uid": uids, "reason": {"not paid"}, "back": {home + "models"}}))
			return response.Header.Get("Location"), d.page(response.Header.Get("Location"))
		}
		next, text := change("disable", "a", "b")
		equal(t, home+"models", next)
		expect(t, text, "disable: 2 of 2 models done, 0 need it not.", "Disabled by ann.")
		_, text = change("run", "a", "c", "gone")
		expect(t, text, `role="alert">run: 1 of 3 models done, 0 need it not. Refused, for example: a: the model was disabled by hand`)
		_, text = change("enable", "a", "b", "c")
		expect(t, text, "enable: 2 of 3 models done, 1 need it not.")
		_, text = change("hold", "a", "b")
		expect(t, text, "keeps uid=a|b from starting.")
		for query, want := range map[string]string{"do=run": "uid: expected 1 to 500 selected models, found 0", "do=dance&uid=a": "do: expected", "do=run&uid=a+b": "uid: expected"} {
			status, page := d.status(home + "models/selected?" + query)
			failIf(t, status != 400 || !strings.Contains(page, want), "%s: expected %s, found %d", query, want, status)
		}
	})
}

func TestAListTellsHowManyThereAreAndIsSortedByAColumn(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"b","refresh":"now","labels":{"tenant":"t1"}`, `"uid":"a","rrule":"every day at 6 AM","labels":{"tenant":"t1"}`)
	d.start()
	d.answer("success", "b")
	d.put(`"uid":"c","rrule":"every day at 7 AM"`)
	for path, want := range map[string]string{
		"models": "Shown: 3 models of the queue.", "models?sort=due": "Shown: 2 models that are due or scheduled.", "models?sort=failing": "Shown: 0 models that are failing.",
		"models?l=tenant%3Dt1": "Shown: 2 models with tenant=t1.", "models?l=tenant%3Dt1&sort=due": "There are at most 2 models of them.",
	} {
		expect(t, d.page(home+path), want)
	}
	order := func(sort string) string {
		uids, _ := d.readList(home + "models?sort=" + sort)
		return strings.Join(uids, "")
	}
	equal(t, "abc", order("uid"))
	equal(t, "b", order("success")[2:])
	expect(t, d.page(home+"models?sort=uid"), `<th scope="col" aria-sort="ascending"><a href="/q/bigtables/models">Model</a></th>`, `<a href="/q/bigtables/models?sort=success">Last success</a>`, "never", "just now")
	var many []string
	for n := range maxRows + 1 {
		many = append(many, fmt.Sprintf(`"uid":"m%03d","rrule":"every day at 6 AM"`, n))
	}
	d.put(many...)
	expect(t, d.page(home+"models"), `<a href="/q/bigtables/models?count=yes">Count them</a>`)
	expect(t, d.page(home+"models?count=yes"), "Counted one by one: 54 models.")
	expect(t, d.page(home+"models?l=uid%3Dm*&count=yes"), "Counted one by one: 51 models.")
	expectNone(t, d.page(home+"models?sort=due"), "Count them")
	expect(t, d.page(home+"models?sort=uid"), "Each page is sorted by itself.", "Shown: 53 models of the queue, and those that are finished.")
	pages := d.walk(home + "models?sort=uid")
	equal(t, 54, len(slices.Concat(pages...)))
}
