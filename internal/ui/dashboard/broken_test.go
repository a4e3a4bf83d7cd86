package dashboard

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
)

// Whichever call of Redis fails, a page is an error page: it never shows numbers of which some are missing.
func TestAPageOfWhichACallOfRedisFailsIsAnErrorPage(t *testing.T) {
	q := fixture.New(t, testkit.Miniredis(t))
	fault, client := new(testkit.Fault), q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	client.AddHook(fault)
	d.put(`"uid":"a","refresh":"now","labels":{"tenant":"t1"},"policy":{"timeout":"1h","retries":["1h"],"limits":[{"key":"{label.tenant}","running":1}]}`, `"uid":"b"`,
		`"uid":"held","refresh":"now"`)
	p := policy.Default()
	p.Name = "p"
	must(t, q.Store.Fleet().PutPolicy(t.Context(), p))
	d.press(home+"hold/put", "id", "h1", "selector", "uid=held", "reason", "why")
	d.press(home+"circuit/open", "key", "host=a")
	d.press(home+"limit/set", "key", "host=a", "running", "3")
	d.start()
	d.answer("failure", "a", `"reason":"503"`, `"error_type":"http_503"`)
	d.put(`"uid":"again","refresh":"now","labels":{"tenant":"t1"}`)
	for _, path := range []string{
		"", "models", "models?sort=failing", "models?sort=due", "models?l=status%3Dfailing", "model?uid=a", "model?uid=held", "failures", "steering",
		"steering?key=host%3Da", "rejected", "policies", "policy?name=p", "playground", "playground?policy=p", "playground?text=%7Buid:+b,policy:+p%7D", "model/past.svg?uid=a", "model/next.svg?uid=a",
		"policy/edit?name=p", "policy/edit?name=p&was=&text=timeout:+1m", "model/edit?uid=a", "model/edit?uid=a&was=&text=%7Buid:+a,+rrule:+daily+at+6am%7D",
	} {
		d.page(home + path) // policies are remembered
		whole := d.page(home + path)
		for n, struck := 1, true; struck; n++ {
			fault.Arm(n)
			status, text := d.status(home + path)
			struck = fault.Struck()
			fault.Arm(0)
			failIf(t, struck != (status == 503 && strings.Contains(text, testkit.ErrFault.Error())),
				"%s: expected an error page if call %d fails (%v), found %d", path, n, struck, status)
			failIf(t, n == 1 && !struck && !strings.HasPrefix(path, "playground"), "%s: expected calls of Redis, found none", path)
		}
		again := d.page(home + path)
		failIf(t, len(again) != len(whole), "%s: expected the page as it was", path)
	}
}

// Whichever call of Redis fails, an action says so instead of what it would have done.
func TestAnActionOfWhichACallOfRedisFailsSaysSo(t *testing.T) {
	q := fixture.New(t, testkit.Miniredis(t))
	fault, client := new(testkit.Fault), q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	client.AddHook(fault)
	for _, action := range []struct {
		path   string
		fields []string
	}{
		{"hold/put", []string{"id", "h1", "selector", "uid=a", "reason", "why"}}, {"hold/release", []string{"id", "h0"}},
		{"limit/set", []string{"key", "host=a", "running", "3"}}, {"limit/rm", []string{"key", "host=b"}}, {"limit/open", []string{"key", "host=c"}},
		{"circuit/open", []string{"key", "host=a"}}, {"circuit/open", []string{"key", "queue"}}, {"circuit/close", []string{"key", "host=b"}},
		{"model/run", []string{"uid", "a"}}, {"model/disable", []string{"uid", "a"}}, {"model/enable", []string{"uid", "a"}},
	} {
		for n, struck := 1, true; struck; n++ {
			q.Server.Flush(t)
			d.put(`"uid":"a"`)
			d.press(home+"hold/put", "id", "h0", "selector", "uid=none", "reason", "why")
			d.press(home+"limit/set", "key", "host=b", "running", "3")
			d.press(home+"circuit/open", "key", "host=b")
			q.Redis.Set(t.Context(), q.Store.Keys.Rate("host=c"), "1800000000000000 1800000000000000 a (http_429)", time.Hour)
			fault.Arm(n)
			told := d.flashOf(home+action.path, action.fields...)
			struck = fault.Struck()
			fault.Arm(0)
			failed := strings.Contains(told, testkit.ErrFault.Error())
			failIf(t, failed != struck, "%s, call %d: expected a failure: %t, found %s", action.path, n, struck, told)
		}
	}
}

// Whichever call of Redis fails, a form that edits says so and keeps what was typed, and its button works the next time.
func TestASaveOfWhichACallOfRedisFailsKeepsWhatWasTyped(t *testing.T) {
	q := fixture.New(t, testkit.Miniredis(t))
	fault, client := new(testkit.Fault), q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	client.AddHook(fault)
	for _, form := range [][]string{{"policy", "text", "{name: q, timeout: 1m}"}, {"model", "text", "{uid: b, rrule: daily at 6am}"}} {
		for n, struck := 1, true; struck; n++ {
			q.Server.Flush(t)
			checked := d.check(form[0]+"/edit", form[1:]...)
			fault.Arm(n)
			response, page := d.post(home+form[0]+"/save", typeInto(t, checked, form[0]+"/save")...)
			struck = fault.Struck()
			fault.Arm(0)
			if !struck {
				failIf(t, response.StatusCode != 303 || n < 4, "%s: expected a save of more than %d calls, found %s", form[0], n, response.Status)
				continue
			}
			failIf(t, response.StatusCode != 503, "%s, call %d: expected 503, found %s", form[0], n, response.Status)
			expect(t, html.UnescapeString(page), testkit.ErrFault.Error(), form[2])
		}
	}
}

// flashOf presses a button, and returns the message that the next page would show.
func (d *visitor) flashOf(path string, fields ...string) string {
	d.t.Helper()
	response, _ := d.post(path, fields...)
	next := d.request(http.MethodGet, response.Header.Get("Location"), nil)
	for _, cookie := range response.Cookies() {
		next.AddCookie(cookie)
	}
	one := takeFlash(httptest.NewRecorder(), next)
	stopIf(d.t, one == nil, "%s: expected a message", path)
	return one.Text
}
