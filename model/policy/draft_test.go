package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ofTheHouse is a policy `default` that says something of everything.
const ofTheHouse = `{"rrule":"FREQ=DAILY","timezone":"Europe/Berlin","dtstart":"2026-01-01","timeout":"1h","queue_timeout":"5m",` +
	`"retries":["7m"],"jitter":0.3,"alignment":"until_success","on_exhausted":"give_up","give_up_after":"1w","never_retry":["Gone"],` +
	`"delays_by_error":{"Busy":"2h"},"retry_window":"FREQ=DAILY;BYHOUR=9","misfire":"skip","spread":"3m",` +
	`"limits":[{"key":"{host(input_url)}","running":4,"rate":"60/m"}],"circuit":{"key":"{policy}","open_after":"5 of 10","on":["timeout"],"probe":"1h"},` +
	`"retry_after_scope":"model","max_retry_after":"2h","closed":["holidays"],"fresh_within":"26h","warn_within":"24h","guard":[{"rows":{"min":1}}],"on_suspect":"hold","notify":["disabled"],"failing_from":3,"email":{"payload":"owner"},"disabled_reason":"Sorry."}`

// completed reads a policy, and completes it with the policy of the house.
func completed(t testing.TB, text string) Policy {
	t.Helper()
	draft, err := Read(jsonOf(t, text))
	stopIf(t, err != nil, "%s: %v", text, err)
	p, err := draft.Complete(policyOf(t, ofTheHouse))
	stopIf(t, err != nil, "%s: %v", text, err)
	return p
}

func TestWhatAPolicyDoesNotNameIsThatOfTheDefault(t *testing.T) {
	house := policyOf(t, ofTheHouse)
	house.Rule, house.Dtstart = "", "" // nobody gets a schedule by saying nothing of one
	with := func(change func(*Policy)) Policy {
		p := house
		change(&p)
		return p
	}
	for text, want := range map[string]Policy{
		`{}`:                       house,
		`{"timeout":"none"}`:       with(func(p *Policy) { p.Timeout = 0 }),
		`{"queue_timeout":"none"}`: with(func(p *Policy) { p.QueueTimeout = 0 }),
		`{"retries":[]}`:           with(func(p *Policy) { p.Retries, p.Jitter = nil, 0 }),
		`{"retries":["1m"]}`:       with(func(p *Policy) { p.Retries, p.Jitter = Delays{time.Minute}, 0 }),
		`{"retries":{"strategy":"fixed","base":"1m"}}`: with(func(p *Policy) { p.Retries, p.Jitter = Backoff{Fixed, time.Minute, 0, 0, Unlimited}, 0.2 }),
		`{"jitter":0.5}`:                  with(func(p *Policy) { p.Jitter = 0.5 }),
		`{"alignment":"planned_only"}`:    with(func(p *Policy) { p.Alignment = PlannedOnly }),
		`{"on_exhausted":"next_planned"}`: with(func(p *Policy) { p.OnExhausted = NextPlanned }),
		`{"give_up_after":"none"}`:        with(func(p *Policy) { p.GiveUpAfter = 0 }),
		`{"never_retry":[]}`:              with(func(p *Policy) { p.Classes.Never = nil }),
		`{"retry_on":["Net"]}`:            with(func(p *Policy) { p.Classes.Never, p.Classes.RetryOn = nil, []string{"Net"} }),
		`{"delays_by_error":{}}`:          with(func(p *Policy) { p.Classes.Delays = nil }),
		`{"misfire":"run_once"}`:          with(func(p *Policy) { p.Misfire = Misfire{} }),
		`{"spread":"none"}`:               with(func(p *Policy) { p.Spread = 0 }),
		`{"guard":[]}`:                    with(func(p *Policy) { p.Guard = nil }),
		`{"on_suspect":"tell"}`:           with(func(p *Policy) { p.OnSuspect = "" }),
		`{"notify":["disabled","recovered","stale","fresh","suspect"]}`: with(func(p *Policy) { p.Muted = nil }),
		`{"failing_from":"none"}`:                              with(func(p *Policy) { p.FailingFrom = 0 }),
		`{"email":"none"}`:                                     with(func(p *Policy) { p.Email = Recipient{} }),
		`{"email":{"label":"owner"}}`:                          with(func(p *Policy) { p.Email = Recipient{Label: "owner"} }),
		`{"email":"ops@example.com"}`:                          with(func(p *Policy) { p.Email = Recipient{Address: "ops@example.com"} }),
		`{"disabled_reason":""}`:                               with(func(p *Policy) { p.DisabledReason = "" }),
		`{"limits":[]}`:                                        with(func(p *Policy) { p.Limits = nil }),
		`{"limits":[{"key":"{kind}","running":1}]}`:            with(func(p *Policy) { p.Limits = []Limit{{Key: Key{keyField, "kind"}, Running: 1}} }),
		`{"circuit":"none"}`:                                   with(func(p *Policy) { p.Circuit = nil }),
		`{"circuit":{"key":"{policy}","open_after":"1 of 1"}}`: with(func(p *Policy) { p.Circuit = &Circuit{Key{Kind: KeyPolicy}, 1, 1, nil, DefaultProbe} }),
		`{"max_retry_after":"1d"}`:                             with(func(p *Policy) { p.MaxRetryAfter = 0 }),
		`{"retry_after_scope":"auto"}`:                         with(func(p *Policy) { p.RetryAfterScope = ScopeAuto }),
		`{"closed":[]}`:                                        with(func(p *Policy) { p.Closed = nil }),
		`{"warn_within":"none"}`:                               with(func(p *Policy) { p.WarnWithin = 0 }),
		`{"warn_within":"1h"}`:                                 with(func(p *Policy) { p.WarnWithin = time.Hour }),

		// Who names fresh_within does not get the other's warning.
		`{"fresh_within":"none"}`: with(func(p *Policy) { p.FreshWithin, p.WarnWithin = 0, 0 }),
		`{"fresh_within":"1h"}`:   with(func(p *Policy) { p.FreshWithin, p.WarnWithin = time.Hour, 0 }),

		// The zone of the window comes along, but moves no schedule.
		`{"retry_window":"none"}`:         with(func(p *Policy) { p.RetryWindow, p.Timezone = "", "" }),
		`{"timezone":"Asia/Tokyo"}`:       with(func(p *Policy) { p.Timezone = "Asia/Tokyo" }),
		`{"rrule":"FREQ=DAILY;BYHOUR=6"}`: with(func(p *Policy) { p.Rule, p.Timezone = "FREQ=DAILY;BYHOUR=6", "" }),

		// Aliases come with the defaults of the system that they come from.
		`{"maxRetries":3}`: with(func(p *Policy) {
			p.Retries, p.Jitter, p.OnExhausted = Backoff{Exponential, time.Minute, 2, time.Hour, 3}, 0.2, GiveUp
			p.Classes.Never = policyOf(t, `{"never_retry":"permanent"}`).Classes.Never
		}),
	} {
		diff := cmp.Diff(want.canonical(), completed(t, text).canonical())
		failIf(t, diff != "", "%s: -want +got\n%s", text, diff)
	}
}

func TestThePolicyDefaultIsCompletedWithTheBuiltInOne(t *testing.T) {
	want := Default()
	want.Name, want.Timeout = DefaultName, time.Hour
	got := completed(t, `{"name":"default","timeout":"1h"}`)
	failIf(t, got.canonical() != want.canonical(), "got %s", got.canonical())
}

func TestAStoredPolicyIsWholeWhateverTheDefaultSays(t *testing.T) {
	for _, text := range []string{ofTheHouse, `{"retries":[]}`, `{"timeout":"none","retries":"3 1m","jitter":0}`, `{"retry_on":["A"],"jitter":0}`} {
		p := policyOf(t, text)
		if again, err := ParseStored(jsonOf(t, p.canonical())); err != nil || again.canonical() != p.canonical() {
			t.Errorf("%s is read as %s, %v", p.canonical(), again.canonical(), err)
		}
		whole, err := json.Marshal(p.Explicit())
		must(t, err)
		again := completed(t, string(whole))
		failIf(t, again.canonical() != p.canonical(), "%s is read as %s", whole, again.canonical())
	}
	const want = `{"timeout":"10m","queue_timeout":"none","silent_after":"none","retries":["0s","1m","5m"],"jitter":0,"alignment":"align_planned","on_exhausted":"next_planned",` +
		`"give_up_after":"none","never_retry":[],"delays_by_error":{},"retry_window":"none","misfire":"run_once","spread":"none",` +
		`"limits":[],"circuit":"none","retry_after_scope":"auto","max_retry_after":"1d","closed":[],"fresh_within":"none","warn_within":"none",` +
		`"guard":[],"on_suspect":"tell","notify":["disabled","recovered","stale","fresh","suspect"],"failing_from":"none","email":"none","disabled_reason":""}`
	if whole, err := json.Marshal(Default().Explicit()); string(whole) != want || err != nil {
		t.Errorf("got %s, %v", whole, err)
	}
}

func TestADraftTellsWhatItTakesFromTheDefault(t *testing.T) {
	draft, err := Read(jsonOf(t, `{"timeout":"1h","retries":["1m"],"retry_on":["A"],"misfire":null,"notify":[],"delays_by_error":{},"disabled_reason":"","spread":0}`))
	diff := cmp.Diff([]string{"queue_timeout", "silent_after", "alignment", "on_exhausted", "give_up_after", "retry_window", "misfire",
		"limits", "circuit", "retry_after_scope", "max_retry_after", "closed", "fresh_within", "warn_within", "guard", "on_suspect", "failing_from", "email"}, draft.Missing())
	failIf(t, err != nil || diff != "", "%v, -want +got\n%s", err, diff)
}

func TestAWarningIsCheckedAgainstTheFreshnessThatTheDefaultGives(t *testing.T) {
	for text, want := range map[string]string{
		`{"warn_within":"26h"}`:                      `warn_within: expected less than the fresh_within of 1d2h, found "1d2h"`,
		`{"warn_within":"1h","fresh_within":"none"}`: "fresh_within: expected a duration, as warn_within is given, found nothing",
	} {
		draft, err := Read(jsonOf(t, text))
		must(t, err)
		_, err = draft.Complete(policyOf(t, ofTheHouse))
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
	const alone = `{"warn_within":"1h"}`
	if _, err := ParseStored(jsonOf(t, alone)); refusedField(err) != "fresh_within" {
		t.Errorf("stored: %v", err)
	}
	if _, err := Parse(jsonOf(t, alone)); refusedField(err) != "fresh_within" {
		t.Errorf("built in: %v", err)
	}
}

const aliasedCanonical = `{"timeout":"10m","retries":{"strategy":"exponential","base":"1m","cap":"1h","count":3},"alignment":"align_planned","on_exhausted":"give_up",` +
	`"never_retry":["ForbiddenError","NotFoundError","SyntaxError","UnauthorizedError","ValidationError"]}`

func TestAPolicyMayUseTheNamesOfAnotherScheduler(t *testing.T) {
	replace := strings.NewReplacer
	for text, want := range map[string]string{
		// The worker's configuration, and its defaults
		`{"maxRetries":3,"baseRetryDelay":60000,"maxRetryDelay":3600000,"retryStrategy":"exponential","jitterEnabled":true,"jitterFactor":0.2}`: aliasedCanonical,
		`{"maxRetries":3}`: aliasedCanonical,
		`{"retryStrategy":"exponential","never_retry":"permanent"}`: aliasedCanonical,

		// The override of one job
		`{"maxRetries":5,"retryDelay":30000,"useExponentialBackoff":true}`: replace(`"base":"1m"`, `"base":"30s"`, `"count":3`, `"count":5`).Replace(aliasedCanonical),
		`{"useExponentialBackoff":false}`:                                  replace("exponential", "fixed").Replace(aliasedCanonical),
		`{"retryStrategy":"linear","retryDelay":"30000"}`:                  replace("exponential", "linear", `"1m"`, `"30s"`).Replace(aliasedCanonical),
		`{"retryDelay":1}`: replace(`"1m"`, `"1ms"`).Replace(aliasedCanonical),

		// A number is milliseconds, a text with a unit is what it says
		`{"maxRetryDelay":7200000,"retryDelay":"90s"}`: replace(`"1m"`, `"1m30s"`, `"1h"`, `"2h"`).Replace(aliasedCanonical),

		// Jitter
		`{"jitterFactor":0.5}`:                       replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(aliasedCanonical),
		`{"jitterEnabled":false}`:                    replace(`"alignment"`, `"jitter":0,"alignment"`).Replace(aliasedCanonical),
		`{"jitterEnabled":false,"jitterFactor":0.5}`: replace(`"alignment"`, `"jitter":0,"alignment"`).Replace(aliasedCanonical),

		// Beside our own words
		`{"jitterEnabled":true,"jitter":0.5}`:               replace(`"alignment"`, `"jitter":0.5,"alignment"`).Replace(aliasedCanonical),
		`{"maxRetries":3,"never_retry":[]}`:                 aliasedCanonical[:strings.Index(aliasedCanonical, `,"never_retry"`)] + "}",
		`{"maxRetries":3,"timeout":"1h","give_up_after":7}`: replace(`"10m"`, `"1h"`, `,"never`, `,"give_up_after":"7s","never`).Replace(aliasedCanonical),
	} {
		got := policyOf(t, text).canonical()
		failIf(t, got != want, "%s:\n got %s\nwant %s", text, got, want)
	}
}

func TestAContradictionBetweenTwoSpellingsIsRefused(t *testing.T) {
	unknown := "expected one of " + strings.Join(fieldNames, ", ") + ", found an unknown field"
	refusals(t, map[string]string{
		`{"maxRetries":3,"retries":[0]}`:                                "maxRetries: " + unknown,
		`{"retries":{"strategy":"fixed"},"jitterFactor":0.2}`:           "jitterFactor: " + unknown,
		`{"maxRetries":-1}`:                                             "retries.count: expected a whole number from 0 to 1000, or unlimited, found -1",
		`{"retryDelay":0}`:                                              `retries.base: expected a duration above zero, such as "1m", found "0ms"`,
		`{"baseRetryDelay":7200000}`:                                    `retries.cap: expected at least the base of 2h, found "1h"`,
		`{"retryStrategy":"random"}`:                                    `retries.strategy: expected fixed or linear or exponential or fibonacci, found "random"`,
		`{"useExponentialBackoff":"yes"}`:                               `retries.strategy: expected fixed or linear or exponential or fibonacci, found "yes"`,
		`{"jitterFactor":2}`:                                            "jitter: expected a number from 0 to 1, found 2",
		`{"jitterEnabled":"yes"}`:                                       `jitter: expected a number from 0 to 1, found "yes"`,
		`{"maxretries":3}`:                                              "maxretries: " + unknown,
		`{"retryDelay":30000,"baseRetryDelay":60000}`:                   "retryDelay: " + unknown,
		`{"useExponentialBackoff":false,"retryStrategy":"exponential"}`: "useExponentialBackoff: " + unknown,
		`{"jitter":0.1,"jitterEnabled":false}`:                          "jitterEnabled: " + unknown,
	})
}

func TestAPolicyMayUseTheNamesOfTheOrigin(t *testing.T) {
	for text, same := range map[string]string{
		`{"retry_intervals":[0,"PT5M","NEXT"]}`:                `{"retries":["0s","5m","next"],"on_exhausted":"give_up"}`,
		`{"retry_intervals":[]}`:                               `{"retries":"none"}`,
		`{"retry_strategy":"retry_align_planned"}`:             `{"alignment":"align_planned"}`,
		`{"alignment":"retry_until_success","timeout":"PT1H"}`: `{"alignment":"until_success","timeout":"1h"}`,
		`{"alignment":"planned_at"}`:                           `{"alignment":"planned_only"}`,
		`{"alignment":"retry_until_planned"}`:                  `{"alignment":"planned_only"}`,
		`{"retry_strategy":"retry_between_planned"}`:           `{"alignment":"between_planned"}`,
		`{"retry_strategy":{"expr":"planned_at"}}`:             `{"alignment":{"expr":"planned_at"}}`,
	} {
		if got, want := policyOf(t, text).canonical(), policyOf(t, same).canonical(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	unknown := ": expected one of " + strings.Join(fieldNames, ", ") + ", found an unknown field"
	refusals(t, map[string]string{
		`{"retry_intervals":[0],"retries":[0]}`:                     "retry_intervals" + unknown,
		`{"retry_strategy":"retry_at","alignment":"align_planned"}`: "retry_strategy" + unknown,
		`{"alignment":"retry_until_lunch"}`: `alignment: expected align_planned or until_success or planned_only or whichever_first or between_planned, ` +
			`found "retry_until_lunch"`,
	})
}

func TestAStrategyMayBeNoneSimpleOrHaveACurvature(t *testing.T) {
	for text, same := range map[string]string{
		`{"strategy":"none"}`: `[]`,
		`{"strategy":"simple","max_retries":3,"max_delay":"5m"}`:                       `{"strategy":"fixed","base":"5m","cap":"5m","count":3}`,
		`{"strategy":"simple","max_retry":3,"base":"30s","max_delay":"5m"}`:            `{"strategy":"fixed","base":"30s","cap":"5m","count":3}`,
		`{"strategy":"exponential","max_retry":5,"max_delay":3600,"curvature":1.5}`:    `{"strategy":"exponential","count":5,"cap":"1h","factor":1.5}`,
		`{"strategy":"linear","max_retries":"unlimited","base":"2m","max_delay":"7m"}`: `{"strategy":"linear","base":"2m","cap":"7m"}`,
	} {
		want := policyOf(t, `{"retries":`+same+`}`)
		if strings.Contains(text, "simple") {
			want.Jitter, want.OnExhausted = 0, GiveUp
		}
		got := policyOf(t, `{"retries":`+text+`}`)
		failIf(t, got.canonical() != want.canonical(), "%s:\n got %s\nwant %s", text, got.canonical(), want.canonical())
	}
	refusals(t, map[string]string{
		`{"retries":{"strategy":"none","count":3}}`:                   "retries.count: expected one of strategy, found an unknown field",
		`{"retries":{"strategy":"simple","count":3,"max_retries":3}}`: "retries.max_retries: expected one of strategy, base, factor, cap, count, found an unknown field",
		`{"retries":{"strategy":"simple","curvature":2}}`:             `retries.factor: expected strategy exponential with it, found "fixed"`,
	})
}

// A list that is used up is the end in the documents that refreshd comes from. In our own words a model with a rule goes on.
func TestAPolicyInAShapeOfTheSourcesGivesUpAfterItsListUnlessItSaysOtherwise(t *testing.T) {
	for text, want := range map[string]OnExhausted{
		`{"retry_intervals":[0,"PT5M","PT10M","PT15M","PT30M","PT1H"],"timeout":"PT1H","rrule":"FREQ=HOURLY"}`: GiveUp,
		`{"retry_intervals":[]}`: NextPlanned, // one failure would disable it
		`{"retries":{"strategy":"simple","max_retries":3,"max_delay":"5m"}}`: GiveUp,
		`{"retries":"10 5s"}`:                 GiveUp,
		`{"retries":"//ftl:retry 10 5s 10m"}`: GiveUp,
		`{"retries":"0 5s"}`:                  GiveUp, // the first failure is the last: they say so
		`{"retries":"//ftl:retry 0 5s 10m"}`:  GiveUp,
		`{"retry_intervals":"0 5s"}`:          GiveUp,
		`{"maxRetries":0}`:                    GiveUp,
		`{"retries":{"strategy":"simple","max_retries":0,"max_delay":"5m"}}`: GiveUp,
		`{"retries":{"strategy":"fixed","base":"5m","count":0}}`:             NextPlanned, // our own shape
		`{"retries":"0 5s","on_exhausted":"next_planned"}`:                   NextPlanned,
		`{"retries":"5s 10m"}`: NextPlanned, // it has no end
		`{"retries":"none"}`:   NextPlanned,
		`{"rrule":"RRULE:FREQ=HOURLY;INTERVAL=2","timeout":"1 hour","retries":[0,"1 minute","5 minute","10 minutes","15 minutes"]}`: GiveUp,

		// Our own shape
		`{"rrule":"FREQ=HOURLY;INTERVAL=2","timeout":"1h","retries":[0,"1m","5m"]}`:                    NextPlanned,
		`{"rrule":"RRULE:FREQ=HOURLY\nEXDATE:20260101T000000","timeout":"1h","retries":[0,"1m","5m"]}`: NextPlanned,
		`{"retries":{"strategy":"fixed","base":"5m","count":3}}`:                                       NextPlanned,
		`{"rrule":"RRULE:FREQ=HOURLY"}`:                                                                NextPlanned,

		// Who says otherwise gets it
		`{"retry_intervals":[0],"on_exhausted":"next_planned"}`:                           NextPlanned,
		`{"retries":{"strategy":"simple","max_retries":3},"on_exhausted":"next_planned"}`: NextPlanned,
		`{"rrule":"FREQ=HOURLY","retries":[0],"on_exhausted":"give_up"}`:                  GiveUp,
	} {
		p := policyOf(t, text)
		failIf(t, p.OnExhausted != want, "%s: %s, want %s", text, p.OnExhausted, want)
		again := policyOf(t, p.canonical())
		failIf(t, !again.Equal(p), "%s: what is stored is read as %s", text, again.canonical())
	}
	if got, want := policyOf(t, `{"retries":"//ftl:retry 10 5s"}`), policyOf(t, `{"retries":"10 5s"}`); !got.Equal(want) {
		t.Errorf("with its annotation: %s, want %s", got.canonical(), want.canonical())
	}
	d, err := Read(jsonOf(t, `{"retries":"10 5s"}`))
	must(t, err)
	usual := Default()
	usual.OnExhausted = NextPlanned
	if p, err := d.Complete(usual); err != nil || p.OnExhausted != GiveUp {
		t.Errorf("completed with a default that goes on: %s, %v", p.OnExhausted, err)
	}
}

func TestTheSilenceOfTheDefaultIsTakenOnlyIfItIsShorterThanTheTimeout(t *testing.T) {
	usual := policyOf(t, `{"timeout":"1h","silent_after":"10m"}`)
	for text, want := range map[string]time.Duration{
		`{}`: 10 * time.Minute, `{"timeout":"10m1ms"}`: 10 * time.Minute, `{"timeout":"10m"}`: 0, `{"timeout":"5m"}`: 0, `{"timeout":"none"}`: 10 * time.Minute,
		`{"timeout":"5m","silent_after":"1m"}`: time.Minute, `{"silent_after":"none"}`: 0,
	} {
		draft, err := Read(jsonOf(t, text))
		must(t, err)
		p, err := draft.Complete(usual)
		failIf(t, err != nil || p.SilentAfter != want, "%s: got %s, %v, want %s", text, p.SilentAfter, err, want)
	}
}

func TestOnlyTheNoticesOfTheListAreSent(t *testing.T) {
	for text, want := range map[string][]Notice{
		`{}`: nil, `{"notify":[]}`: Notices, `{"notify":["stale"]}`: slices.DeleteFunc(slices.Clone(Notices), func(n Notice) bool { return n == NoticeStale }),
	} {
		p := policyOf(t, text)
		for _, notice := range Notices {
			failIf(t, p.Notifies(notice) == slices.Contains(want, notice), "%s: %s is sent: %t", text, notice, p.Notifies(notice))
		}
	}
}
