package dashboard

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/policy"
)

var areaField = regexp.MustCompile(`(?s)<textarea[^>]* name="([^"]+)"[^>]*>(.*?)</textarea>`)

// typeInto is the form of a page that edits, as a browser would send it after somebody has typed into some of its fields.
func typeInto(t *testing.T, page, action string, typed ...string) []string {
	t.Helper()
	_, form, is := strings.Cut(page, `action="`+home+action+`"`)
	stopIf(t, !is, "expected a form %s, found\n%s", action, page)
	form, _, _ = strings.Cut(form, "</form>")
	fields := map[string]string{}
	for _, field := range formField.FindAllStringSubmatch(form, -1) {
		fields[field[1]] = html.UnescapeString(field[2])
	}
	for _, field := range areaField.FindAllStringSubmatch(form, -1) {
		fields[field[1]] = html.UnescapeString(field[2])
	}
	for i := 0; i < len(typed); i += 2 {
		_, known := fields[typed[i]]
		stopIf(t, !known, "%s: expected a field %s, found %v", action, typed[i], fields)
		fields[typed[i]] = typed[i+1]
	}
	var list []string
	for name, value := range fields {
		list = append(list, name, value)
	}
	return list
}

// check types into the form of a page, and returns the page that tells what it would do to save that.
func (d *visitor) check(address string, typed ...string) string {
	d.t.Helper()
	path, _, _ := strings.Cut(address, "?")
	response, page := d.post(home+path, typeInto(d.t, d.page(home+address), path, typed...)...)
	stopIf(d.t, response.StatusCode != http.StatusOK, "%s: expected 200, found %s\n%s", address, response.Status, page)
	return page
}

// retype replaces texts in the form of a page, and checks it.
func (d *visitor) retype(address string, pairs ...string) string {
	d.t.Helper()
	text := areaField.FindStringSubmatch(d.page(home + address))[2]
	return d.check(address, "text", strings.NewReplacer(pairs...).Replace(html.UnescapeString(text)))
}

// save presses the button of a page that was checked.
func (d *visitor) save(checked, action string) string {
	d.t.Helper()
	return d.press(home+action, typeInto(d.t, checked, action)...)
}

func (d *visitor) putPolicy(text string) {
	d.t.Helper()
	d.save(d.check("policy/edit", "text", text), "policy/save")
}

func (d *visitor) policy(name string) policy.Policy {
	d.t.Helper()
	found := check.Got(d.queue.Parts[0].Policies(d.t.Context(), []string{name}))(d.t)
	return found[name]
}

func TestAPolicyIsCheckedAndThenSavedAsItWasChecked(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		d.putPolicy("name: hourly\nrrule: FREQ=HOURLY\ntimeout: 10m\nretries: [1m]\n")
		d.put(`"uid":"a","policy":"hourly"`)
		page := d.page(home + "policy/edit?name=hourly")
		expect(t, page, "<h1>Edit hourly</h1>", "rrule: FREQ=HOURLY", `href="/q/bigtables/policy?name=hourly">Cancel`)
		checked := d.check("policy/edit?name=hourly", "text", "name: hourly\nrrule: FREQ=HOURLY;BYMINUTE=30\ntimeout: 20m\nretries: [1m]\non_exhausted: next_planned")
		expect(t, checked, `<tr><th scope="row">timeout</th><td data-label="Stored" class="wide">10m</td><td data-label="Yours" class="wide">20m</td></tr>`, "1 model uses it, 1 would decide otherwise.", "Planned anew: 1, first at ",
			"What would happen in the next week if ", "data:image/svg")
		failIf(t, d.policy("hourly").Timeout.Minutes() != 10, "expected nothing stored by a check")
		expect(t, d.save(checked, "policy/save"), "The policy hourly is saved: updated.", "<h1>Policy</h1>")
		failIf(t, d.policy("hourly").Timeout.Minutes() != 20, "expected what was checked, found %v", d.policy("hourly"))
		expect(t, d.press(home+"policy/rm", "name", "hourly"), `role="alert"`, "found 1")
		d.Command(`{"type":"remove","uid":"a"}`)
		d.apply()
		expect(t, d.submit("policy?name=hourly", "policy/rm"), "The policy hourly is removed.")
		failIf(t, d.policy("hourly").Timeout != 0, "expected no policy")
	})
}

func TestWhatIsTriedInThePlaygroundIsCheckedAndSaved(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, nil)
		hidden := func(page, field string) string {
			found := regexp.MustCompile(`form="playground" name="` + field + `" value="([^"]*)"`).FindStringSubmatch(page)
			stopIf(t, found == nil, "expected the field %s", field)
			return found[1]
		}
		try := func(path, text string) string {
			page := d.page(home + path)
			expect(t, page, `form="playground" formaction="/q/bigtables/policy/edit"`)
			form := url.Values{"text": {text}, "answers": {"fails"}, "name": {hidden(page, "name")}, "policy": {hidden(page, "policy")}, "was": {hidden(page, "was")}}
			_, tried := d.ask(d.request("POST", home+"playground", form)) // which keeps what it will replace
			equal(t, form.Get("was"), hidden(tried, "was"))
			_, checked := d.ask(d.request("POST", home+"policy/edit", form))
			expectNone(t, checked, "Somebody has changed it since you began")
			return checked
		}
		checked := try("playground", "name: tried\nrrule: FREQ=HOURLY\ntimeout: 90m\nretries: [5m]\n")
		expect(t, checked, "Seldom meant", `<th scope="row">timeout</th>`)
		expect(t, d.save(checked, "policy/save"), "The policy tried is saved: created.")
		page := d.page(home + "playground?policy=tried")
		expect(t, page, "Save as tried…", "Refresh the model every hour")
		expectNone(t, page, "Open no circuit")
		checked = try("playground?policy=tried", "name: tried\nrrule: FREQ=HOURLY\ntimeout: 20m\nretries: [5m]\n")
		expect(t, checked, "<h1>Edit tried</h1>", `<td data-label="Yours" class="wide">20m</td>`)
		expect(t, d.save(checked, "policy/save"), "The policy tried is saved: updated.")
		failIf(t, d.policy("tried").Timeout.Minutes() != 20, "expected what was tried, found %v", d.policy("tried"))
	})
}

func TestAPolicyThatSomebodyElseHasChangedIsNotOverwritten(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.putPolicy("name: p\ntimeout: 10m\n")
	checked := d.check("policy/edit?name=p", "text", "name: p\ntimeout: 20m\n")
	d.save(d.check("policy/edit?name=p", "text", "name: p\ntimeout: 30m\n"), "policy/save")
	refused := d.save(checked, "policy/save")
	expect(t, refused, "Somebody has changed it since you began", `<td data-label="Stored" class="wide">30m</td><td data-label="Yours" class="wide">20m</td>`, "timeout: 20m\n</textarea>")
	failIf(t, d.policy("p").Timeout.Minutes() != 30, "expected what the other has saved")
	d.save(refused, "policy/save") // which they have seen now
	failIf(t, d.policy("p").Timeout.Minutes() != 20, "expected what was saved after a look")
	expect(t, d.check("policy/edit", "text", "name: p\ntimeout: 1m\n"), "name: expected one that is not stored yet")
}

func TestWhatIsWrongInAFormStandsBesideItsFieldAndWhatWasTypedStays(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a","rrule":"every day at 6 AM"`)
	for _, test := range []struct{ page, field, typed, want string }{
		{"policy/edit", "text", "name: p\ntimeout: 1h\nretries: [1m, soon]\n", "your text line 3: retries[1]: expected a duration"},
		{"policy/edit", "text", "name: p\n timeout: 1h", "your text line 2"},
		{"policy/edit", "text", "timeout: 1h", "name: expected"},
		{"policy/edit?name=default", "text", "name: other\ntimeout: 1h", "name: expected default, as it is stored under"},
		{"model/edit?uid=a", "text", "uid: a\nrrule: every blue moon", "your text line 2: rrule: "},
		{"model/edit?uid=a", "text", "uid: a\ntimezone: Mars/North", "your text line 2: timezone: expected"},
		{"model/edit?uid=a", "text", "uid: a\nlabels: tenant", "your text line 2: labels: expected"},
		{"model/edit?uid=a", "text", "uid: a\npayload: {\n\"a\": 1\n\"b\": 2}", "your text line 1: did not find expected"},
		{"model/edit?uid=a", "text", "uid: a\npayload: [1]", "payload: expected"},
		{"model/edit?uid=a", "text", "uid: a\npolicy: none", "your text line 2: policy: expected a policy, or the name of a stored one (default)"},
		{"model/edit?uid=a", "text", "uid: a\npolicy:\n  timeout: 1h\n  retries: [soon]", "your text line 4: policy.retries[0]: expected a duration"},
		{"model/edit?uid=a", "text", "uid: b", "uid: expected a, as it is stored under"},
		{"model/edit", "text", "uid: a", "uid: expected one that is not stored yet"},
	} {
		page := d.check(test.page, test.field, test.typed)
		expect(t, html.UnescapeString(page), test.want, test.typed)
		expect(t, page, `aria-invalid="true" aria-describedby="wrong-`+test.field+`"`, `id="wrong-`+test.field+`" role="alert"`)
		expectNone(t, page, ">Save<")
	}
}

const wholeModel = `"uid":"a","rrule":"every day at 6 AM","timezone":"Europe/Berlin","dtstart":"2026-01-31T06:00:00","labels":{"team":"shop","tenant":"t1"},` +
	`"payload":{"input_url":"http://x/y","n":12345678901234567890},"policy":{"timeout":"1h","retries":["10m"]}`

func TestAModelIsEditedAndLosesNothingThatNobodyHasTyped(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		d := sit(t, server, func(c *Config) { c.By = "ann" })
		d.put(wholeModel)
		before := d.Model("a")
		same := d.check("model/edit?uid=a")
		expect(t, same, "Nothing changes.", "It is the same as what is stored.", `href="/q/bigtables/model?uid=a">Cancel`)
		expect(t, d.save(same, "model/save"), "a is saved: unchanged.")
		equal(t, before, d.Model("a"))
		checked := d.retype("model/edit?uid=a", "tenant: t1", "tenant: t2", "rrule: FREQ=DAILY;BYHOUR=6", "rrule: FREQ=DAILY;BYHOUR=7")
		expect(t, checked, `<th scope="row">labels.tenant</th><td data-label="Stored" class="wide">t1</td><td data-label="Yours" class="wide">t2</td>`, `<th scope="row">rrule</th>`, "The next refresh is at ", "data:image/svg")
		equal(t, before, d.Model("a"))
		expect(t, d.save(checked, "model/save"), "a is saved: updated.", "<h1>a</h1>", "BYHOUR=7")
		after := d.Model("a")
		for _, field := range []string{"timezone", "dtstart", "policy"} {
			failIf(t, after[field] != before[field] || after[field] == "", "%s: expected %s, found %s", field, before[field], after[field])
		}
		failIf(t, !strings.Contains(d.page(home+"model?uid=a"), "12345678901234567890"), "expected the payload as it was")
		expect(t, d.save(d.check("model/edit", "text", "{uid: b, policy: default, payload: {x: 1}}"), "model/save"), "b is saved: created.")
	})
}

func TestAModelThatSomebodyElseHasChangedIsNotOverwritten(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.put(`"uid":"a","rrule":"every day at 6 AM","labels":{"tenant":"t1"}`)
	checked := d.retype("model/edit?uid=a", "tenant: t1", "tenant: t2")
	d.press(home+"model/run", "uid", "a") // which changes its state, and not what it is
	d.start()
	d.put(`"uid":"a","rrule":"every day at 8 AM","labels":{"tenant":"t1"}`)
	refused := d.save(checked, "model/save")
	expect(t, refused, "Somebody has changed it since you began", "BYHOUR=8")
	failIf(t, !strings.Contains(d.Model("a")["rrule"], "BYHOUR=8"), "expected what the other has saved, found %v", d.Model("a"))
	d.save(d.retype("model/edit?uid=a", "tenant: t1", "tenant: t2"), "model/save")
	d.answer("success", "a")
	failIf(t, !strings.Contains(d.Model("a")["rrule"], "BYHOUR=8"), "expected the rule of the other kept, found %v", d.Model("a"))
	expect(t, d.page(home+"model?uid=a"), "tenant=t2")
}

func TestAReadOnlyDashboardOffersNothingToEdit(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), func(c *Config) { c.ReadOnly = true })
	d.put(`"uid":"a"`)
	for _, path := range []string{"policy/edit", "policy/edit?name=default", "model/edit", "model/edit?uid=a"} {
		status, page := d.status(home + path)
		failIf(t, status != http.StatusForbidden, "%s: expected 403, found %d", path, status)
		expect(t, page, "only shows")
	}
	for _, path := range []string{"policies", "policy?name=default", "model?uid=a", "models"} {
		expectNone(t, d.page(home+path), "/edit")
	}
}

func TestWhatIsCountedOfASampleSaysSo(t *testing.T) {
	d := sit(t, testkit.Miniredis(t), nil)
	d.putPolicy("name: hourly\nrrule: FREQ=HOURLY\ntimeout: 10m\n")
	var models []string
	for n := range maxCounted + 1 {
		models = append(models, fmt.Sprintf(`"uid":"m%04d","policy":"hourly"`, n))
	}
	for part := range slices.Chunk(models, 400) {
		d.put(part...)
	}
	expect(t, d.page(home+"policies"), ` models with hourly">at least `, "Of a sample of ")
	checked := d.check("policy/edit?name=hourly", "text", "name: hourly\nrrule: FREQ=HOURLY\ntimeout: 20m\n")
	expect(t, checked, "The numbers are of a sample, the first 400 models of the queue.", "At least 400 models use it, at least 400 would decide otherwise.")
}
