package dashboard

import (
	"encoding/json"
	"fmt"
	"github.com/redis/go-redis/v9"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

// attack is what somebody puts in a field; each is told apart by its name.
func attack(field string) string {
	return `"'><script>` + browser.Hook + `('` + field + `')</script><img src=x onerror="` + browser.Hook + `('` + field + `')"><svg onload=` + browser.Hook + `('` + field + `')>{{.}}</textarea>javascript:` + field
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always marshals
	return string(out)
}

// TestWhatUsersWriteIsNeverAScript fills every field that a user may write with an attack, and looks at all pages. The tab fails the test when a script
// runs, or tries to.
func TestWhatUsersWriteIsNeverAScript(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	tab := browser.Open(t)
	f.hostile()
	shown := ""
	for _, path := range attacked() {
		tab.Go(f.url(path))
		tab.Await("document.readyState === 'complete'")
		shown += tab.Text() + browser.Eval[string](tab, "[...document.querySelectorAll('input, textarea')].map(i => i.value).join('\\n')")
	}
	for _, field := range []string{"payload", "label", "reason", "status", "worker", "disabled", "hold", "circuit", "raw", "models?l=", "steering?key="} {
		failIf(t, !strings.Contains(shown, "javascript:"+field) && !strings.Contains(shown, attack(field)[:20]),
			"expected to see the attack in %s as a text", field)
	}

	// As somebody types.
	tab.Go(f.url("playground"))
	tab.Fill("text", attack("typed"))
	tab.Await("document.querySelector('#playground-result .flash.bad')")
}

// attacked are all pages of a hostile fleet, and those whose address is an attack.
func attacked() []string {
	pages := []string{
		"", "models", "models?sort=failing", "model?uid=victim", "model?uid=disabled", "model?uid=" + url.QueryEscape(longUID), "failures", "steering", "rejected", "policies",
		"policy?name=hostile", "playground?policy=hostile",
	}
	for _, field := range []string{"models?l=", "models?l=uid%3D", "models?sort=", "models?after=", "model?uid=", "policy?name=", "steering?key=", "rejected?from=", "playground?text=", "playground?policy=",
		"playground?example=", "playground?answers="} {
		pages = append(pages, field+url.QueryEscape(attack(field)))
	}
	return pages
}

// longUID has every kind of character that a uid may have.
var longUID = "a:@/+=~-." + strings.Repeat("x", 180)

// hostile fills every field that a user may write with an attack, as far as it is taken.
func (f *fleet) hostile() {
	f.t.Helper()
	ctx := f.t.Context()
	f.policies("name: hostile\ntimeout: 10m\nretries: [1h]\nrrule: FREQ=DAILY\ndisabled_reason: " + quoted(attack("policy")))
	for uid, status := range map[string]string{"victim": "", longUID: "", "processing": "status", "disabled": ""} {
		f.Command(fmt.Sprintf(`{"type":"put","uid":%q,"refresh":"now","policy":"hostile","labels":{"tenant":%s},"payload":{"input_url":%s,%s:1}}`,
			uid, quoted(strings.ToValidUTF8(attack("label")[:60], "")), quoted(attack("payload")), quoted(attack("key"))))
		f.Command(fmt.Sprintf(`{"type":"put","uid":%q,"refresh":"now","policy":"hostile","labels":{"tenant":"t1"},"payload":{"input_url":%s,%s:1}}`,
			uid, quoted(attack("payload")), quoted(attack("key"))))
		f.work()
		attempt := f.Attempt(uid)
		for _, found := f.Take(); found; _, found = f.Take() {
		}
		f.Say(fixture.Result("started", uid, attempt, `"worker":`+quoted(attack("worker"))))
		f.Say(fixture.Result("user_friendly_status", uid, attempt, `"status":`+quoted(attack("status"))))
		f.work()
		if status == "" {
			f.Say(fixture.Result("failure", uid, attempt, `"reason":`+quoted(attack("reason")), `"error_type":`+quoted(attack("type")), `"user_friendly_reason":`+quoted(attack("disabled"))))
		}
		f.work()
	}
	f.Command(`{"type":"disable","uid":"disabled","reason":` + quoted(attack("disabled")) + `,"by":` + quoted(attack("by")) + `}`)
	f.Say(attack("raw"), `{"type":`+quoted(attack("raw"))+`,"big_table_uid":`+quoted(attack("raw"))+`}`)
	f.work()
	now := f.Clock.Now()
	selector, err := model.ParseSelector("tenant=t2")
	must(f.t, err)
	for _, err := range []error{
		flow.OfQueue(f.queue).PutHold(ctx, &model.Hold{ID: "h1", Selector: selector, Since: now, Reason: attack("hold"), By: attack("by")}),
		flow.OfQueue(f.queue).PutLimit(ctx, &model.Limit{Name: "host=example.com", Running: 1, Since: now, Until: now.Add(time.Hour), Reason: attack("limit"), By: attack("by")}),
	} {
		must(f.t, err)
	}
	_, err = flow.OfQueue(f.queue).OpenCircuit(ctx, "host=example.com", attack("by"), attack("circuit"), time.Hour)
	stopIf(f.t, err != nil, "%v", err)
	_, err = flow.OfQueue(f.queue).BeginNewBulk(ctx, model.Bulk{Action: model.BulkRun, Selector: selector, By: attack("by"), Reason: attack("bulk")})
	stopIf(f.t, err != nil, "%v", err)
	// What only somebody could write who may write to Redis as he likes.
	f.Redis.HSet(ctx, f.Store.Keys.Policies, attack("policy name"), attack("policy text"))
	f.Redis.HSet(ctx, f.Store.Keys.Calendars, "nightly", `{"rrule":"FREQ=DAILY","for":"2h","reason":`+quoted(attack("calendar"))+`}`)
	f.Redis.HSet(ctx, f.Store.Keys.Error("0123456789ab"), "signature", attack("signature"), "reason", attack("reason"), "error_type", attack("type"), "uid", attack("uid"), "uids", attack("uids"))
	f.Redis.ZAdd(ctx, f.Store.Keys.Errors, z(3, "0123456789ab"), z(2, attack("signature id")))
	f.Redis.ZAdd(ctx, f.Store.Keys.Blockers, z(1, "circuit:"+attack("gate")), z(1, "limit:"+attack("gate")))
	f.Redis.ZAdd(ctx, f.Store.Keys.Workers, z(float64(now.UnixMilli()), attack("worker")))
	f.Redis.HSet(ctx, f.Store.Keys.Circuit("host=evil.example"), "opened_at", attack("opened"), "probe", attack("probe"), "recent", attack("recent"))
	f.Redis.RPush(ctx, f.Store.Keys.Rejected, `{"at":`+quoted(attack("at"))+`,"source":`+quoted(attack("source"))+`,"uid":`+quoted(attack("uid"))+`,"reason":`+quoted(attack("reason"))+`,"raw":`+quoted(attack("raw"))+`,"bytes":`+quoted(attack("bytes"))+`}`)
}

func TestRawBytesAreShownSoThatNothingHides(t *testing.T) {
	for raw, want := range map[string]string{
		"plain {\"a\": 1}":      `plain {"a": 1}`,
		"\x00\x1b[31m\xff":      `\x00\x1b[31m\xff`,
		"a\u202eb\u2066":        `a\u202eb\u2066`,
		"größe\n\\n":            "größe\n\\n",
		"<script>":              "<script>",
		strings.Repeat("x", 12): "xxxxxxxxxx… and 2 bytes more",
	} {
		most := 1000
		if len(raw) == 12 {
			most = 10
		}
		got := visible(raw, most)
		failIf(t, got != want, "%q: expected %q, found %q", raw, want, got)
	}
	got := visible(string(slices.Repeat([]byte{0xff}, 3)), 2)
	failIf(t, got != `\xff\xff… and 1 bytes more`, "%v", got)
}
