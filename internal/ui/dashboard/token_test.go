package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

const ofViewer, ofOperator = "the token of a viewer", "the token of an operator"

func withTokens(c *Config) {
	c.Tokens = []Token{{Text: secret}, {Name: "vera", Text: ofViewer, ReadOnly: true}, {Name: "olaf", Text: ofOperator}}
}

func TestAViewerSeesAllAndDoesNothing(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	d.put(failingModel)
	response, _ := d.post("/login", "token", ofViewer)
	failIf(t, response.StatusCode != 303 || len(response.Cookies()) != 1, "expected a session, found %s", response.Status)
	for _, page := range pages {
		if page.path == "policy" {
			continue // there is none
		}
		if page.edits {
			status, text := d.status(home + page.path + "?uid=a")
			failIf(t, status != 403 || !strings.Contains(text, "only shows"), "%s: expected 403, found %d", page.path, status)
			continue
		}
		text := d.page(home + page.path + "?uid=a&do=run")
		expect(t, text, "read-only", "vera")
		if !page.form {
			expectNone(t, strings.Replace(text, `method="post" action="/logout"`, "", 1), `method="post"`)
		}
	}
	for _, action := range actions {
		response, text := d.post(home+action.path, "uid", "a")
		failIf(t, response.StatusCode != 403 || !strings.Contains(text, "that of a viewer"), "%s: expected 403, found %s %s", action.path, response.Status, text)
		request := d.request("POST", home+action.path, nil)
		request.Header.Set("Authorization", "Bearer "+ofViewer)
		response, _ = d.ask(request)
		failIf(t, response.StatusCode != 403, "%s: expected 403 for a program too, found %s", action.path, response.Status)
	}
	scale := d.request("GET", "/scale", nil)
	scale.Header.Set("Authorization", "Bearer "+ofViewer)
	response, _ = d.ask(scale)
	failIf(t, response.StatusCode != 200, "expected slots for a viewer, found %s", response.Status)
}

func TestOpenPagesOfAViewerOfferNoActionWhoeverElseLooks(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	d.Say("nonsense")
	d.apply()
	for token, offered := range map[string]bool{ofOperator: true, ofViewer: false} {
		d.post("/login", "token", token)
		v := d.view(home + "live/rejected")
		one := check.Await(t, v.events, "the fragment")
		failIf(t, strings.Contains(one.HTML, "Requeue") != offered, "%s: expected buttons: %v, found\n%s", token, offered, one.HTML)
	}
}

func TestAnActionIsToldByTheNameOfItsToken(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	d.put(`"uid":"a"`)
	for token, by := range map[string]string{ofOperator: "olaf", secret: "dashboard"} {
		d.post("/login", "token", token)
		d.press(home+"hold/put", "selector", "uid="+by, "reason", "x")
		holds, _, err := flow.Of(d.Store).Holds(t.Context())
		found := false
		for _, hold := range holds {
			found = found || hold.By == by && hold.Selector.String() == "uid="+by
		}
		failIf(t, err != nil || !found, "expected a hold by %s, found %+v %v", by, holds, err)
	}
}

func TestATokenThatIsTakenBackEndsItsSessionsAndNoOthers(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), withTokens)
	sessions := map[string]*http.Cookie{}
	for _, token := range []string{ofViewer, ofOperator} {
		response, _ := d.post("/login", "token", token)
		sessions[token] = response.Cookies()[0]
	}
	d.dashboard.auth.tokens = []Token{{Name: "olaf", Text: ofOperator}} // as after a start with another file
	for token, want := range map[string]int{ofViewer: 303, ofOperator: 200} {
		request := d.request("GET", home, nil)
		request.AddCookie(sessions[token])
		d.browser.Jar = nil
		response, _ := d.ask(request)
		failIf(t, response.StatusCode != want, "%s: expected %d, found %s", token, want, response.Status)
	}
}

func TestAFileOfTokensIsReadOrRefusedAndNeverTold(t *testing.T) {
	long := strings.Repeat("n", 2*model.MaxBy)
	for name, test := range map[string]struct {
		text, alone string
		names       []string
		want        string // of the error
	}{
		"one token":       {secret + "\n", secret, nil, ""},
		"roles":           {"# people\nviewer vera 0123456789abcdef\n\n operator olaf\tfedcba9876543210\n", "", []string{"vera true", "olaf false"}, ""},
		"one role":        {"viewer vera 0123456789abcdef\n", "", []string{"vera true"}, ""},
		"a long name":     {"viewer " + long + " 0123456789abcdef", "", []string{document.Shorten(long, model.MaxBy) + " true"}, ""},
		"nothing":         {" \n", "", nil, "f: expected a token, found nothing"},
		"comments alone":  {"# a\n# b", "", nil, "f: expected a token, found comments alone"},
		"tabs":            {"viewer\tvera\t0123456789abcdef", "", []string{"vera true"}, ""},
		"no role":         {"viewer vera 0123456789abcdef\nadmin eve 1123456789abcdef", "", nil, "f:2: expected ROLE NAME TOKEN with the role viewer or operator, found another"},
		"two bare tokens": {"0123456789abcdef\n1123456789abcdef", "", nil, "f:1: expected ROLE NAME TOKEN, found 1 word"},
		"too short":       {"operator olaf 0123456789", "", nil, "f:1: token: expected at least 16 bytes, found 10"},
		"a name twice":    {"viewer vera 0123456789abcdef\noperator vera 1123456789abcdef", "", nil, "f:2: token: expected each name and each token once, found one again"},
		"a token twice":   {"viewer vera 0123456789abcdef\noperator olaf 0123456789abcdef", "", nil, "f:2: token: expected each name"},
	} {
		tokens, err := ReadTokens("f", test.text)
		var names []string
		alone := ""
		for _, token := range tokens {
			if token.Name == "" {
				alone = token.Text
				continue
			}
			names = append(names, fmt.Sprint(token.Name, " ", token.ReadOnly))
		}
		told := fmt.Sprint(err)
		failIf(t, alone != test.alone || fmt.Sprint(names) != fmt.Sprint(test.names) || (err == nil) != (test.want == "") || !strings.Contains(told, test.want) || strings.Contains(told, "23456789"),
			"%s: expected %q %q and %q, found %q %q and %q", name, test.alone, test.names, test.want, alone, names, told)
	}
	expose := Config{Listen: ":8090", Tokens: []Token{{Name: "a", Text: secret}}, Clock: time.Now}
	must(t, expose.WithDefaults().Validate())
}
