package dashboard

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
)

const secret = "a token of 16 bytes or more"

func withToken(c *Config) { c.Tokens = []Token{{Text: secret}} }

func TestEachAnswerForbidsScriptsOfOthersFramesAndGuesses(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for _, path := range []string{"/", home, home + "models", "/static/style.css", "/nothing", "/login"} {
		response, text := d.ask(d.request("GET", path, nil))
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			got := response.Header.Get(name)
			failIf(t, got != want, "%s: expected %s %q, found %q", path, name, want, got)
		}
		expectNone(t, text, "<style", " style=", "onclick", "http://", "https://")
	}
}

func TestADashboardAnswersToItsOwnNamesOnly(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.Hosts = []string{"dash.example.com"} })
	for host, want := range map[string]int{
		"localhost:8090": 200, "127.0.0.1": 200, "[::1]:8090": 200, "127.1.2.3:1": 200, "dash.example.com": 200, "DASH.example.com:443": 200,
		"evil.example.com": 421, "localhost.evil.com": 421, "10.0.0.1:8090": 421, "dash.example.com.evil.com": 421,
	} {
		request := d.request("GET", home, nil)
		request.Host = host
		response, _ := d.ask(request)
		failIf(t, response.StatusCode != want, "%s: expected %d, found %s", host, want, response.Status)
	}
	beyond := sit(t, testkit.Miniredis(t), func(c *Config) { c.Listen, c.Tokens = "0.0.0.0:8090", []Token{{Text: secret}} }) // which takes any name, unless some are given
	for _, want := range []int{200, 421} {
		request := beyond.request("GET", "/login", nil)
		request.Host = "any.example.com"
		response, _ := beyond.ask(request)
		failIf(t, response.StatusCode != want, "expected %d, found %s", want, response.Status)
		beyond.dashboard.config.Hosts = []string{"dash.example.com"}
	}
}

func TestSettingsThatExposeADashboardAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"by default":             {Config{}, ""},
		"loopback by name":       {Config{Listen: "localhost:0"}, ""},
		"loopback of IPv6":       {Config{Listen: "[::1]:0"}, ""},
		"everywhere, a token":    {Config{Listen: ":8090", Tokens: []Token{{Text: secret}}}, ""},
		"everywhere":             {Config{Listen: ":8090"}, "listen: expected an address of loopback, or a token beside it"},
		"an address of a net":    {Config{Listen: "10.0.0.1:8090"}, "expected an address of loopback"},
		"a name that may change": {Config{Listen: "dash.example.com:80"}, "expected an address of loopback"},
		"a short token":          {Config{Tokens: []Token{{Text: "0123456789abcde"}}}, "token: expected at least 16 bytes, found 15"},
		"no address":             {Config{Listen: "8090"}, `listen: expected an address such as 127.0.0.1:8090, found "8090"`},
		"a long name":            {Config{By: strings.Repeat("x", 1000)}, "by: expected at most"},
	} {
		test.config.Clock = time.Now
		err := test.config.WithDefaults().Validate()
		got := fmt.Sprint(err)
		failIf(t, (err == nil) != (test.want == "") || !strings.Contains(got, test.want), "%s: expected %q, found %q", name, test.want, got)
	}
}

func TestAFormOfAnotherSiteDoesNothing(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a"`)
	for name, test := range map[string]struct {
		header, value, reason string
		status                int
		want                  string
	}{
		"as a browser tells of it": {"Sec-Fetch-Site", "cross-site", "", 403, "sent by another site, and nothing was done"},
		"by its origin":            {"Origin", "https://evil.example.com", "", 403, "sent by another site, and nothing was done"},
		"of no origin":             {"Origin", "null", "", 403, "sent by another site, and nothing was done"},
		"of a site beside it":      {"Sec-Fetch-Site", "same-site", "", 403, "sent by another site, and nothing was done"},
		"too large":                {"Sec-Fetch-Site", "same-origin", strings.Repeat("x", maxForm), 400, "at most 256 KiB, and nothing was done"},
	} {
		request := d.request("POST", home+"model/disable", url.Values{"uid": {"a"}, "reason": {test.reason}})
		request.Header.Set(test.header, test.value)
		response, text := d.ask(request)
		failIf(t, response.StatusCode != test.status || !strings.Contains(text, test.want),
			"%s: expected %d, found %s %s", name, test.status, response.Status, text)
	}
	if status, _ := d.status(home + "model/disable?uid=a"); status != 404 {
		t.Errorf("expected no action by a link, found %d", status)
	}
	failIf(t, d.Model("a")["refresh_disabled_until_update"] != "", "expected a model that nobody has disabled")
}

func TestAReadOnlyDashboardOffersAndAcceptsNoAction(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.ReadOnly = true })
	d.put(`"uid":"a"`)
	d.Say("nonsense") // which is rejected
	d.apply()
	for _, path := range []string{"", "models", "model?uid=a", "failures", "running", "steering", "rejected"} {
		page := d.page(home + path)
		expect(t, page, "read-only")
		expectNone(t, page, "Run now", `method="post"`)
	}
	for _, action := range actions {
		response, text := d.post(home+action.path, "uid", "a")
		failIf(t, response.StatusCode != 403 || !strings.Contains(text, "read-only"), "%s: expected 403, found %s %s", action.path, response.Status, text)
	}
}

func TestWithoutTheTokenNothingIsShown(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withToken)
	for _, path := range []string{"/", home, home + "models", home + "model/past.svg?uid=a", home + "live/", "/q/other/"} {
		response, _ := d.ask(d.request("GET", path, nil))
		failIf(t, response.StatusCode != 303 || response.Header.Get("Location") != "/login",
			"%s: expected the way to sign in, found %s", path, response.Status)
		request := d.request("GET", path, nil)
		request.Header.Set("Accept", "application/json")
		response, _ = d.ask(request)
		failIf(t, response.StatusCode != 401 || response.Header.Get("WWW-Authenticate") != "Bearer", "%s: expected 401, found %s", path, response.Status)
	}
	if response, _ := d.ask(d.request("POST", home+"model/run", url.Values{"uid": {"a"}})); response.StatusCode != 401 {
		t.Errorf("expected 401, found %s", response.Status)
	}
	expect(t, d.page("/login"), `<label for="token">`)
	d.page("/static/style.css")
}

// signIn sends the token, and returns the cookie.
func (d *visitor) signIn() *http.Cookie {
	d.t.Helper()
	response, _ := d.post("/login", "token", secret)
	stopIf(d.t, response.StatusCode != 303 || len(response.Cookies()) != 1, "expected a session, found %s %v", response.Status, response.Cookies())
	return response.Cookies()[0]
}

// try sends a wrong token as a client behind a proxy, and returns the status.
func (d *visitor) try(token, client string) int {
	request := d.request("POST", "/login", url.Values{"token": {token}})
	request.Header.Set("X-Forwarded-For", client)
	response, _ := d.ask(request)
	return response.StatusCode
}

func TestTheTokenOpensASessionThatEnds(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withToken)
	response, text := d.post("/login", "token", "another token")
	failIf(t, response.StatusCode != 403 || len(response.Cookies()) > 0, "expected no session, found %s %v", response.Status, response.Cookies())
	expect(t, text, "This is not the token")
	cookie := d.signIn()
	failIf(t, !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, secret) || cookie.Secure,
		"expected a cookie that no script reads and no other site sends, found %v", cookie)
	expect(t, d.page(home), "Sign out")
	d.Clock.Turn(sessionTime)
	status, _ := d.status(home)
	failIf(t, status != 303, "expected the end of the session, found %d", status)
	forged := d.request("GET", home, nil)
	forged.AddCookie(&http.Cookie{Name: sessionCookie, Value: "99999999999.x"})
	response, _ = d.ask(forged)
	failIf(t, response.StatusCode != 303, "expected a forged session refused, found %s", response.Status)
	behindTLS := d.request("POST", "/login", url.Values{"token": {secret}})
	behindTLS.Header.Set("X-Forwarded-Proto", "https")
	response, _ = d.ask(behindTLS)
	failIf(t, !response.Cookies()[0].Secure, "expected a cookie for TLS alone behind a proxy that speaks it")
}

func TestAProgramBringsTheTokenWithEachRequestAndNeedsNoForm(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withToken)
	d.put(`"uid":"a"`)
	for token, want := range map[string]int{secret: 303, "another": 401, "": 401} {
		request := d.request("POST", home+"model/disable", url.Values{"uid": {"a"}})
		request.Header.Set("Accept", "*/*")
		request.Header.Set("Authorization", "Bearer "+token)
		response, _ := d.ask(request)
		failIf(t, response.StatusCode != want, "%q: expected %d, found %s", token, want, response.Status)
	}
	failIf(t, d.Model("a")["refresh_disabled_until_update"] == "", "expected a disabled model")
}

func TestWrongTokensOfEachClientAreBounded(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) {
		withToken(c)
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	d.countWaits()
	for range maxTries {
		got := d.try("wrong", "192.0.2.1")
		stopIf(t, got != 403, "expected 403, found %d", got)
	}
	if one, other := d.try("wrong", "192.0.2.1"), d.try("wrong", "192.0.2.2"); one != 429 || other != 403 {
		t.Errorf("expected the one client refused alone, found %d and %d", one, other)
	}
	got := d.try(secret, "192.0.2.1")
	failIf(t, got != 303, "expected the right one taken at once, found %d", got)
	d.Clock.Turn(tryWindow)
	got = d.try("wrong", "192.0.2.1")
	failIf(t, got != 403, "expected it compared after a while, found %d", got)
}

func TestTheClientIsTheLastAddressThatNoTrustedProxyHas(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, test := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:99", nil, "192.0.2.1"},
		{"192.0.2.1:99", []string{"198.51.100.7"}, "192.0.2.1"}, // who is no proxy may say what it likes
		{"10.0.0.1:99", nil, "10.0.0.1"},
		{"10.0.0.1:99", []string{"198.51.100.7"}, "198.51.100.7"},
		{"[::1]:99", []string{"198.51.100.7"}, "198.51.100.7"},
		{"[::ffff:10.0.0.1]:99", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:99", []string{"1.1.1.1, 198.51.100.7 , 10.0.0.2"}, "198.51.100.7"}, // the first one is what the client has sent itself
		{"10.0.0.1:99", []string{"1.1.1.1", "198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:99", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:99", []string{"nonsense"}, "nonsense"},
	} {
		d := auth{proxies: proxies}
		got := d.client(&http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-For": test.forwarded}})
		failIf(t, got != test.want, "%s, forwarded for %q: expected %s, found %s", test.remote, test.forwarded, test.want, got)
	}
}

func TestWhoSignsOutIsOutWithEveryCopyOfTheCookieAndNobodyElseIs(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withToken)
	other, own := d.signIn(), d.signIn() // at the same instant
	d.post("/logout")
	status := func(cookie *http.Cookie) int {
		request := d.request("GET", home, nil)
		request.AddCookie(cookie)
		response, _ := d.ask(request)
		return response.StatusCode
	}
	got := status(own)
	failIf(t, got != 303, "expected the kept cookie refused, found %d", got)
	got = status(other)
	failIf(t, got != 200, "expected the other one signed in, found %d", got)
	d.Clock.Turn(sessionTime)
	d.dashboard.auth.end(d.dashboard.auth.session(&d.dashboard.auth.tokens[0]))
	left := len(d.dashboard.auth.ended)
	failIf(t, left != 1, "expected what is over forgotten, found %d", left)
}

func TestWhatIsNotThereIsAPage(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	for _, path := range []string{"/nowhere", home + "nowhere", "/q/other/", "/q/other/models", "/q/%3Cb%3E/"} {
		status, text := d.status(path)
		failIf(t, status != 404, "%s: expected 404, found %d", path, status)
		expect(t, text, "<h1>Not found</h1>", `<a href="`+home+`">bigtables</a>`, "There is no such page")
		expectNone(t, text, "<b>")
	}
}
