package dashboard

import (
	"net/http"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestTheZoneThatABrowserChoosesIsThatOfAllTimesOfAllPages(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a","rrule":"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0","timezone":"Asia/Tokyo"`)
	d.start()
	d.answer("success", "a")
	choose := func(query string) *http.Response {
		response, _ := d.ask(d.request("GET", "/zone?"+query, nil))
		return response
	}
	response := choose("zone=America/New_York&back=" + home + "models%3Fsort%3Ddue")
	failIf(t, response.StatusCode != 303 || response.Header.Get("Location") != home+"models?sort=due", "expected the page again, found %s %s", response.Status, response.Header.Get("Location"))
	for path, clock := range map[string]string{"model?uid=a": " 16:00", "models": "2026-11-21 16:00:00", "": "<title>02:00: "} {
		expect(t, d.page(home+path), "Times on this page are those of America/New_York.", "<option selected>America/New_York</option>", clock)
	}
	expect(t, d.page(home+"model/past.svg?uid=a"), "New_York")
	expect(t, d.press(home+"model/enable", "uid", "a"), "America/New_York")
	choose("zone=&back=" + home)
	expect(t, d.page(home+"model?uid=a"), "Times on this page are those of Asia/Tokyo.")
	choose("zone=UTC&other=Europe/Berlin&back=" + home) // as a browser without scripts says it
	expect(t, d.page(home+"model?uid=a"), "Times on this page are those of Europe/Berlin.")
}

func TestAZoneThatDoesNotExistIsRefusedAndLeadsNowhere(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for _, zone := range []string{"Mars/Olympus", "Local", "../../etc/passwd", "localtime"} {
		response, _ := d.ask(d.request("GET", "/zone?zone="+zone, nil))
		failIf(t, response.StatusCode != 400 || len(response.Cookies()) > 0, "%s: expected it refused, found %s %v", zone, response.Status, response.Cookies())
		forged := d.request("GET", home, nil)
		forged.AddCookie(&http.Cookie{Name: zoneCookie, Value: zone})
		_, text := d.ask(forged)
		expect(t, text, "Times on this page are those of UTC.")
	}
	for _, back := range []string{"https://evil.example.com/", "//evil.example.com/q/", "/\\evil.example.com", "/q/\\x"} {
		response, _ := d.ask(d.request("GET", "/zone?zone=UTC&back="+back, nil))
		failIf(t, response.Header.Get("Location") != "/", "%s: expected the first page, found %s", back, response.Header.Get("Location"))
	}
}

func TestABrowserOffersItsZoneAndTellsAnInstantAsTimeGoesBy(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	f.Say("nonsense")
	f.work()
	tab := browser.Open(t)
	tab.Go(f.url("rejected"))
	tab.AwaitText("just now")
	// The page may be sent again meanwhile: three more hours go by then.
	tab.Await(`(performance.now = ((now) => () => now() + 3 * 3600e3)(performance.now.bind(performance)), tell(), document.body.innerText.includes("3h ago"))`)
	own := browser.Eval[string](tab, `Intl.DateTimeFormat().resolvedOptions().timeZone`)
	failIf(t, !browser.Eval[bool](tab, `document.querySelector("#zone optgroup option").value === "`+own+`"`), "expected the zone %s of the browser offered first", own)
	browser.Eval[bool](tab, `document.getElementById("zone").value = "Asia/Tokyo", document.getElementById("zone").form.requestSubmit(), true`)
	tab.AwaitText("Times on this page are those of Asia/Tokyo.")
	failIf(t, tab.Address() != f.url("rejected"), "expected the same page, found %s", tab.Address())
}
